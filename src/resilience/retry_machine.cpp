// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/retry_machine.hpp>

#include <algorithm>

namespace turnstile::inline v0_1 {
namespace {

constexpr auto unlimited = retry_options::unlimited;

// Returns the rule that the options break, or null.
const char* broken_rule(const retry_options& o) noexcept
{
    if (o.max_attempts == 0)
        return "retry: max_attempts must not be 0";
    if (o.attempt_timeout < nanoseconds::zero())
        return "retry: attempt_timeout must not be negative";
    if (o.total_timeout < nanoseconds::zero())
        return "retry: total_timeout must not be negative";
    return nullptr;
}

const retry_options& checked(const retry_options& options)
{
    detail::check(options);
    return options;
}

} // namespace

void detail::check(const retry_options& options) { throw_if_wrong(broken_rule(options)); }

retry_machine::retry_machine(const retry_options& options, nanoseconds now, std::uint64_t seed)
    : max_attempts_(checked(options).max_attempts), attempt_timeout_(options.attempt_timeout),
      deadline_(options.total_timeout == nanoseconds::max()
                    ? nanoseconds::max()
                    : saturating_add(now, options.total_timeout)),
      budget_(options.budget), delays_(options.backoff, seed)
{
    if (budget_)
        budget_->deposit(now);
}

nanoseconds retry_machine::limit(nanoseconds now) const noexcept
{
    if (deadline_ == nanoseconds::max())
        return attempt_timeout_;
    return std::min(attempt_timeout_, saturating_sub(deadline_, now));
}

retry_machine::decision retry_machine::failed(nanoseconds now, bool retryable,
                                              std::optional<nanoseconds> hint) noexcept
{
    const auto stop = [](retry_stop_reason why) { return decision{why, nanoseconds::zero()}; };
    if (!retryable)
        return stop(retry_stop_reason::not_retryable);
    if (attempt_ >= max_attempts_ && max_attempts_ != unlimited)
        return stop(retry_stop_reason::exhausted);
    const nanoseconds planned = delays_.next();
    const nanoseconds delay = std::max(hint.value_or(planned), nanoseconds::zero());
    if (saturating_add(now, delay) >= deadline_ && deadline_ != nanoseconds::max())
        return stop(retry_stop_reason::out_of_time);
    if (budget_ && !budget_->withdraw(now))
        return stop(retry_stop_reason::over_budget);
    if (attempt_ != unlimited)
        ++attempt_;
    return {retry_stop_reason::none, delay};
}

void retry_machine::take_back() noexcept
{
    if (attempt_ != unlimited)
        --attempt_;
    if (budget_)
        budget_->refund();
}

} // namespace turnstile::inline v0_1
