// SPDX-License-Identifier: BSL-1.0
// Timeouts, retries, breakers, limits... around an operation, in the order they are written.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/call/supervised_call.hpp>
#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>
#include <turnstile/resilience/detail/staged_operation.hpp>
#include <turnstile/resilience/hedge.hpp>
#include <turnstile/resilience/rate_limiter.hpp>
#include <turnstile/resilience/retry.hpp>
#include <turnstile/resilience/timeout.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {
namespace detail {

template <class Policy, class Executor, class Clock>
constexpr bool is_repeating<basic_retry<Policy, Executor, Clock>> = true;
template <class Executor, class Clock>
constexpr bool is_repeating<basic_hedge<Executor, Clock>> = true;

} // namespace detail

/// Stages around an operation, from the outside in:
/// `pipeline(executor).timeout(2s).retry(policy).circuit_breaker(breaker).timeout(200ms)`
/// gives each attempt 200 ms, lets the breaker see every attempt, and all of them 2 s.
///
/// A value; each function returns a longer pipeline. Timeouts, retries and hedges belong to the
/// pipeline and its copies; breakers, limiters, bulkheads and other stages are the caller's,
/// must outlive it, and may be shared with others.
/// Thread safety: that of the stages.
template <class Executor, clock_policy Clock, class... Stages>
class basic_pipeline {
    // Whether it is no operation, or one that cannot be repeated although a stage does so.
    template <class Op>
    static constexpr bool is_mistaken =
        !((detail::is_repeating<Stages> || ...) ? repeatable_operation<Op> : operation<Op>);

public:
    using executor_type = Executor;

    explicit basic_pipeline(const Executor& executor, std::shared_ptr<Stages>... stages)
        : executor_(executor), stages_(std::move(stages)...)
    {
    }

    executor_type get_executor() const noexcept { return executor_; }

    /// A time limit on everything that follows.
    template <class Rep, class Period>
    auto timeout(std::chrono::duration<Rep, Period> limit) const
    {
        return own(std::make_shared<basic_timeout<Executor, Clock>>(executor_, limit));
    }
    template <detail::number_without_unit T>
    auto timeout(T) const
    {
        static_assert(detail::is_never<T>, "timeout() takes a duration with a unit: timeout(2s).");
        return *this;
    }

    /// Repeats everything that follows.
    template <class RetryIf, class Hint>
    auto retry(basic_retry_policy<RetryIf, Hint> policy) const
    {
        using stage = basic_retry<basic_retry_policy<RetryIf, Hint>, Executor, Clock>;
        return own(std::make_shared<stage>(executor_, std::move(policy)));
    }

    /// Hedges everything that follows.
    auto hedge(const hedge_policy& policy) const
    {
        return own(std::make_shared<basic_hedge<Executor, Clock>>(executor_, policy));
    }

    /// Lets everything that follows pass while the circuit is closed.
    template <class... Ts>
    auto circuit_breaker(basic_circuit_breaker<Ts...>& breaker) const
    {
        return stage(breaker);
    }
    template <class T>
    auto circuit_breaker(T&&) const
    {
        static_assert(detail::is_never<T>, "circuit_breaker() takes a basic_circuit_breaker by "
                                           "reference, one that outlives the pipeline. Any "
                                           "other stage goes to stage().");
        return *this;
    }

    /// Starts everything that follows only at a certain rate.
    template <class... Ts>
    auto rate_limit(basic_rate_limiter<Ts...>& limiter) const
    {
        return stage(limiter);
    }
    template <class T>
    auto rate_limit(T&&) const
    {
        static_assert(detail::is_never<T>, "rate_limit() takes a basic_rate_limiter by reference, "
                                           "one that outlives the pipeline. Any "
                                           "other stage goes to stage().");
        return *this;
    }

    /// Runs only so many at the same time.
    template <class... Ts>
    auto bulkhead(basic_bulkhead<Ts...>& b) const
    {
        return stage(b);
    }
    template <class T>
    auto bulkhead(T&&) const
    {
        static_assert(
            detail::is_never<T>,
            "bulkhead() takes a basic_bulkhead by reference, one that outlives the pipeline. Any "
            "other stage goes to stage().");
        return *this;
    }

    /// Any other stage; see `stage_for`. An lvalue that outlives the pipeline.
    template <class Stage>
    auto stage(Stage& s) const
    {
        return own(std::shared_ptr<Stage>(std::shared_ptr<void>(), &s));
    }
    template <class Stage>
    void stage(const Stage&&) const = delete; // it would not live long enough

    /// The stage number I, counted from the outside: for its `stats()`.
    template <std::size_t I>
    auto& get() const noexcept
    {
        return *std::get<I>(stages_);
    }

    /// Runs an operation inside all stages.
    ///
    /// Completes when: the outermost stage does. Signature: the operation's; with a timeout,
    /// retry, or whatever else may fail, it must start with an `error_code` or an
    /// `exception_ptr`. Errors: those of the operation, and of the stages.
    /// Executor: the handler's, by default that of the pipeline.
    /// Cancellation, cancel safety: passed on inwards; see the stages.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
        requires(!is_mistaken<Op>)
    auto async_run(Op&& op, Token&& token = Token()) const
    {
        return detail::supervised_call(
            executor_, wrap<sizeof...(Stages)>(std::decay_t<Op>(std::forward<Op>(op))),
            [](auto handler, const auto& where, auto wrapped) {
                using handler_type = decltype(handler);
                if constexpr (detail::needs_executor<handler_type, detail::no_executor>)
                    detail::start(std::move(wrapped), where,
                                  asio::bind_executor(where, std::move(handler)));
                else
                    detail::start(std::move(wrapped), where, std::move(handler));
            },
            token);
    }
    template <class Op, class... Rest>
        requires(is_mistaken<Op>&& detail::no_probe<Rest...>)
    auto async_run(Op&&, Rest&&...) const { return detail::explain_operation<Op>(); }

    /// The same: a pipeline is a stage itself.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
        requires(!is_mistaken<Op>)
    auto async_call(Op&& op, Token&& token = Token()) const
    {
        return async_run(std::forward<Op>(op), std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires(is_mistaken<Op>&& detail::no_probe<Rest...>)
    auto async_call(Op&&, Rest&&...) const { return detail::explain_operation<Op>(); }

private:
    template <class Stage>
    auto own(std::shared_ptr<Stage> s) const
    {
        return std::apply(
            [&](const auto&... stages) {
                return basic_pipeline<Executor, Clock, Stages..., Stage>(executor_, stages...,
                                                                         std::move(s));
            },
            stages_);
    }

    // The operation inside the first N stages, whatever is in it already.
    template <std::size_t N, class Op>
    auto wrap(Op op) const
    {
        if constexpr (N == 0) {
            return op;
        } else {
            using stage_type = std::tuple_element_t<N - 1, std::tuple<Stages...>>;
            if constexpr (stage_for<stage_type, Op>) {
                return wrap<N - 1>(detail::staged_operation<stage_type, Op>{
                    std::get<N - 1>(stages_), std::move(op)});
            } else {
                static_assert(detail::is_never<Op>,
                              "A stage of this pipeline cannot run the operation: async_call(op, "
                              "token) must be an initiating function with the operation's "
                              "signature.");
                return op;
            }
        }
    }

    Executor executor_;
    std::tuple<std::shared_ptr<Stages>...> stages_;
};

/// An empty pipeline, to be continued: it runs an operation as it is. The executor is for
/// handlers that have none. Whatever its type, the pipeline's is `any_io_executor`, so that calls
/// can be awaited in every `awaitable<T>`; for another, name it:
/// `basic_pipeline<Executor, Clock>(executor)`.
template <clock_policy Clock = default_clock>
auto pipeline(const asio::any_io_executor& executor)
{
    return basic_pipeline<asio::any_io_executor, Clock>(executor);
}

template <clock_policy Clock = default_clock, detail::execution_context Context>
auto pipeline(Context& context)
{
    return basic_pipeline<asio::any_io_executor, Clock>(context.get_executor());
}

} // namespace turnstile::inline v0_1
