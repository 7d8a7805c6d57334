// SPDX-License-Identifier: BSL-1.0
// When to start another attempt beside the first.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/resilience/latency_estimator.hpp>

#include <chrono>
#include <cstdint>

namespace turnstile::inline v0_1 {

/// When a call is hedged, and how often: `hedge_policy::after(50ms)` or
/// `hedge_policy::at_percentile(0.95, 50ms)`. A value; functions return a changed copy.
class hedge_policy {
public:
    /// The next attempt begins when the one before has taken so long; negative means zero.
    template <class Rep, class Period>
    static hedge_policy after(std::chrono::duration<Rep, Period> delay)
    {
        return hedge_policy(saturating_nanoseconds(delay), 0);
    }

    /// The same, when it has taken longer than the part `p` of the successful calls before;
    /// `at_first` counts until there were `samples_needed` of them. Throws `system_error` with
    /// `errc::invalid_argument` unless p is more than 0 and at most 1.
    template <class Rep, class Period>
    static hedge_policy at_percentile(double p, std::chrono::duration<Rep, Period> at_first)
    {
        return checked(p, saturating_nanoseconds(at_first));
    }

    /// Attempts in all, the first included; 1 to 16, where more or less is taken as that.
    /// Default: 2.
    TURNSTILE_EXPORT hedge_policy attempts(std::uint32_t n) const noexcept;

    std::uint32_t attempts() const noexcept { return attempts_; }

    static constexpr std::uint64_t samples_needed = 20;

    /// The delay, from what is known about latencies.
    TURNSTILE_EXPORT nanoseconds delay(const latency_estimator& latencies) const noexcept;

private:
    hedge_policy(nanoseconds delay, double percentile) noexcept
        : delay_(delay < nanoseconds::zero() ? nanoseconds::zero() : delay), percentile_(percentile)
    {
    }
    TURNSTILE_EXPORT static hedge_policy checked(double p, nanoseconds at_first);

    nanoseconds delay_;
    double percentile_; // 0: none
    std::uint32_t attempts_ = 2;
};

} // namespace turnstile::inline v0_1
