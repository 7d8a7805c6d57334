// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/detail/window_climber.hpp>

#include <algorithm>
#include <cmath>

namespace turnstile::inline v0_1::detail {

void window_climber::end_sample(double hit_ratio) noexcept
{
    const double change = hit_ratio - last_ratio_;
    const double step = change >= 0 ? step_ : -step_;
    share_ = std::clamp(share_ + step, min_share, max_share);
    step_ = std::abs(change) >= restart_threshold ? std::copysign(first_step, step) : decay * step;
    last_ratio_ = hit_ratio;
}

} // namespace turnstile::inline v0_1::detail
