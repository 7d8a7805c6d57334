// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/rejection.hpp>
#include <turnstile/resilience/retry_policy.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <typeinfo>
#include <variant>

namespace turnstile::inline v0_1 {
namespace {

constexpr auto unlimited = std::numeric_limits<std::uint32_t>::max();

// Errors of the calling program: another attempt with the same arguments fails the same way.
bool is_programming_error(errc code) noexcept
{
    switch (code) {
    case errc::invalid_argument:
    case errc::too_large:
    case errc::not_locked:
    case errc::over_release:
    case errc::negative_count:
    case errc::over_count:
    case errc::context_mismatch:
        return true;
    default:
        return false;
    }
}

bool is_programming_error(const std::exception_ptr& exception) noexcept
{
    try {
        std::rethrow_exception(exception);
    } catch (const std::logic_error&) {
        return true;
    } catch (const std::bad_cast&) { // bad_any_cast, too
        return true;
    } catch (const std::bad_function_call&) {
        return true;
    } catch (const std::bad_optional_access&) {
        return true;
    } catch (const std::bad_variant_access&) {
        return true;
    } catch (...) {
        return false;
    }
}

} // namespace

retry_sequence::retry_sequence(const retry_settings& settings, nanoseconds now,
                               std::uint64_t seed) noexcept
    : attempts_(settings.attempts), each_(settings.each),
      deadline_(settings.total == nanoseconds::max()
                    ? nanoseconds::max()
                    : saturating_add(now, std::max(settings.total, nanoseconds::zero()))),
      budget_(settings.budget.get()), delays_(settings.delays, seed)
{
    if (budget_)
        budget_->deposit(now);
}

nanoseconds retry_sequence::limit(nanoseconds now) const noexcept
{
    if (deadline_ == nanoseconds::max())
        return each_;
    return std::min(each_, saturating_sub(deadline_, now));
}

retry_sequence::decision retry_sequence::failed(nanoseconds now, bool retryable,
                                                std::optional<nanoseconds> hint) noexcept
{
    const auto refuse = [](retry_refusal why) { return decision{why, nanoseconds::zero()}; };
    if (!retryable)
        return refuse(retry_refusal::not_retryable);
    if (attempt_ >= attempts_ && attempts_ != unlimited)
        return refuse(retry_refusal::attempts);
    const nanoseconds planned = delays_.next();
    const nanoseconds delay = std::max(hint.value_or(planned), nanoseconds::zero());
    if (saturating_add(now, delay) >= deadline_ && deadline_ != nanoseconds::max())
        return refuse(retry_refusal::deadline);
    if (budget_ && !budget_->withdraw(now))
        return refuse(retry_refusal::budget);
    if (attempt_ != unlimited)
        ++attempt_;
    return {retry_refusal::none, delay};
}

void retry_sequence::take_back() noexcept
{
    if (attempt_ != unlimited)
        --attempt_;
    if (budget_)
        budget_->refund();
}

bool detail::retry_transient_failures::operator()(const failure& f) const noexcept
{
    if (!f)
        return false;
    const error_code code = f.code();
    if (code.category() == error_category() &&
        is_programming_error(static_cast<errc>(code.value())))
        return false;
    return !f.exception() || !is_programming_error(f.exception());
}

std::optional<nanoseconds> detail::rejection_hint::operator()(const failure& f) const noexcept
{
    if (!f.exception())
        return std::nullopt;
    try {
        std::rethrow_exception(f.exception());
    } catch (const rejection& r) {
        if (r.retry_after() != nanoseconds::max())
            return r.retry_after();
    } catch (...) {
    }
    return std::nullopt;
}

} // namespace turnstile::inline v0_1
