// SPDX-License-Identifier: BSL-1.0
// A hedge starts a second attempt at an operation that takes long; the first success is the result.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/call/supervised_call.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/resilience/detail/hedge_supervisor.hpp>
#include <turnstile/resilience/detail/supervising_object.hpp>
#include <turnstile/resilience/hedge_options.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// Runs operations, and starts a further attempt at an operation that takes longer than usual. Use
/// it only for operations that may run twice at the same time, and that can be cancelled.
///
/// Listeners receive each start and each success of a further attempt as a `hedge_event`.
///
/// @par Thread safety
/// Any thread may call any function.
/// @par Destruction
/// Outstanding calls continue. No listener is called afterwards.
template <class Executor = asio::any_io_executor, clock_policy Clock = default_clock>
class basic_hedge : public detail::supervising_object<Executor, detail::hedge_state> {
    using base = detail::supervising_object<Executor, detail::hedge_state>;

public:
    using typename base::executor_type;
    /// The clock that measures delays and latencies.
    using clock_type = Clock;

    /// The same type of hedge for another executor.
    template <class Other>
    struct rebind_executor {
        using other = basic_hedge<Other, Clock>;
    };

    /// A hedge with options for all its calls. The executor is used for handlers without an
    /// associated executor.
    ///
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if an option breaks its rule.
    explicit basic_hedge(const std::type_identity_t<Executor>& executor,
                         const hedge_options& options = {})
        : base(executor, options)
    {
    }

    /// Equivalent to the constructor with `context.get_executor()`.
    template <detail::execution_context Context>
    explicit basic_hedge(Context& context, const hedge_options& options = {})
        : basic_hedge(context.get_executor(), options)
    {
    }

    /// Runs an operation, and further attempts while it does not complete. Each attempt starts a
    /// copy of `op`. A failed attempt starts the next one at once.
    ///
    /// @par Completes when
    /// an attempt has succeeded or all have failed, and all other attempts, which are cancelled,
    /// have completed.
    /// @par Completion signature
    /// The operation's. It must start with an `error_code` or an `exception_ptr`.
    /// @par Errors
    /// If all attempts fail, the result of the last one to complete; `operation_aborted` if
    /// cancelled.
    /// @par Executor
    /// The handler's associated executor, by default the object's. Attempts run there in a strand.
    /// @par Per-operation cancellation
    /// Terminal, partial and total. It is passed on to all attempts; no further attempt begins.
    /// @par Cancel safety
    /// The operation's. The result of a cancelled attempt that succeeds nevertheless is dropped.
    template <repeatable_operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Token&& token = Token())
    {
        using signature = operation_signature_t<Op>;
        return detail::supervised_call(
            this->get_executor(), std::forward<Op>(op),
            [state = this->state()](auto handler, const auto& where, auto o) mutable {
                detail::run_with_hedges<Clock, signature>(std::move(handler), where, std::move(o),
                                                          std::move(state));
            },
            token);
    }
    /// Equivalent to `async_call(op, token)` for an operation that takes the number of the attempt,
    /// the first of which is 1: a function `op(std::uint32_t)` that returns an `awaitable`, or
    /// `op(std::uint32_t, token)`.
    template <detail::takes_attempt_number Op,
              operation_token_for<detail::numbered_operation<std::decay_t<Op>>> Token =
                  default_token_t<Executor>>
    auto async_call(Op&& op, Token&& token = Token())
    {
        return async_call(detail::with_attempt_number(std::forward<Op>(op)),
                          std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires detail::mistaken_repetition<Op, Rest...>
    auto async_call(Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// The figures of the hedge at this time.
    [[nodiscard]] hedge_stats stats() const
    {
        const detail::hedge_state& state = *this->state();
        return {state.read(state.calls), state.read(state.attempts), state.read(state.hedged),
                state.read(state.hedge_won), state.delay()};
    }
};

/// A hedge for any executor, with the steady clock.
using hedge = basic_hedge<>;

/// Runs an operation with its own options; see `basic_hedge::async_call`. A hedge for one call has
/// no latencies to compute a percentile from: it uses the delay.
///
/// @param executor The executor of a handler without an associated executor.
template <clock_policy Clock = default_clock, class Executor, repeatable_operation Op,
          operation_token_for<Op> Token = detail::call_token_t<Executor>>
auto async_hedge(const Executor& executor, const hedge_options& options, Op&& op,
                 Token&& token = Token())
{
    return basic_hedge<Executor, Clock>(executor, options)
        .async_call(std::forward<Op>(op), std::forward<Token>(token));
}

/// Equivalent to `async_hedge` with an executor, for handlers with an associated executor, such as
/// the handler of a coroutine.
template <clock_policy Clock = default_clock, repeatable_operation Op,
          operation_token_for<Op> Token = asio::use_awaitable_t<>>
auto async_hedge(const hedge_options& options, Op&& op, Token&& token = Token())
{
    return basic_hedge<detail::no_executor, Clock>(detail::no_executor(), options)
        .async_call(std::forward<Op>(op), std::forward<Token>(token));
}

template <class Executor, class Op, class... Rest>
    requires detail::mistaken_repetition<Op, Rest...>
auto async_hedge(const Executor&, const hedge_options&, Op&&, Rest&&...)
{
    return detail::explain_operation<Op>();
}
template <class Op, class... Rest>
    requires detail::mistaken_repetition<Op, Rest...>
auto async_hedge(const hedge_options&, Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

} // namespace turnstile::inline v0_1
