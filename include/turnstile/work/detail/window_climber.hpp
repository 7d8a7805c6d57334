// SPDX-License-Identifier: BSL-1.0
// Finds the size of the window of cache_eviction with the best hit ratio, by hill climbing: it
// changes the size a little after every sample of accesses, goes on in the same direction while the
// hit ratio rises, and turns back when it falls. The steps become smaller as long as the hit ratio
// hardly changes, and start again at their full size when it changes much, because the workload has
// changed then.
//
// Invariant: the share of the window is between `min_share` and `max_share`.
#pragma once

#include <turnstile/core/export.hpp>

namespace turnstile::inline v0_1::detail {

class TURNSTILE_EXPORT window_climber {
public:
    static constexpr double min_share = 0.01;
    static constexpr double max_share = 0.80;

    // The part of the cache that belongs to the window.
    double share() const noexcept { return share_; }
    // The hit ratio of the sample that has ended, from 0 to 1.
    void end_sample(double hit_ratio) noexcept;

private:
    static constexpr double first_step = 0.0625;
    static constexpr double decay = 0.98;
    static constexpr double restart_threshold = 0.05;

    double share_ = min_share;
    double step_ = first_step;
    double last_ratio_ = 0;
};

} // namespace turnstile::inline v0_1::detail
