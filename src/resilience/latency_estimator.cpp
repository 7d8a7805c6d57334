// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/latency_estimator.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace turnstile::inline v0_1 {
namespace {

// Each value below 8 has its own bucket. Above, each power of two has eight buckets, which the
// three bits after the leading one select.
std::size_t bucket_of(std::uint64_t value) noexcept
{
    if (value < 8)
        return static_cast<std::size_t>(value);
    const auto width = static_cast<std::size_t>(std::bit_width(value)); // at least 4
    const auto bits = static_cast<std::size_t>(value >> (width - 4)) & 7U;
    return (width - 3) * 8 + bits;
}

// Returns the largest value of a bucket.
std::uint64_t upper_end(std::size_t bucket) noexcept
{
    if (bucket < 8)
        return bucket;
    const std::size_t shift = bucket / 8 - 1;
    return ((std::uint64_t(8 + bucket % 8) + 1) << shift) - 1;
}

} // namespace

latency_estimator::latency_estimator(std::uint32_t window) noexcept
    : window_(std::max<std::uint32_t>(window, 1))
{
}

void latency_estimator::add(nanoseconds latency) noexcept
{
    if (total_ >= window_) {
        total_ = 0;
        for (std::uint32_t& count : counts_)
            total_ += count /= 2;
    }
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(latency.count(), 0));
    ++counts_[bucket_of(value)];
    ++total_;
}

std::optional<nanoseconds> latency_estimator::percentile(double p) const noexcept
{
    if (total_ == 0)
        return std::nullopt;
    const double part = std::isnan(p) ? 1 : std::clamp(p, 0.0, 1.0);
    const auto rank = std::max<std::uint64_t>(
        static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(total_))), 1);
    std::uint64_t seen = 0;
    for (std::size_t b = 0; b != counts_.size(); ++b) {
        seen += counts_[b];
        if (seen >= rank)
            return nanoseconds(static_cast<std::int64_t>(upper_end(b)));
    }
    return nanoseconds::max();
}

} // namespace turnstile::inline v0_1
