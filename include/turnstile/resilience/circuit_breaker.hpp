// SPDX-License-Identifier: BSL-1.0
// A circuit breaker: stops calling what does not answer, and finds out when it does again.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/resilience/breaker_policy.hpp>
#include <turnstile/resilience/detail/breaker_call.hpp>
#include <turnstile/resilience/detail/breaker_state.hpp>
#include <turnstile/resilience/detail/classifier.hpp>
#include <turnstile/resilience/detail/held_call.hpp>
#include <turnstile/resilience/rejection.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// The right to make one call, from `basic_circuit_breaker::try_acquire`. Report how the call
/// went, once; one that is destroyed unreported counts as ignored, and makes room for another
/// probe. A report that comes when the state it was admitted in is over changes nothing.
///
/// Movable, not copyable. It may outlive its breaker, and the execution context: it keeps the
/// state, and then its report changes nothing. Not itself thread safe.
template <class State>
class [[nodiscard]] breaker_permit {
public:
    /// Holds nothing.
    breaker_permit() noexcept = default;
    breaker_permit(breaker_permit&&) noexcept = default;
    /// Ignores the call it stands for, then takes over the other's.
    breaker_permit& operator=(breaker_permit&&) noexcept = default;
    ~breaker_permit() = default;

    /// Whether the call may be made, and has not been reported yet.
    explicit operator bool() const noexcept { return static_cast<bool>(call_); }
    /// Whether it is a probe of a half-open circuit.
    [[nodiscard]] bool is_probe() const noexcept
    {
        return call_ && call_.ticket().slot != breaker_ticket::no_slot;
    }
    /// Of a permit that was not given: how long until one may be, `nanoseconds::max()` if that
    /// is unknown.
    [[nodiscard]] nanoseconds retry_after() const noexcept { return retry_after_; }

    /// Reports the call; does nothing if there is none, or it has been reported. Listeners
    /// may be called inside. Thread safety: as the breaker's policy says.
    void report(call_outcome outcome) noexcept { call_.report(outcome); }
    void success() noexcept { report(call_outcome::success); }
    void failure() noexcept { report(call_outcome::failure); }
    void ignore() noexcept { report(call_outcome::ignored); }

private:
    template <class, class, clock_policy>
    friend class basic_circuit_breaker;
    using held_type = detail::held_call<State*, breaker_ticket>;

    explicit breaker_permit(State& state) noexcept
        : call_([&](breaker_ticket& ticket) {
              return state.admit_call(ticket, retry_after_) ? &state : nullptr;
          })
    {
    }

    nanoseconds retry_after_{}; // first: it is written while the call is admitted
    held_type call_;
};

/// Lets calls pass while they go well. When too many fail or are slow it opens, and calls are
/// rejected without being made; after a while it lets a few probes pass (half-open), and closes
/// if they succeed or opens again if one does not. See `breaker_options` for what is too many.
///
/// The end of the open time is noticed by the next call, or when it comes if somebody waits
/// for a state. A cancelled or dropped probe makes room for another, and one that hangs has
/// failed at its deadline: it never sticks half-open.
///
/// Listeners: of every change of state, as `circuit_change`.
/// Destruction: every waiter completes with `operation_aborted`; calls that are out go on,
/// and nobody is told of their end. Permits may outlive it.
template <class Executor = asio::any_io_executor, class Threading = thread_safe,
          clock_policy Clock = default_clock>
class basic_circuit_breaker
    : public detail::listening_object<Executor, Threading,
                                      detail::breaker_state<Threading, Clock>> {
    using state_type = detail::breaker_state<Threading, Clock>;
    using base = detail::listening_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;
    using clock_type = Clock;
    using permit_type = breaker_permit<state_type>;

    template <class Other>
    struct rebind_executor {
        using other = basic_circuit_breaker<Other, Threading, Clock>;
    };

    /// A closed circuit. Throws `system_error` with `errc::invalid_argument` if an option is
    /// out of its range.
    explicit basic_circuit_breaker(const std::type_identity_t<Executor>& executor,
                                   const breaker_options& options = {})
        : base(executor, options)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_circuit_breaker(Context& context, const breaker_options& options = {})
        : basic_circuit_breaker(context.get_executor(), options)
    {
    }

    ~basic_circuit_breaker() { this->state_pointer()->orphan(); }

    /// Makes the call, if the circuit lets it pass, and takes note of how it went.
    ///
    /// Completes when: the operation does; at once, without starting it, when rejected.
    /// Signature: that of the operation; its results pass unchanged.
    /// Errors: those of the operation, also what it throws while it is started;
    /// `errc::circuit_open` if it was rejected (as a `rejection` where failures are exceptions,
    /// which says when to try again; so does `retry_after`).
    /// Executor: the handler's associated executor, by default the breaker's own.
    /// Cancellation: the operation's. A cancelled call is ignored, unless the options'
    /// `classify` says otherwise.
    /// Cancel safety: the operation's; a cancelled probe makes room for another.
    /// Thread safety: as the policy says; the call's end counts as a call of the breaker.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
        requires(!detail::classifier_for<Token, Op>)
    auto async_call(Op&& op, Token&& token = Token())
    {
        return call(std::forward<Op>(op), detail::usual_classifier(), std::forward<Token>(token));
    }

    /// The same, with a rule for this operation: `classify(results...)` gives the
    /// `call_outcome`, and a `classify` that throws means failure.
    template <operation Op, detail::classifier_for<Op> Classify,
              operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Classify classify, Token&& token = Token())
    {
        return call(std::forward<Op>(op), std::move(classify), std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires detail::mistaken_operation<Op, Rest...>
    auto async_call(Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// Asks to make one call. An empty permit means that it is rejected, and says when to try
    /// again. Through a closed circuit this takes no lock, and reads no clock unless calls are
    /// timed. Thread safety: as the policy says.
    [[nodiscard]] permit_type try_acquire() noexcept { return permit_type(block()); }

    /// Waits until the circuit is in that state.
    ///
    /// Completes when: it is in that state, or enters it, even if it leaves it at once.
    /// Signature: `void(error_code)`.
    /// Errors: `operation_aborted` if cancelled, or the breaker was destroyed.
    /// Executor: the handler's associated executor, by default the breaker's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: there is nothing to lose.
    /// Fairness: all who wait for a state go at once. Thread safety: as the policy says.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait_state(circuit_state wanted, Token&& token = Token())
    {
        return detail::start_wait(request{this, wanted}, std::forward<Token>(token));
    }

    /// Opens the circuit until `reset` or `force_closed`. Thread safety: as the policy says,
    /// as of all that follows.
    void force_open() noexcept { block().force_open(); }
    /// Closes it until `reset` or `force_open`, whatever is reported.
    void force_closed() noexcept { block().force_closed(); }
    /// Closes it, with nothing counted. Calls that are out count no more.
    void reset() noexcept { block().reset(); }

    /// The state it is in now.
    [[nodiscard]] circuit_state state() const noexcept { return block().state(); }
    /// How long until a call may be let through; zero if one would be now, and
    /// `nanoseconds::max()` if nobody can tell.
    [[nodiscard]] nanoseconds retry_after() const noexcept { return stats().retry_after; }
    /// Its figures now, and what it has done so far.
    [[nodiscard]] breaker_stats stats() const noexcept { return block().stats(); }

private:
    using request = detail::circuit_request<basic_circuit_breaker>;
    friend request;

    state_type& block() const noexcept { return base::state(); }

    template <class Op, class Classify, class Token>
    auto call(Op&& op, Classify classify, Token&& token)
    {
        return asio::async_initiate<Token, operation_signature_t<Op>>(
            detail::initiate_breaker_call<Executor, state_type>(this->executor(), block()), token,
            std::forward<Op>(op), std::move(classify));
    }
};

/// The usual circuit breaker: any thread, any executor.
using circuit_breaker = basic_circuit_breaker<>;

namespace local {

/// A circuit breaker for one strand: no atomics, no locks.
using circuit_breaker = basic_circuit_breaker<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
