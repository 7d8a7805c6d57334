// SPDX-License-Identifier: BSL-1.0
// Time points of any clock, computed in saturating nanoseconds. Timeout, retry and hedge use these
// functions for their deadlines.
//
// Invariant: a deadline is never earlier than requested. It is rounded up to the resolution of its
// clock; a time point that does not fit becomes time_point::max(), which means "never".
#pragma once

#include <turnstile/core/clock.hpp>

#include <chrono>

namespace turnstile::inline v0_1::detail {

// The time point `delay` after `now`.
template <clock_policy Clock>
typename Clock::time_point deadline_after(typename Clock::time_point now,
                                          nanoseconds delay) noexcept
{
    using time_point = typename Clock::time_point;
    const nanoseconds then = saturating_add(saturating_nanoseconds(now.time_since_epoch()), delay);
    if (then == nanoseconds::max())
        return time_point::max();
    return time_point(std::chrono::ceil<typename Clock::duration>(then));
}

// A time point of any resolution, in the resolution of its clock.
template <clock_policy Clock, class Duration>
typename Clock::time_point ceil_to_clock(std::chrono::time_point<Clock, Duration> when) noexcept
{
    using wide = std::chrono::duration<long double, std::nano>;
    nanoseconds then = saturating_nanoseconds(when.time_since_epoch());
    if (wide(then) < wide(when.time_since_epoch()))
        then = saturating_add(then, nanoseconds(1));
    return deadline_after<Clock>(typename Clock::time_point(), then);
}

// The duration from `from` to `to`; negative if `to` is earlier.
template <class TimePoint>
nanoseconds time_between(TimePoint from, TimePoint to) noexcept
{
    return saturating_sub(saturating_nanoseconds(to.time_since_epoch()),
                          saturating_nanoseconds(from.time_since_epoch()));
}

} // namespace turnstile::inline v0_1::detail
