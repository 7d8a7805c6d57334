// SPDX-License-Identifier: BSL-1.0
// A manual-reset event: one set() lets everybody through, until clear().
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/sync/detail/event_state.hpp>

#include <type_traits>

namespace turnstile::inline v0_1 {

/// A flag that asynchronous code can wait for.
///
/// Fairness: all who wait at `set` go, in the order they came.
/// Destruction: every waiter completes with `operation_aborted`.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_event : public detail::io_object<Executor, Threading, detail::event_state<Threading>> {
    using base = detail::io_object<Executor, Threading, detail::event_state<Threading>>;

public:
    using typename base::executor_type;

    template <class Other>
    struct rebind_executor {
        using other = basic_event<Other, Threading>;
    };

    /// An event that is set from the start, or (the default) is not.
    explicit basic_event(const std::type_identity_t<Executor>& executor, bool set = false)
        : base(executor, set)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_event(Context& context, bool set = false)
        : basic_event(context.get_executor(), set)
    {
    }

    /// Waits until the event is set.
    ///
    /// Completes when: the event is set, now or later. A waiter that is there at `set`
    /// completes even if `clear` follows at once.
    /// Signature: `void(error_code)`.
    /// Errors: `operation_aborted` if cancelled, or the event was destroyed.
    /// Executor: the handler's associated executor, by default the event's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: waiting consumes nothing, so there is nothing to lose.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait(Token&& token = Token())
    {
        return detail::start_wait(request{this}, std::forward<Token>(token));
    }

    /// Sets the event, and lets all who wait go. No handler runs inside this call. Thread
    /// safety: as the policy says.
    void set() noexcept { this->state().raise(); }

    /// Resets the event: later waiters wait. Thread safety: as the policy says.
    void clear() noexcept { this->state().lower(); }

    /// Whether the event is set. Thread safety: as the policy says.
    [[nodiscard]] bool is_set() const noexcept { return this->state().is_raised(); }

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

/// The usual event: any thread, any executor.
using event = basic_event<>;

namespace local {

/// An event for one strand: no atomics, no locks, and one wake-up for all waiters.
using event = basic_event<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
