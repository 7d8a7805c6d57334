// SPDX-License-Identifier: BSL-1.0
// A retry repeats an operation that fails.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/call/supervised_call.hpp>
#include <turnstile/detail/util/block_cache.hpp>
#include <turnstile/detail/util/random.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/resilience/detail/retry_coroutine.hpp>
#include <turnstile/resilience/detail/retry_supervisor.hpp>
#include <turnstile/resilience/detail/supervising_object.hpp>
#include <turnstile/resilience/retry_options.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1 {

/// Runs operations, and repeats an operation that fails, as its options say.
///
/// Listeners receive each retry as a `retry_event`, after `options.on_retry`.
///
/// @tparam Options `retry_options`, or the type that `retry_on_results` returns.
/// @par Thread safety
/// Any thread may call any function.
/// @par Destruction
/// Outstanding calls continue. No listener is called afterwards.
template <class Executor = asio::any_io_executor, clock_policy Clock = default_clock,
          detail::any_retry_options Options = retry_options>
class basic_retry : public detail::supervising_object<Executor, detail::retry_state> {
    using base = detail::supervising_object<Executor, detail::retry_state>;

public:
    using typename base::executor_type;
    /// The clock that measures delays and time limits.
    using clock_type = Clock;
    /// The type of the options.
    using options_type = Options;

    /// The same type of retry for another executor.
    template <class Other>
    struct rebind_executor {
        using other = basic_retry<Other, Clock, Options>;
    };

    /// A retry with options for all its calls. The executor is used for handlers without an
    /// associated executor.
    ///
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if an option breaks its rule.
    explicit basic_retry(const std::type_identity_t<Executor>& executor,
                         Options options = Options())
        : base(executor), options_(std::allocate_shared<const Options>(
                              detail::cached_allocator<Options>(), std::move(options)))
    {
        const retry_options& common = detail::common_options(*options_);
        detail::check(common);
        seeds_.store(common.seed ? *common.seed : detail::random_seed(), std::memory_order_relaxed);
    }

    /// Equivalent to the constructor with `context.get_executor()`.
    template <detail::execution_context Context>
    explicit basic_retry(Context& context, Options options = Options())
        : basic_retry(context.get_executor(), std::move(options))
    {
    }

    /// The options given at construction.
    const Options& options() const noexcept { return *options_; }

    /// Runs an operation, and repeats it while it fails. Each attempt starts a copy of `op`.
    ///
    /// @par Completes when
    /// an attempt succeeds, or the options allow no further attempt.
    /// @par Completion signature
    /// The operation's. It must start with an `error_code` or an `exception_ptr`.
    /// @par Errors
    /// The result of the last attempt, unchanged; `errc::timed_out` if it exceeded its time limit;
    /// `operation_aborted` if the call is cancelled between two attempts; the exception that a
    /// function of the options throws.
    /// @par Executor
    /// The handler's associated executor, by default the object's. Attempts run there in a strand;
    /// a coroutine that is awaited with `use_awaitable` runs inside the caller's coroutine.
    /// @par Per-operation cancellation
    /// Terminal, partial and total. It is passed on to the outstanding attempt, which is then the
    /// last one, and ends a delay at once.
    /// @par Cancel safety
    /// The operation's.
    template <repeatable_operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Token&& token = Token())
    {
        using signature = operation_signature_t<Op>;
        const std::uint64_t call_seed = seeds_.fetch_add(1, std::memory_order_relaxed);
        if constexpr (detail::called_in_coroutine<Op, Token>)
            return detail::retry_in_coroutine<Clock, Options>(
                detail::call_frame(), options_, std::decay_t<Op>(std::forward<Op>(op)), call_seed,
                this->state());
        else
            return detail::supervised_call(
                this->get_executor(), std::forward<Op>(op),
                [options = options_, state = this->state(),
                 call_seed](auto handler, const auto& where, auto o) mutable {
                    detail::run_with_retries<Clock, signature>(std::move(handler), where,
                                                               std::move(options), std::move(o),
                                                               call_seed, std::move(state));
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

    /// The figures of the retry at this time.
    [[nodiscard]] retry_stats stats() const noexcept
    {
        const detail::retry_state& state = *this->state();
        return {state.read(state.calls),
                state.read(state.attempts),
                state.read(state.succeeded),
                state.read(state.cancelled),
                state.stops(retry_stop_reason::not_retryable),
                state.stops(retry_stop_reason::exhausted),
                state.stops(retry_stop_reason::out_of_time),
                state.stops(retry_stop_reason::over_budget),
                state.read(state.by_exception)};
    }

private:
    std::shared_ptr<const Options> options_;
    std::atomic<std::uint64_t> seeds_;
};

/// A retry for any executor, with the steady clock.
using retry = basic_retry<>;

/// Runs an operation with its own options; see `basic_retry::async_call`.
///
/// @param executor The executor of a handler without an associated executor.
template <clock_policy Clock = default_clock, class Executor,
          detail::any_retry_options Options = retry_options, repeatable_operation Op,
          operation_token_for<Op> Token = detail::call_token_t<Executor>>
auto async_retry(const Executor& executor, Options options, Op&& op, Token&& token = Token())
{
    return basic_retry<Executor, Clock, Options>(executor, std::move(options))
        .async_call(std::forward<Op>(op), std::forward<Token>(token));
}

/// Equivalent to `async_retry` with an executor, for handlers with an associated executor, such as
/// the handler of a coroutine.
template <clock_policy Clock = default_clock, detail::any_retry_options Options = retry_options,
          repeatable_operation Op, operation_token_for<Op> Token = asio::use_awaitable_t<>>
auto async_retry(Options options, Op&& op, Token&& token = Token())
{
    return basic_retry<detail::no_executor, Clock, Options>(detail::no_executor(),
                                                            std::move(options))
        .async_call(std::forward<Op>(op), std::forward<Token>(token));
}

/// Equivalent to `async_retry` for an operation that takes the number of the attempt; see
/// `basic_retry::async_call`.
template <clock_policy Clock = default_clock, class Executor,
          detail::any_retry_options Options = retry_options, detail::takes_attempt_number Op,
          operation_token_for<detail::numbered_operation<std::decay_t<Op>>> Token =
              detail::call_token_t<Executor>>
auto async_retry(const Executor& executor, Options options, Op&& op, Token&& token = Token())
{
    return async_retry<Clock>(executor, std::move(options),
                              detail::with_attempt_number(std::forward<Op>(op)),
                              std::forward<Token>(token));
}
template <clock_policy Clock = default_clock, detail::any_retry_options Options = retry_options,
          detail::takes_attempt_number Op,
          operation_token_for<detail::numbered_operation<std::decay_t<Op>>> Token =
              asio::use_awaitable_t<>>
auto async_retry(Options options, Op&& op, Token&& token = Token())
{
    return async_retry<Clock>(std::move(options), detail::with_attempt_number(std::forward<Op>(op)),
                              std::forward<Token>(token));
}

template <class Executor, detail::any_retry_options Options = retry_options, class Op,
          class... Rest>
    requires detail::mistaken_repetition<Op, Rest...>
auto async_retry(const Executor&, const Options&, Op&&, Rest&&...)
{
    return detail::explain_operation<Op>();
}
template <detail::any_retry_options Options = retry_options, class Op, class... Rest>
    requires detail::mistaken_repetition<Op, Rest...>
auto async_retry(const Options&, Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

} // namespace turnstile::inline v0_1
