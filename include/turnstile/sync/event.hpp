// SPDX-License-Identifier: BSL-1.0
// A manual-reset event: set() completes all waits, present and later ones, until clear().
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/sync/detail/event_state.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A flag that asynchronous code can wait for.
///
/// @par Fairness
/// `set` grants all waiters, in the order of their arrival.
/// @par Thread safety
/// Any thread may call any function of an `event`; a `local::event` is confined to one strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_event : public detail::io_object<Executor, Threading, detail::event_state<Threading>> {
    using base = detail::io_object<Executor, Threading, detail::event_state<Threading>>;

public:
    using typename base::executor_type;

    template <class Other>
    struct rebind_executor {
        using other = basic_event<Other, Threading>;
    };

    /// Makes an event. Handlers without an associated executor run on `executor`.
    ///
    /// @param set Whether the event is set at first.
    explicit basic_event(const std::type_identity_t<Executor>& executor, bool set = false)
        : base(executor, set)
    {
    }

    /// Equivalent to `basic_event(context.get_executor(), set)`.
    template <detail::execution_context Context>
    explicit basic_event(Context& context, bool set = false)
        : basic_event(context.get_executor(), set)
    {
    }

    /// Waits until the event is set.
    ///
    /// @par Completes when
    /// the event is set. A waiter that is queued when `set` is called completes even if `clear`
    /// follows at once.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the event was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the event's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A wait consumes nothing, so a cancelled wait loses nothing.
    /// @par Fairness
    /// FIFO.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait(Token&& token = Token())
    {
        return detail::start_wait(request{this}, std::forward<Token>(token));
    }

    /// Sets the event and grants all waiters. No handler runs inside this call.
    void set() noexcept { this->state().set(); }

    /// Clears the event: an operation that is started later waits for the next `set`.
    void clear() noexcept { this->state().clear(); }

    /// Whether the event is set: a hint, outdated as soon as it is returned.
    [[nodiscard]] bool is_set() const noexcept { return this->state().is_set(); }

private:
    struct request {
        using executor_type = Executor;
        using threading = Threading;
        using result_type = void;
        using waiter_type = detail::waiter;
        static constexpr detail::request_traits traits{.refundable = true};

        basic_event* event;

        const Executor& executor() const noexcept { return event->executor(); }
        detail::event_state<Threading>& state() const noexcept { return event->state(); }
        detail::wait_decision try_now() const noexcept
        {
            return event->is_set() ? detail::wait_decision::granted()
                                   : detail::wait_decision::pending();
        }
        void give_back() const noexcept {}
        void prepare(detail::waiter&) const noexcept {}
    };
};

/// The event for any thread and any executor.
using event = basic_event<>;

namespace local {

/// The event for one strand: it needs no atomic operations and no internal lock, and one posted
/// wake-up completes all waiters.
using event = basic_event<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
