// SPDX-License-Identifier: BSL-1.0
// The options, statistics and events of a retry.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/resilience/backoff.hpp>
#include <turnstile/resilience/retry_budget.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A retry that is about to take place, before its delay.
struct retry_event {
    std::uint32_t attempt; ///< The number of the attempt that has failed; the first is 1.
    nanoseconds delay;     ///< The delay until the next attempt.
    failure error;         ///< The failure; none if a rule on results rejected a success.
};

/// Why a call was not retried.
enum class retry_stop_reason {
    none,          ///< The call is retried.
    not_retryable, ///< `retry_if` returned false, or the attempt was cancelled.
    exhausted,     ///< `max_attempts` attempts were made.
    out_of_time,   ///< The next attempt would begin after `total_timeout`.
    over_budget,   ///< The budget has no token.
};

template <>
inline constexpr auto detail::enum_names<retry_stop_reason> = std::to_array<std::string_view>(
    {"none", "not_retryable", "exhausted", "out_of_time", "over_budget"});

/// Options of a retry. Constructors and `async_retry` check them, and throw `system_error` with
/// `errc::invalid_argument` and a text that names the member.
///
/// Name an object of this type before a `co_await` expression uses it: g++ 12 destroys the members
/// of an aggregate that is created inside the expression twice.
struct retry_options {
    /// The value of `max_attempts` without a limit.
    static constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

    /// Maximum number of attempts, the first included. Must not be 0.
    std::uint32_t max_attempts = 3;
    /// The delays between attempts. Default: exponential from 100 ms to 10 s with full jitter.
    turnstile::backoff backoff = turnstile::backoff::exponential(std::chrono::milliseconds(100))
                                     .capped(std::chrono::seconds(10))
                                     .with_full_jitter();
    /// Maximum duration of one attempt. An attempt that takes longer is cancelled, and has failed
    /// with `errc::timed_out`. For the stages inside the retry it was cancelled, so a circuit
    /// breaker there ignores it; use a timeout inside the breaker instead. Must not be negative;
    /// `nanoseconds::max()`: no limit.
    nanoseconds attempt_timeout = nanoseconds::max();
    /// Maximum duration of the whole call. The outstanding attempt is cancelled at its end. If the
    /// next attempt could only begin after it, the call completes without the delay. Must not be
    /// negative; `nanoseconds::max()`: no limit.
    nanoseconds total_timeout = nanoseconds::max();

    /// Returns whether a failure is retried; successes are not passed to it. A cancellation is
    /// never retried. By default every other failure is, except
    /// - programming errors: `errc::invalid_argument`, `too_large`, `not_locked`, `over_release`,
    ///   `negative_count`, `over_count` and `context_mismatch`; `std::logic_error` and derived
    ///   types; a bad cast; access to an empty optional, function or variant;
    /// - refusals (`is_refusal`) for which `retry_after` returns no delay.
    std::function<bool(const failure&)> retry_if = nullptr;
    /// Returns the delay that the service requests for a failure that is retried; it replaces the
    /// delay of `backoff`. By default the delay that a `rejection` carries, if it is known.
    std::function<std::optional<nanoseconds>(const failure&)> retry_after = nullptr;

    /// The budget, usually shared by several retries. None by default.
    std::shared_ptr<retry_budget> budget = nullptr;
    /// Called before each delay, on the handler's executor and without a lock, also for calls that
    /// outlive the object. An exception that it throws becomes the result of the call.
    std::function<void(const retry_event&)> on_retry = nullptr;
    /// Seed of the jitter: the n-th call of an object has the same delays each time. Random by
    /// default.
    std::optional<std::uint64_t> seed = std::nullopt;
};

namespace detail {

// Selects `retry_after` of the options in place of a rule on results.
struct no_result_rule {};

} // namespace detail

/// Options of a retry with rules that receive all results of the operation, so that a success can
/// be retried, too. Made by `retry_on_results`.
template <class RetryIf, class RetryAfter = detail::no_result_rule>
struct result_retry_options {
    retry_options common;   ///< All other options; its `retry_if` is not used.
    RetryIf retry_if;       ///< See `retry_on_results`.
    RetryAfter retry_after; ///< See `retry_on_results`.
};

/// Adds rules that receive all results of the operation to `options`.
///
/// @param retry_if Called with the results of each attempt as const references, and returns whether
/// it is retried; it replaces `options.retry_if`. A cancellation is never retried.
template <class RetryIf>
result_retry_options<RetryIf> retry_on_results(retry_options options, RetryIf retry_if)
{
    return {std::move(options), std::move(retry_if), {}};
}

/// Equivalent to `retry_on_results(options, retry_if)`, with a second rule.
///
/// @param retry_after Called like `retry_if` for results that are retried, and returns an optional
/// delay; it replaces `options.retry_after`.
template <class RetryIf, class RetryAfter>
result_retry_options<RetryIf, RetryAfter> retry_on_results(retry_options options, RetryIf retry_if,
                                                           RetryAfter retry_after)
{
    return {std::move(options), std::move(retry_if), std::move(retry_after)};
}

/// The figures of a retry at one time. Totals count from its construction. Each completed call is
/// counted in exactly one of the last seven members, unless its handler was destroyed without being
/// invoked.
struct retry_stats {
    std::uint64_t calls;         ///< Total of calls.
    std::uint64_t attempts;      ///< Total of attempts.
    std::uint64_t succeeded;     ///< Calls that succeeded.
    std::uint64_t cancelled;     ///< Calls that were cancelled.
    std::uint64_t not_retryable; ///< Calls whose failure was not retryable.
    std::uint64_t exhausted;     ///< Calls that failed in all attempts.
    std::uint64_t out_of_time;   ///< Calls without time for another attempt.
    std::uint64_t over_budget;   ///< Calls without a token for another attempt.
    std::uint64_t by_exception;  ///< Calls that ended because a function of the options threw, or
                                 ///< memory was exhausted.
};

namespace detail {

// Throws if an option breaks its rule.
TURNSTILE_EXPORT void check(const retry_options& options);

inline const retry_options& common_options(const retry_options& options) noexcept
{
    return options;
}
template <class RetryIf, class RetryAfter>
const retry_options&
common_options(const result_retry_options<RetryIf, RetryAfter>& options) noexcept
{
    return options.common;
}

// retry_options or result_retry_options.
template <class T>
concept any_retry_options = requires(const T& options)
{
    {
        detail::common_options(options)
        } -> std::same_as<const retry_options&>;
};

} // namespace detail
} // namespace turnstile::inline v0_1
