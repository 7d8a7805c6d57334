// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/hedge_policy.hpp>

#include <algorithm>

namespace turnstile::inline v0_1 {

hedge_policy hedge_policy::attempts(std::uint32_t n) const noexcept
{
    hedge_policy p = *this;
    p.attempts_ = std::clamp<std::uint32_t>(n, 1, 16);
    return p;
}

nanoseconds hedge_policy::delay(const latency_estimator& latencies) const noexcept
{
    if (percentile_ == 0 || latencies.samples() < samples_needed)
        return delay_;
    return latencies.percentile(percentile_).value_or(delay_);
}

hedge_policy hedge_policy::checked(double p, nanoseconds at_first)
{
    if (!(p > 0 && p <= 1)) // or not a number
        detail::throw_error(errc::invalid_argument,
                            "hedge_policy: the percentile must be in (0, 1]");
    return {at_first, p};
}

} // namespace turnstile::inline v0_1
