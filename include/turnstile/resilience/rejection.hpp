// The exception of a call that was not let through.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/error.hpp>

namespace turnstile {

/// Thrown by calls that report failures as exceptions (coroutines): a `system_error` with the
/// code of the rejection, that knows when to try again.
class rejection : public system_error {
public:
    rejection(errc code, nanoseconds retry_after)
        : system_error(make_error_code(code)), retry_after_(retry_after)
    {
    }

    /// How long to wait before the next try; `nanoseconds::max()` if nobody can tell.
    [[nodiscard]] nanoseconds retry_after() const noexcept { return retry_after_; }

private:
    nanoseconds retry_after_;
};

} // namespace turnstile
