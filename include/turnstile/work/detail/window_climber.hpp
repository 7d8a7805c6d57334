// SPDX-License-Identifier: BSL-1.0
// Adapts the share of the window in cache_eviction, by hill climbing. A climber that only observes
// the hit ratio has to try a size to learn whether it is better, and takes changes of the workload
// for its own success. This one observes the slope on both sides instead. Two numbers say what a
// window that is larger by a little, the depth, would change:
//
//   gains   the misses of keys that left the window less than the depth ago: they would be hits
//   losses  the hits of the oldest entries of the main space, up to the depth: they would be misses
//
// After every sample of accesses the share moves towards the larger number, in proportion to the
// difference: at most by `max_step`, and not at all if both are equal. Half of each number is
// carried over to the next sample.
//
// Invariant: the share is between `min_share` and `max_share`.
#pragma once

#include <turnstile/core/export.hpp>

namespace turnstile::inline v0_1::detail {

class TURNSTILE_EXPORT window_climber {
public:
    static constexpr double min_share = 0.01;
    static constexpr double max_share = 0.99;
    static constexpr double max_step = 0.15;

    void count_gain() noexcept { ++gains_; }
    void count_loss() noexcept { ++losses_; }

    // Ends a sample. `observed` is the part of the depth, above 0 and at most 1, to which the
    // losses were counted.
    void end_sample(double observed) noexcept;

    // The part of the cache that belongs to the window.
    double share() const noexcept { return share_; }

private:
    static constexpr double min_events = 4; // fewer are noise
    static constexpr double carry = 0.5;

    double gains_ = 0;
    double losses_ = 0;
    double share_ = min_share;
};

} // namespace turnstile::inline v0_1::detail
