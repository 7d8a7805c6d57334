// SPDX-License-Identifier: BSL-1.0
// The rule of a token bucket, as arithmetic without clock, lock or waiters.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/checked_arithmetic.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace turnstile::inline v0_1 {

/// What becomes of the permits nobody took.
enum class shaping : std::uint8_t {
    bursty, ///< They are kept, up to the burst, and may be taken all at once.
    smooth, ///< They are lost: whoever takes n keeps everybody else out for n times 1 / rate.
};

template <>
inline constexpr auto detail::enum_names<shaping> = std::to_array<std::string_view>({"bursty",
                                                                                     "smooth"});

/// So many permits in each period, and how many may be taken at once.
///
/// With `shaping::smooth` the burst only says how many one request may ask for.
struct bandwidth {
    std::uint64_t permits = 1;
    nanoseconds period = std::chrono::seconds(1);
    std::uint64_t burst = 1;
    shaping mode = shaping::bursty;

    friend bool operator==(const bandwidth&, const bandwidth&) = default;
};

/// `rate` permits each second. A rate that is no whole number is rounded down to a millionth;
/// one that is zero, negative, not a number or too large gives a bandwidth that every limiter
/// refuses with `errc::invalid_argument`.
TURNSTILE_EXPORT bandwidth per_second(double rate, std::uint64_t burst = 1) noexcept;

/// The same bandwidth with evenly spaced permits.
constexpr bandwidth smooth(bandwidth b) noexcept
{
    b.mode = shaping::smooth;
    return b;
}

/// The generic cell rate algorithm: a bucket is one number, the time at which it will be full
/// again. That time is counted in ticks since an origin the caller chooses.
///
/// A tick is such a part of a nanosecond that the time for one permit is a whole number of
/// them, if a sixteenth or more of a nanosecond will do (3 each second: a third). If not, that
/// time is rounded up to the next sixteenth, so that it never gives more than the rate.
/// Sums stay at the largest value instead of overflowing; with the smallest tick that is
/// reached 18 years after the origin.
class gcra {
public:
    using ticks = std::uint64_t;
    static constexpr ticks end_of_time = std::numeric_limits<ticks>::max() >> 1;

    /// Whether there can be such a bandwidth: all of it positive, at most one permit each
    /// nanosecond, and a burst that is earned in 4 years or less.
    [[nodiscard]] static bool valid(const bandwidth& b) noexcept { return !problem(b); }
    /// Which rule a bandwidth breaks, as in "burst must be at least 1"; null if it is valid.
    [[nodiscard]] TURNSTILE_EXPORT static const char* problem(const bandwidth& b) noexcept;

    /// Requires `valid(b)`.
    TURNSTILE_EXPORT explicit gcra(const bandwidth& b) noexcept;
    /// From the three words below.
    constexpr gcra(ticks scale, ticks interval, ticks burst_and_mode) noexcept
        : scale_(scale), interval_(interval), burst_(burst_and_mode >> 1),
          smooth_((burst_and_mode & 1) != 0)
    {
    }
    constexpr ticks scale() const noexcept { return scale_; }
    constexpr ticks interval() const noexcept { return interval_; }
    constexpr ticks burst_and_mode() const noexcept { return burst_ << 1 | (smooth_ ? 1U : 0U); }

    constexpr std::uint64_t burst() const noexcept { return burst_; }

    /// A time since the origin, in ticks. Before the origin is at the origin.
    constexpr ticks at(nanoseconds time) const noexcept
    {
        if (time.count() <= 0)
            return 0;
        return product(static_cast<ticks>(time.count()), scale_);
    }
    /// The first nanosecond that is not before t.
    constexpr nanoseconds time_of(ticks t) const noexcept
    {
        const ticks whole = scale_ == 1 ? t : t / scale_ + (t % scale_ != 0 ? 1 : 0);
        return nanoseconds(static_cast<std::int64_t>(whole));
    }

    /// Whether n permits may be taken now from a bucket that is full at `full`. Requires that
    /// n is not more than the burst.
    constexpr bool allows(ticks full, ticks now, std::uint64_t n) const noexcept
    {
        return full <= now || (!smooth_ && full - now <= (burst_ - n) * interval_);
    }
    /// When that is so, if nobody takes any before.
    constexpr ticks opens(ticks full, std::uint64_t n) const noexcept
    {
        const ticks ahead = head_start(n);
        return full > ahead ? full - ahead : 0;
    }
    /// How late a bucket may be full again such that n permits may be taken at `use`, after
    /// `before` others.
    constexpr ticks latest(ticks use, std::uint64_t n, std::uint64_t before) const noexcept
    {
        const ticks end = sum(use, head_start(std::min(n, burst_)));
        return end - std::min(end, product(before, interval_));
    }
    /// The time of a request that is possible from `open` on, if the nanosecond that ends at
    /// `time` is the first in which nothing else prevents it.
    constexpr ticks reached(nanoseconds time, ticks open) const noexcept
    {
        const ticks end = at(time);
        return std::max(open, end - std::min(end, scale_ - 1));
    }
    /// When the bucket is full again after n permits are taken, allowed or not.
    constexpr ticks charged(ticks full, ticks now, std::uint64_t n) const noexcept
    {
        return sum(std::max(full, now), product(n, interval_));
    }
    /// Gives back n permits. While they were out the bucket may have been filled up to the brim
    /// without them: for as long as it can have been so, which is `idle`, nothing is returned.
    /// So those who have taken something, in any order, never had more than rate and burst.
    constexpr ticks refunded(ticks full, std::uint64_t n, ticks idle) const noexcept
    {
        const ticks back = product(n, interval_);
        return back > idle ? full - std::min(full, back - idle) : full;
    }
    /// How many permits may be taken now.
    constexpr std::uint64_t available(ticks full, ticks now) const noexcept
    {
        if (full <= now)
            return burst_;
        const ticks missing = (full - now - 1) / interval_ + 1;
        return smooth_ || missing > burst_ ? 0 : burst_ - missing;
    }
    /// The same bucket under this rule instead of `old`: as many permits are missing.
    TURNSTILE_EXPORT ticks converted(const gcra& old, ticks full, nanoseconds now) const noexcept;

private:
    static constexpr ticks finest = 16;

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

    ticks scale_;    // ticks in a nanosecond
    ticks interval_; // ticks for one permit
    std::uint64_t burst_;
    bool smooth_;
};

} // namespace turnstile::inline v0_1
