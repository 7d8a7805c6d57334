// SPDX-License-Identifier: BSL-1.0
// An auto-reset event: each set() lets one waiter through; one set is stored.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/permit_request.hpp>

#include <type_traits>

namespace turnstile::inline v0_1 {

/// A signal for one: each `set` lets one waiter through, and if nobody waits it is stored for
/// the next who comes. At most one is stored.
///
/// Fairness: strict FIFO.
/// Destruction: every waiter completes with `operation_aborted`.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_auto_reset_event
    : public detail::io_object<Executor, Threading, detail::semaphore_state<Threading>> {
    using base = detail::io_object<Executor, Threading, detail::semaphore_state<Threading>>;
    static constexpr auto by_hand = detail::semaphore_state<Threading>::by_hand;

public:
    using typename base::executor_type;

    template <class Other>
    struct rebind_executor {
        using other = basic_auto_reset_event<Other, Threading>;
    };

    /// An event with a signal stored from the start, or (the default) without.
    explicit basic_auto_reset_event(const std::type_identity_t<Executor>& executor,
                                    bool set = false)
        : base(executor, set ? 1U : 0U, 1U, detail::semaphore_state<Threading>::grants::nothing)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_auto_reset_event(Context& context, bool set = false)
        : basic_auto_reset_event(context.get_executor(), set)
    {
    }

    /// Waits for a signal, and uses it up.
    ///
    /// Completes when: a signal is there and everyone who came before has had theirs.
    /// Signature: `void(error_code)`.
    /// Errors: `operation_aborted` if cancelled, or the event was destroyed.
    /// Executor: the handler's associated executor, by default the event's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, it uses up no signal; one that had
    /// been granted already goes to the next waiter, or is stored unless one is already.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait(Token&& token = Token())
    {
        return detail::start_wait(request{this, this->state_pointer(), {}},
                                  std::forward<Token>(token));
    }

    /// Uses up the stored signal if there is one and nobody waits; never waits. Thread
    /// safety: as the policy says.
    [[nodiscard]] bool try_wait() noexcept { return this->state().try_acquire(1, by_hand); }

    /// Lets the first waiter go, or stores the signal; does nothing if one is stored already.
    /// No handler runs inside this call. Thread safety: as the policy says.
    void set() noexcept { this->state().release(1, by_hand); }

    /// Drops the stored signal, if there is one. Thread safety: as the policy says.
    void clear() noexcept { this->state().try_acquire(1, by_hand); }

    /// Whether a signal is stored: a hint, outdated as soon as it is returned.
    [[nodiscard]] bool is_set() const noexcept { return this->state().available() != 0; }

private:
    using request = detail::permit_request<basic_auto_reset_event, void, detail::single_permit>;
    friend request;
};

/// The usual auto-reset event: any thread, any executor.
using auto_reset_event = basic_auto_reset_event<>;

namespace local {

/// An auto-reset event for one strand: no atomics, no locks.
using auto_reset_event = basic_auto_reset_event<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
