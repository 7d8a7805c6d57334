// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/admitted_call.hpp>
#include <turnstile/resilience/detail/retry_rules.hpp>
#include <turnstile/resilience/rejection.hpp>

#include <exception>

namespace turnstile::inline v0_1 {
namespace {

bool is_rejection(const std::exception_ptr& exception) noexcept
{
    try {
        std::rethrow_exception(exception);
    } catch (const rejection&) {
        return true;
    } catch (...) {
        return false;
    }
}

} // namespace

bool is_refusal(const failure& f) noexcept
{
    const error_code code = f.code();
    if (code == errc::circuit_open || code == errc::rejected || code == errc::rate_limited)
        return true;
    return f.exception() && is_rejection(f.exception());
}

bool is_retryable(const failure& f) noexcept
{
    return detail::is_transient(f) && (!is_refusal(f) || detail::delay_of_rejection(f));
}

call_outcome detail::default_outcome(const failure& f) noexcept
{
    if (!f)
        return call_outcome::success;
    return f.is_cancelled() || is_refusal(f) ? call_outcome::ignored : call_outcome::failure;
}

} // namespace turnstile::inline v0_1
