// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/clock.hpp>

#include <chrono>

namespace turnstile::inline v0_1::detail {

// The time `delay` from `now`; the latest there is where that does not fit, and never earlier
// than asked for where the clock counts in larger steps.
template <clock_policy Clock>
typename Clock::time_point later(typename Clock::time_point now, nanoseconds delay) noexcept
{
    using time_point = typename Clock::time_point;
    const nanoseconds then = saturating_add(saturating_nanoseconds(now.time_since_epoch()), delay);
    if (then == nanoseconds::max())
        return time_point::max();
    return time_point(std::chrono::ceil<typename Clock::duration>(then));
}

// A time in steps of any size, in those of its clock; rounded and limited likewise.
template <clock_policy Clock, class Duration>
typename Clock::time_point in_steps_of(std::chrono::time_point<Clock, Duration> when) noexcept
{
    using wide = std::chrono::duration<long double, std::nano>;
    nanoseconds then = saturating_nanoseconds(when.time_since_epoch());
    if (wide(then) < wide(when.time_since_epoch()))
        then = saturating_add(then, nanoseconds(1));
    return later<Clock>(typename Clock::time_point(), then);
}

// The time from `from` to `to`, in nanoseconds.
template <class TimePoint>
nanoseconds elapsed(TimePoint from, TimePoint to) noexcept
{
    return saturating_sub(saturating_nanoseconds(to.time_since_epoch()),
                          saturating_nanoseconds(from.time_since_epoch()));
}

} // namespace turnstile::inline v0_1::detail
