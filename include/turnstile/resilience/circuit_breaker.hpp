// SPDX-License-Identifier: BSL-1.0
// A circuit breaker refuses calls to a service that fails, and detects when the service works
// again.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/resilience/circuit_breaker_options.hpp>
#include <turnstile/resilience/detail/admitted_call.hpp>
#include <turnstile/resilience/detail/circuit_breaker_call.hpp>
#include <turnstile/resilience/detail/circuit_breaker_state.hpp>
#include <turnstile/resilience/detail/coroutine_call.hpp>
#include <turnstile/resilience/rejection.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// Permission to make one call, from `try_acquire` of a circuit breaker. The holder reports the
/// outcome of the call, once. A permit that is destroyed without a report counts as ignored, and
/// makes room for another probe. A report after the state that admitted the call has ended changes
/// nothing.
///
/// Movable, not copyable.
///
/// @par Thread safety
/// The permit itself: none. Its report counts as a call to the breaker.
/// @par Destruction
/// A permit may outlive its breaker and the execution context; its report then changes nothing.
template <class Pointer>
class [[nodiscard]] circuit_breaker_permit {
public:
    /// An empty permit.
    circuit_breaker_permit() noexcept = default;
    circuit_breaker_permit(circuit_breaker_permit&&) noexcept = default;
    /// Reports the call of this permit as ignored, and takes over the other permit.
    circuit_breaker_permit& operator=(circuit_breaker_permit&&) noexcept = default;
    ~circuit_breaker_permit() = default;

    /// Whether the call may be made, and has not been reported.
    explicit operator bool() const noexcept { return static_cast<bool>(call_); }
    /// Whether the call is a probe of a half-open circuit.
    [[nodiscard]] bool is_probe() const noexcept
    {
        return call_ && call_.ticket().probe != circuit_breaker_ticket::no_probe;
    }
    /// Of an empty permit from `try_acquire`: the time until a call may be admitted,
    /// `nanoseconds::max()` if that is unknown.
    [[nodiscard]] nanoseconds retry_after() const noexcept { return retry_after_; }

    /// Reports the outcome of the call; does nothing if the permit is empty. Listeners may be
    /// called inside.
    void report(call_outcome outcome) noexcept { call_.report(outcome); }
    /// Equivalent to `report(call_outcome::success)`.
    void success() noexcept { report(call_outcome::success); }
    /// Equivalent to `report(call_outcome::failure)`.
    void failure() noexcept { report(call_outcome::failure); }
    /// Equivalent to `report(call_outcome::ignored)`.
    void ignore() noexcept { report(call_outcome::ignored); }
    /// Gives the permit back without an outcome, as its destructor does. Equivalent to `ignore()`.
    void release() noexcept { ignore(); }

private:
    template <class, class, clock_policy>
    friend class basic_circuit_breaker;
    template <class, class, class, class, class, clock_policy>
    friend class basic_keyed_circuit_breaker;
    using call_type = detail::admitted_call<Pointer, circuit_breaker_ticket>;

    explicit circuit_breaker_permit(const Pointer& state) noexcept
        : call_([&](circuit_breaker_ticket& ticket) {
              return state->admit_call(ticket, retry_after_) ? state : Pointer();
          })
    {
    }

    nanoseconds retry_after_{}; // before call_, whose initialiser writes it
    call_type call_;
};

/// Calls pass while they succeed. When too many calls fail or are slow, the circuit opens, and
/// further calls are refused without being started. After a while the circuit is half-open: a few
/// calls pass as probes. The circuit closes if they succeed, and opens again if one fails. See
/// `circuit_breaker_options` for the thresholds.
///
/// The next call detects the end of the open time; while operations wait for a state, a timer does.
/// A probe that is cancelled or destroyed makes room for another, and a probe that does not
/// complete has failed at its deadline, so the circuit does not stay half-open.
///
/// Listeners receive each change of the state as a `circuit_breaker_event`.
///
/// @par Thread safety
/// As the threading policy says. The completion of a call counts as a call to the breaker.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Outstanding calls continue; their outcome is
/// not reported to classifiers or listeners.
template <class Executor = asio::any_io_executor, class Threading = thread_safe,
          clock_policy Clock = default_clock>
class basic_circuit_breaker
    : public detail::listening_object<Executor, Threading,
                                      detail::circuit_breaker_state<Threading, Clock>> {
    using state_type = detail::circuit_breaker_state<Threading, Clock>;
    using base = detail::listening_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;
    /// The clock that measures open times, deadlines and slow calls.
    using clock_type = Clock;
    /// The permit that `try_acquire` returns.
    using permit_type = circuit_breaker_permit<state_type*>;

    /// The same type of breaker for another executor.
    template <class Other>
    struct rebind_executor {
        using other = basic_circuit_breaker<Other, Threading, Clock>;
    };

    /// A closed circuit.
    ///
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if an option breaks its rule.
    explicit basic_circuit_breaker(const std::type_identity_t<Executor>& executor,
                                   const circuit_breaker_options& options = {})
        : base(executor, options)
    {
    }

    /// Equivalent to the constructor with `context.get_executor()`.
    template <detail::execution_context Context>
    explicit basic_circuit_breaker(Context& context, const circuit_breaker_options& options = {})
        : basic_circuit_breaker(context.get_executor(), options)
    {
    }

    ~basic_circuit_breaker() { this->state_pointer()->orphan(); }

    /// Runs an operation if the circuit admits it, and records its outcome.
    ///
    /// @par Completes when
    /// the operation completes; at once, without starting the operation, if the call is refused.
    /// @par Completion signature
    /// The operation's. Its results pass through unchanged.
    /// @par Errors
    /// The operation's, including an exception that its initiation throws; `errc::circuit_open` if
    /// the call is refused. Where failures are exceptions, a refusal is a `rejection`, which
    /// carries the time until the next try; otherwise `retry_after()` returns it.
    /// @par Executor
    /// The handler's associated executor, by default the breaker's.
    /// @par Per-operation cancellation
    /// The operation's. A cancelled call is ignored, unless `classify` says otherwise.
    /// @par Cancel safety
    /// The operation's. A cancelled probe makes room for another.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
        requires(!detail::classifier_for<Token, Op>)
    auto async_call(Op&& op, Token&& token = Token())
    {
        return call(std::forward<Op>(op), detail::default_classifier(), std::forward<Token>(token));
    }

    /// Equivalent to `async_call(op, token)` with a classifier for this operation.
    ///
    /// @param classify `classify(results...)` returns the `call_outcome` of successful and failed
    /// calls. If it throws, the call has failed.
    template <operation Op, detail::classifier_for<Op> Classify,
              operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Classify classify, Token&& token = Token())
    {
        return call(std::forward<Op>(op), std::move(classify), std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires detail::mistaken_operation<Op, Rest...>
    auto async_call(Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// Acquires a permit for one call. An empty permit means that the call is refused;
    /// its `retry_after` is the time until the next try. While the circuit is closed, no lock is
    /// taken, and the clock is read only if calls are timed.
    [[nodiscard]] permit_type try_acquire() noexcept { return permit_type(&block()); }

    /// Equivalent to `try_acquire()`; sets `ec` to `errc::circuit_open` if the permit is empty, and
    /// clears it otherwise.
    [[nodiscard]] permit_type try_acquire(error_code& ec) noexcept
    {
        permit_type permit = try_acquire();
        ec = permit ? error_code() : make_error_code(errc::circuit_open);
        return permit;
    }

    /// Waits until the circuit is in a state.
    ///
    /// @par Completes when
    /// the circuit is in the state `wanted` or enters it, even if it leaves it at once.
    /// @par Completion signature
    /// `void(error_code)`
    /// @par Errors
    /// `operation_aborted` if cancelled, or if the breaker is destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the breaker's.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// The wait consumes nothing.
    /// @par Fairness
    /// A change of the state completes all waiters for the new state.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait_state(circuit_state wanted, Token&& token = Token())
    {
        return detail::start_wait(request{this, wanted}, std::forward<Token>(token));
    }

    /// Opens the circuit until `reset` or `force_closed`.
    void force_open() noexcept { block().force_open(); }
    /// Closes the circuit until `reset` or `force_open`, regardless of the outcome of calls.
    void force_closed() noexcept { block().force_closed(); }
    /// Closes the circuit and clears the window. The outcome of outstanding calls is not counted.
    void reset() noexcept { block().reset(); }

    /// The state of the circuit.
    [[nodiscard]] circuit_state state() const noexcept { return block().state(); }
    /// The time until a call may be admitted: zero if a call would be admitted at once, and
    /// `nanoseconds::max()` if it is unknown.
    [[nodiscard]] nanoseconds retry_after() const noexcept { return stats().retry_after; }
    /// The figures of the breaker at this time.
    [[nodiscard]] circuit_breaker_stats stats() const noexcept { return block().stats(); }

private:
    using request = detail::circuit_breaker_request<basic_circuit_breaker>;
    friend request;

    state_type& block() const noexcept { return base::state(); }

    template <class Op, class Classify, class Token>
    auto call(Op&& op, Classify classify, Token&& token)
    {
        if constexpr (detail::called_in_coroutine<Op, Token>)
            return detail::call_in_coroutine(
                detail::call_frame(), detail::circuit_breaker_call_request<state_type*>{&block()},
                std::decay_t<Op>(std::forward<Op>(op)), std::move(classify));
        else
            return asio::async_initiate<Token, operation_signature_t<Op>>(
                detail::circuit_breaker_initiation<Executor, state_type*>(this->executor(),
                                                                          &block()),
                token, std::forward<Op>(op), std::move(classify));
    }
};

/// A circuit breaker for any thread and any executor.
using circuit_breaker = basic_circuit_breaker<>;

namespace local {

/// A circuit breaker for one strand: no atomics, no locks.
using circuit_breaker = basic_circuit_breaker<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
