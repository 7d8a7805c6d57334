// SPDX-License-Identifier: BSL-1.0
// Percentiles of latencies, in little memory.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace turnstile::inline v0_1 {

/// Estimates percentiles of the latencies seen lately: a histogram with logarithmic buckets,
/// eight for each doubling, so that an estimate is at most an eighth above the true value and
/// never below it.
///
/// It forgets: when `window` samples are in, all counts are halved. So the last `window` or so
/// decide. Time goes in as durations; there is no clock. Not thread safe.
class latency_estimator {
public:
    /// A window of 0 is taken as 1.
    TURNSTILE_EXPORT explicit latency_estimator(std::uint32_t window = 1000) noexcept;

    /// A latency was seen; a negative one counts as zero.
    TURNSTILE_EXPORT void add(nanoseconds latency) noexcept;

    /// Samples that count at the moment.
    std::uint64_t samples() const noexcept { return total_; }

    /// A value that a part `p` of the samples (from 0 to 1) do not exceed. None if there are
    /// no samples.
    TURNSTILE_EXPORT std::optional<nanoseconds> percentile(double p) const noexcept;

private:
    static constexpr std::size_t per_doubling = 8;
    static constexpr std::size_t buckets = (63 - 3) * per_doubling + per_doubling;

    std::uint32_t window_;
    std::uint64_t total_ = 0;
    std::array<std::uint32_t, buckets> counts_{};
};

} // namespace turnstile::inline v0_1
