// SPDX-License-Identifier: BSL-1.0
// How long to wait between attempts: rules without I/O.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/random.hpp>

#include <chrono>
#include <cstdint>

namespace turnstile::inline v0_1 {

/// How the delay between attempts grows. A value; `backoff_sequence` gives the delays.
///
/// Nothing overflows, however many attempts there are: delays stop growing at the cap.
class backoff {
public:
    /// The same delay each time. Throws `system_error` with `errc::invalid_argument` if the
    /// delay is negative; so do the others.
    template <class Rep, class Period>
    static backoff constant(std::chrono::duration<Rep, Period> delay)
    {
        return backoff(kind::linear, saturating_nanoseconds(delay), 0, nanoseconds::zero());
    }

    /// `first`, `first + step`, `first + 2 step`, ...
    template <class Rep, class Period, class Rep2, class Period2>
    static backoff linear(std::chrono::duration<Rep, Period> first,
                          std::chrono::duration<Rep2, Period2> step)
    {
        return backoff(kind::linear, saturating_nanoseconds(first), 0,
                       saturating_nanoseconds(step));
    }

    /// `first`, `factor * first`, `factor² * first`, ... The factor is at least 1.
    template <class Rep, class Period>
    static backoff exponential(std::chrono::duration<Rep, Period> first, double factor = 2)
    {
        return backoff(kind::exponential, saturating_nanoseconds(first), factor,
                       nanoseconds::zero());
    }

    /// Between `first` and three times the delay before, at random: many clients that failed
    /// together drift apart.
    template <class Rep, class Period>
    static backoff decorrelated_jitter(std::chrono::duration<Rep, Period> first)
    {
        return backoff(kind::decorrelated, saturating_nanoseconds(first), 0, nanoseconds::zero());
    }

    /// The same, but no delay is longer than `longest`.
    template <class Rep, class Period>
    backoff capped(std::chrono::duration<Rep, Period> longest) const
    {
        return with_cap(saturating_nanoseconds(longest));
    }

    /// The same, but each delay is anything from zero to what it would have been, at random.
    backoff with_full_jitter() const noexcept
    {
        backoff b = *this;
        b.full_jitter_ = true;
        return b;
    }

private:
    friend class backoff_sequence;
    enum class kind : std::uint8_t { linear, exponential, decorrelated };

    TURNSTILE_EXPORT backoff(kind k, nanoseconds first, double factor, nanoseconds step);
    TURNSTILE_EXPORT backoff with_cap(nanoseconds longest) const;

    kind kind_;
    bool full_jitter_ = false;
    nanoseconds first_;
    nanoseconds step_;
    nanoseconds cap_ = nanoseconds::max();
    double factor_;
};

/// The delays of one series of attempts. The same seed gives the same delays.
class backoff_sequence {
public:
    explicit backoff_sequence(const backoff& rule, std::uint64_t seed = 0) noexcept
        : rule_(rule), random_(seed)
    {
    }

    /// The next delay.
    TURNSTILE_EXPORT nanoseconds next() noexcept;

private:
    nanoseconds grown() noexcept;

    backoff rule_;
    detail::random_source random_;
    nanoseconds last_{-1}; // none yet
};

} // namespace turnstile::inline v0_1
