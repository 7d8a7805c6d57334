// SPDX-License-Identifier: BSL-1.0
// Calls that were not let through: how to recognise them, and their exception.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/core/operation.hpp>

#include <string>

namespace turnstile::inline v0_1 {

/// Thrown by calls that report failures as exceptions (coroutines): a `system_error` with the
/// code of the rejection, that knows when to try again.
class rejection : public system_error {
public:
    rejection(errc code, nanoseconds retry_after)
        : system_error(make_error_code(code)), retry_after_(retry_after)
    {
    }
    /// The same with a text that goes before the message of the error in `what()`.
    rejection(errc code, nanoseconds retry_after, const std::string& context)
        : system_error(make_error_code(code), context), retry_after_(retry_after)
    {
    }

    /// How long to wait before the next try; `nanoseconds::max()` if nobody can tell.
    [[nodiscard]] nanoseconds retry_after() const noexcept { return retry_after_; }

private:
    nanoseconds retry_after_;
};

/// Whether a stage of Turnstile has refused to make the call, which therefore says nothing about
/// the service: the code is `errc::circuit_open`, `errc::rejected` or `errc::rate_limited`, or the
/// exception is a `rejection`. The latter includes a call that waited too long for a place in a
/// bulkhead; as an error code that is `errc::timed_out`, like any other timeout.
[[nodiscard]] TURNSTILE_EXPORT bool is_refusal(const failure& f) noexcept;

} // namespace turnstile::inline v0_1
