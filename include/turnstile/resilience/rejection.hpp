// SPDX-License-Identifier: BSL-1.0
// The exception of a refused call, and functions that classify failures: is_refusal() and
// is_retryable(), the default rule of a retry.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/core/operation.hpp>

#include <string>

namespace turnstile::inline v0_1 {

/// The exception with which a stage refuses a call, where failures are reported as exceptions
/// (coroutines): a `system_error` with the reason as its code, and the time after which to try
/// again.
class rejection : public system_error {
public:
    /// @param retry_after `nanoseconds::max()` if the time is unknown.
    rejection(errc code, nanoseconds retry_after)
        : system_error(make_error_code(code)), retry_after_(retry_after)
    {
    }
    /// @param context Precedes the message of the error in `what()`.
    rejection(errc code, nanoseconds retry_after, const std::string& context)
        : system_error(make_error_code(code), context), retry_after_(retry_after)
    {
    }

    /// The time after which to try again; `nanoseconds::max()` if it is unknown.
    [[nodiscard]] nanoseconds retry_after() const noexcept { return retry_after_; }

private:
    nanoseconds retry_after_;
};

/// Whether a stage of Turnstile refused the call, so that its failure says nothing about the called
/// service.
///
/// True for the codes `errc::circuit_open`, `errc::rejected` and `errc::rate_limited`, and for the
/// exception `rejection`. The latter includes a call that waited too long for a place in a
/// bulkhead; as an error code, that is `errc::timed_out`, as of any other timeout, and no refusal.
[[nodiscard]] TURNSTILE_EXPORT bool is_refusal(const failure& f) noexcept;

/// Whether a retry with the default rules retries this failure; see `retry_options::retry_if`.
/// Rules of a program can add to it or take from it:
/// `.retry_if = [](const failure& f) { return is_retryable(f) || f.code() == my_error; }`.
///
/// False for no failure, for programming errors, and for refusals that carry no time after which to
/// try again. A retry does not repeat a cancelled call, whatever its rule returns.
[[nodiscard]] TURNSTILE_EXPORT bool is_retryable(const failure& f) noexcept;

} // namespace turnstile::inline v0_1
