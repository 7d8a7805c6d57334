// SPDX-License-Identifier: BSL-1.0
// Trying again.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/call/supervised_call.hpp>
#include <turnstile/detail/util/random.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/resilience/detail/retry_supervisor.hpp>
#include <turnstile/resilience/detail/supervising_object.hpp>
#include <turnstile/resilience/retry_policy.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// Runs operations, and again when they fail, as its policy says.
///
/// Listeners: of every retry, as `retry_event`; after the policy's own `on_retry`, which also
/// hears of calls that outlive the object.
/// Destruction: what is under way goes on, and listeners are told nothing more. Thread safety: any
/// thread may call anything.
template <class Policy = retry_policy, class Executor = asio::any_io_executor,
          clock_policy Clock = default_clock>
class basic_retry : public detail::supervising_object<Executor, detail::retry_state> {
    using base = detail::supervising_object<Executor, detail::retry_state>;

public:
    using typename base::executor_type;
    using clock_type = Clock;
    using policy_type = Policy;

    /// What has happened so far. Each call that is over counts in one of the last seven, unless
    /// its handler was destroyed instead of called.
    struct statistics {
        std::uint64_t calls;         ///< Calls that began.
        std::uint64_t attempts;      ///< Attempts they have made.
        std::uint64_t succeeded;     ///< Calls that ended well...
        std::uint64_t cancelled;     ///< ...that were cancelled...
        std::uint64_t not_retryable; ///< ...whose failure was not worth another attempt...
        std::uint64_t exhausted;     ///< ...that had used up their attempts...
        std::uint64_t out_of_time;   ///< ...or their time...
        std::uint64_t over_budget;   ///< ...or the shared budget...
        std::uint64_t by_exception;  ///< ...or that threw: the policy, or `bad_alloc`.
    };

    template <class Other>
    struct rebind_executor {
        using other = basic_retry<Policy, Other, Clock>;
    };

    /// The executor is for handlers that have none.
    explicit basic_retry(const std::type_identity_t<Executor>& executor, Policy policy = Policy())
        : base(executor), policy_(std::make_shared<const Policy>(std::move(policy))),
          seeds_(policy_->settings().seed ? *policy_->settings().seed : detail::random_seed())
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_retry(Context& context, Policy policy = Policy())
        : basic_retry(context.get_executor(), std::move(policy))
    {
    }

    /// The policy given at construction.
    const Policy& policy() const noexcept { return *policy_; }

    /// Runs an operation, and again a copy of it if it fails.
    ///
    /// Completes when: an attempt succeeds, or the policy allows no other.
    /// Signature: the operation's; it must start with an `error_code` or an `exception_ptr`.
    /// Errors: those of the last attempt, as they are (`errc::timed_out` if it was over its
    /// time); `operation_aborted` if cancelled between two attempts, and what the attempt under
    /// way ends with if cancelled there; what the policy's own functions throw.
    /// Executor: the handler's; attempts run there in a strand.
    /// Cancellation: terminal, partial and total. Passed on to the attempt under way, after
    /// which there is no other; a delay ends at once.
    /// Cancel safety: that of the operation. Thread safety: any thread.
    template <repeatable_operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Token&& token = Token())
    {
        using signature = operation_signature_t<Op>;
        return detail::supervised_call(
            this->get_executor(), std::forward<Op>(op),
            [policy = policy_, state = this->state(),
             seed = seeds_.fetch_add(1, std::memory_order_relaxed)](auto handler, const auto& where,
                                                                    auto o) mutable {
                using runner =
                    detail::retry_supervisor<Policy, decltype(o), Clock, signature,
                                             decltype(handler), std::decay_t<decltype(where)>>;
                runner::run(
                    std::move(handler), where, [](runner& self) { self.begin(); },
                    std::move(policy), std::move(o), seed, std::move(state));
            },
            token);
    }
    template <class Op, class... Rest>
        requires detail::mistaken_repetition<Op, Rest...>
    auto async_call(Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// What it has done so far. Thread safe.
    statistics stats() const noexcept
    {
        const detail::retry_state& state = *this->state();
        return {state.read(state.calls),
                state.read(state.attempts),
                state.read(state.succeeded),
                state.read(state.cancelled),
                state.refusals(retry_refusal::not_retryable),
                state.refusals(retry_refusal::attempts),
                state.refusals(retry_refusal::deadline),
                state.refusals(retry_refusal::budget),
                state.read(state.by_exception)};
    }

private:
    std::shared_ptr<const Policy> policy_;
    std::atomic<std::uint64_t> seeds_;
};

/// The usual retry: any executor, the steady clock.
using retry = basic_retry<>;

/// Runs an operation with a policy of its own; see `basic_retry::async_call`. Without an
/// executor, the handler must have one, as a coroutine's has.
template <clock_policy Clock = default_clock, class Executor, class RetryIf, class Hint,
          repeatable_operation Op, operation_token_for<Op> Token = detail::call_token_t<Executor>>
auto async_retry(const Executor& executor, basic_retry_policy<RetryIf, Hint> policy, Op&& op,
                 Token&& token = Token())
{
    using policy_type = basic_retry_policy<RetryIf, Hint>;
    return basic_retry<policy_type, Executor, Clock>(executor, std::move(policy))
        .async_call(std::forward<Op>(op), std::forward<Token>(token));
}

template <clock_policy Clock = default_clock, class RetryIf, class Hint, repeatable_operation Op,
          operation_token_for<Op> Token = asio::use_awaitable_t<>>
auto async_retry(basic_retry_policy<RetryIf, Hint> policy, Op&& op, Token&& token = Token())
{
    using policy_type = basic_retry_policy<RetryIf, Hint>;
    return basic_retry<policy_type, detail::no_executor, Clock>(detail::no_executor(),
                                                                std::move(policy))
        .async_call(std::forward<Op>(op), std::forward<Token>(token));
}

template <class Executor, class RetryIf, class Hint, class Op, class... Rest>
    requires detail::mistaken_repetition<Op, Rest...>
auto async_retry(const Executor&, const basic_retry_policy<RetryIf, Hint>&, Op&&, Rest&&...)
{
    return detail::explain_operation<Op>();
}
template <class RetryIf, class Hint, class Op, class... Rest>
    requires detail::mistaken_repetition<Op, Rest...>
auto async_retry(const basic_retry_policy<RetryIf, Hint>&, Op&&, Rest&&...)
{
    return detail::explain_operation<Op>();
}

} // namespace turnstile::inline v0_1
