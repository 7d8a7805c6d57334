// SPDX-License-Identifier: BSL-1.0
// A pipeline runs an operation inside several stages: timeouts, retries, breakers, limits.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/call_coroutine.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/call/supervised_call.hpp>
#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>
#include <turnstile/resilience/detail/owned_stage.hpp>
#include <turnstile/resilience/hedge.hpp>
#include <turnstile/resilience/rate_limiter.hpp>
#include <turnstile/resilience/retry.hpp>
#include <turnstile/resilience/stage.hpp>
#include <turnstile/resilience/timeout.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {
namespace detail {

// An operation inside a stage, as an operation: it runs the inner one through the stage.
template <class Stage, class Op>
struct staged_operation {
    std::shared_ptr<Stage> stage;
    Op op;

    void set_attempt(std::uint32_t attempt) requires passes_attempt_number<Op>
    {
        op.set_attempt(attempt);
    }

    template <class Token>
    auto operator()(Token&& token) &&
    {
        return stage->async_call(std::move(op), std::forward<Token>(token));
    }
    template <class Token>
    auto operator()(Token&& token) const&
    {
        return stage->async_call(Op(op), std::forward<Token>(token));
    }
};

// The same for a coroutine that a coroutine awaits: the stages run inside the caller's coroutine.
template <class Stage, class Op>
struct staged_coroutine {
    std::shared_ptr<Stage> stage;
    Op op;

    void set_attempt(std::uint32_t attempt) requires passes_attempt_number<Op>
    {
        op.set_attempt(attempt);
    }

    auto operator()() && -> std::invoke_result_t<Op>
    {
        return stage->async_call(std::move(op), asio::use_awaitable_t<operation_executor_t<Op>>());
    }
};

// Whether a stage starts the operation more than once.
template <class Stage>
constexpr bool is_repeating = false;
template <class Executor, class Clock, class Options>
constexpr bool is_repeating<basic_retry<Executor, Clock, Options>> = true;
template <class Executor, class Clock>
constexpr bool is_repeating<basic_hedge<Executor, Clock>> = true;

} // namespace detail

/// Stages around an operation, written from the outside in:
/// `pipeline(executor).timeout(2s).retry(options).circuit_breaker(breaker).timeout(200ms)` limits
/// the call to 2 s and each attempt to 200 ms, and the breaker sees every attempt.
///
/// A pipeline is a value; each builder function has the name of the stage's type, and returns a
/// longer pipeline. Timeouts, retries and hedges belong to the pipeline and its copies. All other
/// stages are passed by reference, or as a `std::shared_ptr`. A stage that is passed by reference
/// belongs to the caller, may be shared, and must outlive the pipeline and its outstanding calls. A
/// `shared_ptr` is kept by the pipeline, its copies and its outstanding calls.
///
/// @par Thread safety
/// That of its stages.
/// @par Destruction
/// Outstanding calls continue, and use the stages of the caller.
template <class Executor, clock_policy Clock, class... Stages>
class basic_pipeline {
    // Whether Op is not an operation, or cannot be copied for a stage that repeats it.
    template <class Op>
    static constexpr bool is_mistaken =
        !detail::takes_attempt_number<Op> &&
        !((detail::is_repeating<Stages> || ...) ? repeatable_operation<Op> : operation<Op>);

public:
    /// The executor of handlers without an associated executor.
    using executor_type = Executor;

    /// A pipeline of these stages. Use `pipeline(executor)` and the builder functions instead.
    explicit basic_pipeline(const Executor& executor, std::shared_ptr<Stages>... stages)
        : executor_(executor), stages_(std::move(stages)...)
    {
    }

    /// The executor given at construction.
    executor_type get_executor() const noexcept { return executor_; }

    /// Adds a time limit for the stages that follow.
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

    /// Adds a retry of the stages that follow.
    ///
    /// @param options `retry_options`, or the value that `retry_on_results` returns.
    template <detail::any_retry_options Options = retry_options>
    auto retry(Options options = {}) const
    {
        using stage = basic_retry<Executor, Clock, Options>;
        return own(std::make_shared<stage>(executor_, std::move(options)));
    }

    /// Adds a hedge of the stages that follow.
    auto hedge(const hedge_options& options = {}) const
    {
        return own(std::make_shared<basic_hedge<Executor, Clock>>(executor_, options));
    }

    /// Adds a circuit breaker, which must outlive the pipeline and its outstanding calls.
    template <class... Ts>
    auto circuit_breaker(basic_circuit_breaker<Ts...>& breaker) const
    {
        return stage(breaker);
    }
    /// Adds a circuit breaker that the pipeline owns, together with its copies and calls.
    template <class... Ts>
    auto circuit_breaker(std::shared_ptr<basic_circuit_breaker<Ts...>> breaker) const
    {
        return stage(std::move(breaker));
    }
    template <class T>
    auto circuit_breaker(T&&) const
    {
        static_assert(detail::is_never<T>, "circuit_breaker() takes a basic_circuit_breaker by "
                                           "reference, one that outlives the pipeline. Any "
                                           "other stage goes to stage().");
        return *this;
    }

    /// Adds a rate limiter, which must outlive the pipeline and its outstanding calls.
    template <class... Ts>
    auto rate_limiter(basic_rate_limiter<Ts...>& limiter) const
    {
        return stage(limiter);
    }
    /// Adds a rate limiter that the pipeline owns, together with its copies and calls.
    template <class... Ts>
    auto rate_limiter(std::shared_ptr<basic_rate_limiter<Ts...>> limiter) const
    {
        return stage(std::move(limiter));
    }
    template <class T>
    auto rate_limiter(T&&) const
    {
        static_assert(detail::is_never<T>,
                      "rate_limiter() takes a basic_rate_limiter by reference, "
                      "one that outlives the pipeline. Any "
                      "other stage goes to stage().");
        return *this;
    }

    /// Adds a bulkhead, which must outlive the pipeline and its outstanding calls.
    template <class... Ts>
    auto bulkhead(basic_bulkhead<Ts...>& b) const
    {
        return stage(b);
    }
    /// Adds a bulkhead that the pipeline owns, together with its copies and calls.
    template <class... Ts>
    auto bulkhead(std::shared_ptr<basic_bulkhead<Ts...>> b) const
    {
        return stage(std::move(b));
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

    /// Adds any other stage, which must outlive the pipeline and its outstanding calls; see
    /// `stage_for` and `stage.hpp`.
    template <class Stage>
    auto stage(Stage& s) const
    {
        return own(std::shared_ptr<Stage>(std::shared_ptr<void>(), &s));
    }
    /// Adds any other stage that the pipeline owns, together with its copies and calls.
    template <class Stage>
    auto stage(std::shared_ptr<Stage> s) const
    {
        return own(std::make_shared<detail::owned_stage<Stage>>(std::move(s)));
    }
    /// Adds a stage by value, such as the result of `rate_limiter::stage_for`.
    template <class Stage>
        requires(!std::is_lvalue_reference_v<Stage> && std::move_constructible<Stage>)
    auto stage(Stage&& s) const { return stage(std::make_shared<Stage>(std::move(s))); }
    template <class Stage>
        requires(!std::move_constructible<Stage>)
    void stage(const Stage&&) const = delete; // a temporary does not outlive the pipeline

    /// Returns the stage number `I`, counted from the outside, for example for its `stats()`.
    template <std::size_t I>
    auto& get() const noexcept
    {
        return detail::unwrap_stage(*std::get<I>(stages_));
    }

    /// Runs an operation inside all stages. A pipeline is a stage itself.
    ///
    /// @par Completes when
    /// the outermost stage completes.
    /// @par Completion signature
    /// The operation's. If a stage may fail, it must start with an `error_code` or an
    /// `exception_ptr`.
    /// @par Errors
    /// The errors of the operation and of the stages.
    /// @par Executor
    /// The handler's associated executor, by default the pipeline's.
    /// @par Per-operation cancellation
    /// Passed on inwards; see the stages.
    /// @par Cancel safety
    /// As the operation and the stages.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
        requires(!is_mistaken<Op>)
    auto async_call(Op&& op, Token&& token = Token()) const
    {
        if constexpr (!detail::called_in_coroutine<Op, Token>)
            return call(std::decay_t<Op>(std::forward<Op>(op)), token);
        else if constexpr (sizeof...(Stages) == 0)
            return detail::run_and_destroy(std::decay_t<Op>(std::forward<Op>(op)));
        else
            return wrap<sizeof...(Stages), detail::staged_coroutine>(
                std::decay_t<Op>(std::forward<Op>(op)))();
    }
    /// Equivalent to `async_call(op, token)` for an operation that takes the number of the
    /// attempt, as the innermost retry or hedge counts it: a function `op(std::uint32_t)` that
    /// returns an `awaitable`, or `op(std::uint32_t, token)`.
    template <detail::takes_attempt_number Op,
              operation_token_for<detail::numbered_operation<std::decay_t<Op>>> Token =
                  default_token_t<Executor>>
    auto async_call(Op&& op, Token&& token = Token()) const
    {
        return async_call(detail::with_attempt_number(std::forward<Op>(op)),
                          std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires(is_mistaken<Op>&& detail::no_probe<Rest...>)
    auto async_call(Op&&, Rest&&...) const { return detail::explain_operation<Op>(); }

private:
    template <class Op, class Token>
    auto call(Op op, Token& token) const
    {
        return detail::supervised_call(
            executor_, wrap<sizeof...(Stages), detail::staged_operation>(std::move(op)),
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

    // Returns the operation inside the first N stages.
    template <std::size_t N, template <class, class> class Staged, class Op>
    auto wrap(Op op) const
    {
        if constexpr (N == 0) {
            return op;
        } else {
            using stage_type = std::tuple_element_t<N - 1, std::tuple<Stages...>>;
            if constexpr (stage_for<stage_type, Op>) {
                return wrap<N - 1, Staged>(
                    Staged<stage_type, Op>{std::get<N - 1>(stages_), std::move(op)});
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

/// Returns a pipeline without stages. The executor is used for handlers without an associated
/// executor. Its type is `any_io_executor`, so that calls can be awaited in every `awaitable<T>`;
/// for another type, write `basic_pipeline<Executor, Clock>(executor)`.
template <clock_policy Clock = default_clock>
auto pipeline(const asio::any_io_executor& executor)
{
    return basic_pipeline<asio::any_io_executor, Clock>(executor);
}

/// Equivalent to `pipeline(context.get_executor())`.
template <clock_policy Clock = default_clock, detail::execution_context Context>
auto pipeline(Context& context)
{
    return basic_pipeline<asio::any_io_executor, Clock>(context.get_executor());
}

} // namespace turnstile::inline v0_1
