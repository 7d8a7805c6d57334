// SPDX-License-Identifier: BSL-1.0
// The delays between attempts: rules without I/O or clock.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/random.hpp>

#include <chrono>
#include <cstdint>

namespace turnstile::inline v0_1 {

/// The rule by which the delay between attempts grows, as a value:
/// `backoff::exponential(100ms).capped(10s).with_full_jitter()`. A `backoff_machine` computes the
/// delays of a rule.
///
/// Delays do not overflow, however many attempts there are: they stop growing at the cap, or at
/// `nanoseconds::max()`.
///
/// @par Errors
/// Every function throws `system_error` with `errc::invalid_argument` if a duration is negative, or
/// a factor is less than 1.
class backoff {
public:
    /// The same delay each time.
    template <class Rep, class Period>
    static backoff constant(std::chrono::duration<Rep, Period> delay)
    {
        return backoff(kind::linear, saturating_nanoseconds(delay), 0, nanoseconds::zero());
    }

    /// `first`, `first + step`, `first + 2 * step`, ...
    template <class Rep, class Period, class Rep2, class Period2>
    static backoff linear(std::chrono::duration<Rep, Period> first,
                          std::chrono::duration<Rep2, Period2> step)
    {
        return backoff(kind::linear, saturating_nanoseconds(first), 0,
                       saturating_nanoseconds(step));
    }

    /// `first`, `factor * first`, `factor * factor * first`, ...
    template <class Rep, class Period>
    static backoff exponential(std::chrono::duration<Rep, Period> first, double factor = 2)
    {
        return backoff(kind::exponential, saturating_nanoseconds(first), factor,
                       nanoseconds::zero());
    }

    /// A random delay between `first` and three times the previous delay. Clients that failed at
    /// the same time do not retry at the same time.
    template <class Rep, class Period>
    static backoff decorrelated_jitter(std::chrono::duration<Rep, Period> first)
    {
        return backoff(kind::decorrelated, saturating_nanoseconds(first), 0, nanoseconds::zero());
    }

    /// This rule with delays of at most `longest`.
    template <class Rep, class Period>
    backoff capped(std::chrono::duration<Rep, Period> longest) const
    {
        return with_cap(saturating_nanoseconds(longest));
    }

    /// This rule with each delay replaced by a random one between zero and that delay.
    backoff with_full_jitter() const noexcept
    {
        backoff b = *this;
        b.full_jitter_ = true;
        return b;
    }

private:
    friend class backoff_machine;
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

/// Computes the delays of one series of attempts. The same seed yields the same delays.
///
/// @par Thread safety
/// None: calls must not overlap.
class backoff_machine {
public:
    /// A series of attempts under the rule.
    explicit backoff_machine(const backoff& rule, std::uint64_t seed = 0) noexcept
        : rule_(rule), random_(seed)
    {
    }

    /// Returns the next delay.
    TURNSTILE_EXPORT nanoseconds next() noexcept;

private:
    nanoseconds grown() noexcept;

    backoff rule_;
    detail::random_source random_;
    nanoseconds last_{-1}; // negative: none
};

} // namespace turnstile::inline v0_1
