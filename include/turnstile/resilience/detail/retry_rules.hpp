// SPDX-License-Identifier: BSL-1.0
//
// The rules of a retry: whether the result of an attempt is retried, and which delay the service
// requests. retry_supervisor evaluates them after each attempt. There is one overload for
// retry_options, whose rules receive the failure, and one for result_retry_options, whose rules
// receive all results. A cancellation is never retried; the supervisor decides that before.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/resilience/rejection.hpp>
#include <turnstile/resilience/retry_options.hpp>

#include <optional>
#include <tuple>
#include <type_traits>

namespace turnstile::inline v0_1::detail {

// The default of retry_options::retry_if, apart from refusals: false for programming errors.
TURNSTILE_EXPORT bool is_transient(const failure& f) noexcept;

// The default of retry_options::retry_after: the delay of a `rejection`.
TURNSTILE_EXPORT std::optional<nanoseconds> delay_of_rejection(const failure& f) noexcept;

// Whether a rule is callable with the results, a tuple.
template <class F, class Results>
constexpr bool takes_results = false;
template <class F, class... Results>
constexpr bool takes_results<F, std::tuple<Results...>> =
    std::is_invocable_v<const F&, const Results&...>;

// Calls a rule with all results, or with the failure if its parameters do not fit the results. A
// generic rule fits both, and receives the results.
template <class F, class Results>
decltype(auto) call_rule(const F& rule, const failure& reason, const Results& results)
{
    if constexpr (takes_results<F, Results>) {
        return std::apply(rule, results);
    } else {
        static_assert(std::is_invocable_v<const F&, const failure&>,
                      "The rules of retry_on_results must be callable with the results of the "
                      "operation as const references, or with a failure.");
        return rule(reason);
    }
}

// The result of the rules for one attempt.
struct retry_advice {
    bool retryable = false;
    std::optional<nanoseconds> delay = std::nullopt; // requested by the service
};

template <class Results>
std::optional<nanoseconds> requested_delay(const retry_options& options, const failure& reason,
                                           const Results&)
{
    return options.retry_after ? options.retry_after(reason) : delay_of_rejection(reason);
}

template <class RetryIf, class RetryAfter, class Results>
std::optional<nanoseconds> requested_delay(const result_retry_options<RetryIf, RetryAfter>& options,
                                           const failure& reason, const Results& results)
{
    if constexpr (std::is_same_v<RetryAfter, no_result_rule>) {
        return requested_delay(options.common, reason, results);
    } else {
        const auto delay = call_rule(options.retry_after, reason, results);
        return delay ? std::optional(saturating_nanoseconds(*delay)) : std::nullopt;
    }
}

template <class Results>
retry_advice advise(const retry_options& options, const failure& reason, const Results& results)
{
    if (!reason)
        return {};
    if (!(options.retry_if ? options.retry_if(reason) : is_transient(reason)))
        return {};
    const std::optional<nanoseconds> delay = requested_delay(options, reason, results);
    // By default, a refusal is retried only if it is known when.
    if (!options.retry_if && !delay && is_refusal(reason))
        return {};
    return {true, delay};
}

template <class RetryIf, class RetryAfter, class Results>
retry_advice advise(const result_retry_options<RetryIf, RetryAfter>& options, const failure& reason,
                    const Results& results)
{
    if (!call_rule(options.retry_if, reason, results))
        return {};
    return {true, requested_delay(options, reason, results)};
}

} // namespace turnstile::inline v0_1::detail
