// SPDX-License-Identifier: BSL-1.0
// An estimate of the percentiles of recent latencies, in constant memory.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace turnstile::inline v0_1 {

/// Estimates percentiles of recent latencies: a histogram with logarithmic buckets, eight for each
/// doubling. An estimate is never below the true value, and at most an eighth above it.
///
/// When `window` samples are counted, all counts are halved. So about the last `window` samples
/// determine the estimate. There is no clock: durations go in.
///
/// @par Thread safety
/// None: calls must not overlap.
class latency_estimator {
public:
    /// An estimator without samples. A window of 0 counts as 1.
    TURNSTILE_EXPORT explicit latency_estimator(std::uint32_t window = 1000) noexcept;

    /// Adds a sample. A negative latency counts as zero.
    TURNSTILE_EXPORT void add(nanoseconds latency) noexcept;

    /// The number of samples that are counted at this time.
    std::uint64_t samples() const noexcept { return total_; }

    /// The `p`-quantile of the samples, with `p` from 0 to 1. Nothing if there are no samples.
    TURNSTILE_EXPORT std::optional<nanoseconds> percentile(double p) const noexcept;

private:
    static constexpr std::size_t per_doubling = 8;
    static constexpr std::size_t buckets = (63 - 3) * per_doubling + per_doubling;

    std::uint32_t window_;
    std::uint64_t total_ = 0;
    std::array<std::uint32_t, buckets> counts_{};
};

} // namespace turnstile::inline v0_1
