// SPDX-License-Identifier: BSL-1.0
// An auto-reset event: each set() completes one wait. If no operation waits, one signal is stored.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A signal that one waiter consumes. If no operation waits, `set` stores the signal for the next
/// `async_wait`; at most one signal is stored.
///
/// @par Fairness
/// Strictly FIFO.
/// @par Thread safety
/// Any thread may call any function of an `auto_reset_event`; a `local::auto_reset_event` is
/// confined to one strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_auto_reset_event
    : public detail::io_object<Executor, Threading, detail::semaphore_state<Threading>> {
    using state_type = detail::semaphore_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;

    template <class Other>
    struct rebind_executor {
        using other = basic_auto_reset_event<Other, Threading>;
    };

    /// Makes an event. Handlers without an associated executor run on `executor`.
    ///
    /// @param set Whether a signal is stored at first.
    explicit basic_auto_reset_event(const std::type_identity_t<Executor>& executor,
                                    bool set = false)
        : base(executor, set ? 1U : 0U, 1U, state_type::no_handle)
    {
    }

    /// Equivalent to `basic_auto_reset_event(context.get_executor(), set)`.
    template <detail::execution_context Context>
    explicit basic_auto_reset_event(Context& context, bool set = false)
        : basic_auto_reset_event(context.get_executor(), set)
    {
    }

    /// Waits for a signal and consumes it.
    ///
    /// @par Completes when
    /// a signal is available and every earlier waiter has consumed one.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the event was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the event's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs consumes no signal. A signal that was
    /// granted already is handed over to the next waiter, or stored if none is stored.
    /// @par Fairness
    /// FIFO.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait(Token&& token = Token())
    {
        return detail::start_wait(request{this, this->state_pointer(), {}},
                                  std::forward<Token>(token));
    }

    /// Consumes the stored signal if there is one and no operation waits; never waits. Returns
    /// whether it has consumed a signal.
    [[nodiscard]] bool try_wait() noexcept
    {
        return this->state().try_acquire(1, state_type::no_handle);
    }

    /// Grants the signal to the first waiter, or stores it. No effect if a signal is stored
    /// already. No handler runs inside this call.
    void set() noexcept { this->state().release(1, state_type::no_handle); }

    /// Drops the stored signal, if there is one.
    void clear() noexcept { this->state().try_acquire(1, state_type::no_handle); }

    /// Whether a signal is stored: a hint, outdated as soon as it is returned.
    [[nodiscard]] bool is_set() const noexcept { return this->state().available() != 0; }

private:
    using request = detail::semaphore_request<basic_auto_reset_event, void, detail::single_permit>;
    friend request;
};

/// The auto-reset event for any thread and any executor.
using auto_reset_event = basic_auto_reset_event<>;

namespace local {

/// The auto-reset event for one strand: it needs no atomic operations and no internal lock.
using auto_reset_event = basic_auto_reset_event<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
