// SPDX-License-Identifier: BSL-1.0
// The generic cell rate algorithm (GCRA), the rule of a token bucket: arithmetic without a clock,
// a lock or waiters. The rate limiters use it; a program can use it for limiters of its own.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/checked_arithmetic.hpp>
#include <turnstile/resilience/bandwidth.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace turnstile::inline v0_1 {

/// The rule of a token bucket. The object holds only the rule and never changes; the state of a
/// bucket is one number that the caller keeps, the time at which the bucket is full again. A new
/// bucket is full at 0.
///
/// Times are counted in ticks since an origin that the caller chooses. A tick is a fraction of a
/// nanosecond such that the time for one permit is a whole number of ticks, provided that a
/// sixteenth of a nanosecond or more suffices (with 3 permits each second: a third). Otherwise
/// that time is rounded up to the next sixteenth, so that the rate is never exceeded.
/// Sums saturate at `end_of_time`; with the smallest tick, that is 18 years after the origin.
class gcra {
public:
    /// A time since the origin, or a duration.
    using ticks = std::uint64_t;
    static constexpr ticks end_of_time = std::numeric_limits<ticks>::max() >> 1;

    /// Whether `b` keeps the rules of its members.
    [[nodiscard]] static bool valid(const bandwidth& b) noexcept { return !problem(b); }
    /// The rule that `b` breaks, as in "burst must be at least 1"; null if it is valid.
    [[nodiscard]] TURNSTILE_EXPORT static const char* problem(const bandwidth& b) noexcept;

    /// Requires `valid(b)`.
    TURNSTILE_EXPORT explicit gcra(const bandwidth& b) noexcept;
    /// The rule whose three words are given. They are the results of `scale`, `interval` and
    /// `burst_and_mode`, so that a rule can be stored in three atomics.
    constexpr gcra(ticks scale, ticks interval, ticks burst_and_mode) noexcept
        : scale_(scale), interval_(interval), burst_(burst_and_mode >> 1),
          smooth_((burst_and_mode & 1) != 0)
    {
    }
    /// Ticks in a nanosecond.
    constexpr ticks scale() const noexcept { return scale_; }
    /// Ticks for one permit.
    constexpr ticks interval() const noexcept { return interval_; }
    constexpr ticks burst_and_mode() const noexcept { return burst_ << 1 | (smooth_ ? 1U : 0U); }

    constexpr std::uint64_t burst() const noexcept { return burst_; }

    /// A time since the origin, in ticks. A time before the origin gives 0.
    constexpr ticks at(nanoseconds time) const noexcept
    {
        if (time.count() <= 0)
            return 0;
        return product(static_cast<ticks>(time.count()), scale_);
    }
    /// The first whole nanosecond that is not before `t`.
    constexpr nanoseconds time_of(ticks t) const noexcept
    {
        const ticks whole = scale_ == 1 ? t : t / scale_ + (t % scale_ != 0 ? 1 : 0);
        return nanoseconds(static_cast<std::int64_t>(whole));
    }

    /// Whether n permits may be taken at `now` from a bucket that is full at `full`. Requires that
    /// n is not larger than the burst.
    constexpr bool allows(ticks full, ticks now, std::uint64_t n) const noexcept
    {
        return full <= now || (!smooth_ && full - now <= (burst_ - n) * interval_);
    }
    /// The earliest time at which n permits may be taken, if no permits are taken before. Requires
    /// that n is not larger than the burst.
    constexpr ticks allowed_at(ticks full, std::uint64_t n) const noexcept
    {
        const ticks ahead = head_start(n);
        return full > ahead ? full - ahead : 0;
    }
    /// The latest time at which a bucket may be full such that, after `before` further permits are
    /// charged to it, n permits may be taken at `use`.
    constexpr ticks latest(ticks use, std::uint64_t n, std::uint64_t before) const noexcept
    {
        const ticks end = sum(use, head_start(std::min(n, burst_)));
        return end - std::min(end, product(before, interval_));
    }
    /// The time for which a request is charged that became possible in the nanosecond that ends at
    /// `time`: `allowed`, the time at which this bucket allows it, if that is in this nanosecond;
    /// otherwise the beginning of the nanosecond.
    constexpr ticks reached(nanoseconds time, ticks allowed) const noexcept
    {
        const ticks end = at(time);
        return std::max(allowed, end - std::min(end, scale_ - 1));
    }
    /// The time at which the bucket is full again after n permits are taken at `now`, whether that
    /// is allowed or not.
    constexpr ticks charged(ticks full, ticks now, std::uint64_t n) const noexcept
    {
        return sum(std::max(full, now), product(n, interval_));
    }
    /// The time at which the bucket is full again after n permits are given back.
    ///
    /// @param idle How long the bucket may have been full if these permits had not been taken. A
    /// full bucket earns nothing, so the refund is smaller by the permits that would have been
    /// earned in this time. Thus the remaining requests never exceed the rate and the burst.
    constexpr ticks refunded(ticks full, std::uint64_t n, ticks idle) const noexcept
    {
        const ticks back = product(n, interval_);
        return back > idle ? full - std::min(full, back - idle) : full;
    }
    /// The number of permits that may be taken at `now`.
    constexpr std::uint64_t available(ticks full, ticks now) const noexcept
    {
        if (full <= now)
            return burst_;
        const ticks missing = (full - now - 1) / interval_ + 1;
        return smooth_ || missing > burst_ ? 0 : burst_ - missing;
    }
    /// The state of a bucket under this rule, if it was `full` under the rule `old`. The number of
    /// missing permits stays the same.
    TURNSTILE_EXPORT ticks converted(const gcra& old, ticks full, nanoseconds now) const noexcept;

private:
    static constexpr ticks finest = 16; // the largest scale

    constexpr ticks head_start(std::uint64_t n) const noexcept
    {
        return smooth_ ? 0 : (burst_ - n) * interval_;
    }
    static constexpr ticks sum(ticks a, ticks b) noexcept
    {
        return a > end_of_time - b ? end_of_time : a + b;
    }
    static constexpr ticks product(ticks a, ticks b) noexcept
    {
        ticks result = 0;
        return detail::multiply_overflows(a, b, result) || result > end_of_time ? end_of_time
                                                                                : result;
    }

    ticks scale_;
    ticks interval_;
    std::uint64_t burst_;
    bool smooth_;
};

} // namespace turnstile::inline v0_1
