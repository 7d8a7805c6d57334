// SPDX-License-Identifier: BSL-1.0
// Starting a second attempt when the first takes long: whoever succeeds first wins.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/call/supervised_call.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/resilience/detail/hedge_supervisor.hpp>
#include <turnstile/resilience/detail/supervising_object.hpp>
#include <turnstile/resilience/hedge_policy.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// Runs operations, and starts another attempt at one that takes longer than usual.
///
/// Only for operations that may run twice at the same time, and be cancelled.
/// Listeners: of every attempt but the first that begins, or wins, as `hedge_event`.
/// Destruction: what is under way goes on, and listeners are told nothing more. Thread safety: any
/// thread may call anything.
template <class Executor = asio::any_io_executor, clock_policy Clock = default_clock>
class basic_hedge : public detail::supervising_object<Executor, detail::hedge_state> {
    using base = detail::supervising_object<Executor, detail::hedge_state>;

public:
    using typename base::executor_type;
    using clock_type = Clock;

    /// What has happened so far.
    struct statistics {
        std::uint64_t calls;     ///< Calls that began.
        std::uint64_t attempts;  ///< Attempts they have made.
        std::uint64_t hedged;    ///< Calls with more than one attempt...
        std::uint64_t hedge_won; ///< ...of which a later one succeeded first.
        nanoseconds delay;       ///< After which a call that began now would be hedged.
    };

    template <class Other>
    struct rebind_executor {
        using other = basic_hedge<Other, Clock>;
    };

    /// The executor is for handlers that have none.
    basic_hedge(const std::type_identity_t<Executor>& executor, const hedge_policy& policy)
        : base(executor, policy)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    basic_hedge(Context& context, const hedge_policy& policy)
        : basic_hedge(context.get_executor(), policy)
    {
    }

    /// Runs an operation, and copies of it beside it while it does not complete.
    ///
    /// A failure starts the next attempt at once, if there is one left.
    /// Completes when: an attempt has succeeded, or all have failed; and all the others, which
    /// are cancelled, are over.
    /// Signature: the operation's; it must start with an `error_code` or an `exception_ptr`.
    /// Errors: if all attempts fail, what the last one to complete says; `operation_aborted`
    /// if cancelled.
    /// Executor: the handler's; attempts run there in a strand.
    /// Cancellation: terminal, partial and total. Passed on to all attempts; no more begin.
    /// Cancel safety: that of the operation; the result of a loser that succeeds nonetheless
    /// is dropped. Thread safety: any thread.
    template <repeatable_operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Token&& token = Token())
    {
        using signature = operation_signature_t<Op>;
        return detail::supervised_call(
            this->get_executor(), std::forward<Op>(op),
            [state = this->state()](auto handler, const auto& where, auto o) mutable {
                using runner =
                    detail::hedge_supervisor<decltype(o), Clock, signature, decltype(handler),
                                             std::decay_t<decltype(where)>>;
                runner::run(
                    std::move(handler), where, [](runner& self) { self.begin(); }, std::move(o),
                    std::move(state));
            },
            token);
    }
    template <class Op, class... Rest>
        requires detail::mistaken_repetition<Op, Rest...>
    auto async_call(Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// What it has done so far. Thread safe.
    statistics stats() const
    {
        const detail::hedge_state& state = *this->state();
        return {state.read(state.calls), state.read(state.attempts), state.read(state.hedged),
                state.read(state.hedge_won), state.delay()};
    }
};

/// The usual hedge: any executor, the steady clock.
using hedge = basic_hedge<>;

/// Runs an operation with a policy of its own; see `basic_hedge::async_call`. Without an
/// executor, the handler must have one, as a coroutine's has.
template <clock_policy Clock = default_clock, class Executor, repeatable_operation Op,
          operation_token_for<Op> Token = detail::call_token_t<Executor>>
auto async_hedge(const Executor& executor, const hedge_policy& policy, Op&& op,
                 Token&& token = Token())
{
    return basic_hedge<Executor, Clock>(executor, policy)
        .async_call(std::forward<Op>(op), std::forward<Token>(token));
}

template <clock_policy Clock = default_clock, repeatable_operation Op,
          operation_token_for<Op> Token = asio::use_awaitable_t<>>
auto async_hedge(const hedge_policy& policy, Op&& op, Token&& token = Token())
{
    return basic_hedge<detail::no_executor, Clock>(detail::no_executor(), policy)
        .async_call(std::forward<Op>(op), std::forward<Token>(token));
}

template <class Executor, class Op, class... Rest>
    requires detail::mistaken_repetition<Op, Rest...>
auto async_hedge(const Executor&, const hedge_policy&, Op&&, Rest&&...)
{
    return detail::explain_operation<Op>();
}
template <class Op, class... Rest>
    requires detail::mistaken_repetition<Op, Rest...>
auto async_hedge(const hedge_policy&, Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

} // namespace turnstile::inline v0_1
