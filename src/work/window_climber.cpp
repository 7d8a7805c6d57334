// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/detail/window_climber.hpp>

#include <algorithm>

namespace turnstile::inline v0_1::detail {

void window_climber::end_sample(double observed) noexcept
{
    if (gains_ + losses_ >= min_events) {
        const double losses = losses_ / observed;
        const double slope = (gains_ - losses) / (gains_ + losses);
        share_ = std::clamp(share_ + max_step * slope, min_share, max_share);
    }
    gains_ *= carry;
    losses_ *= carry;
}

} // namespace turnstile::inline v0_1::detail
