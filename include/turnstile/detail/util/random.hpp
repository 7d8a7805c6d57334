// SPDX-License-Identifier: BSL-1.0
// Random numbers for jitter and sampling: a generator, and seeds for it. Backoff, circuit breaker,
// retry and rate limiter use them.
//
// Invariant: with the same seed the numbers are the same on every platform, so that a test can
// replay them. They are not suitable for cryptography.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/checked_arithmetic.hpp>

#include <cstdint>

namespace turnstile::inline v0_1::detail {

// The generator splitmix64: one word of state, and every seed is good.
class random_source {
public:
    explicit constexpr random_source(std::uint64_t seed) noexcept : state_(seed) {}

    constexpr std::uint64_t next() noexcept
    {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }

    // A number from `low` to `high`, both included. Requires 0 <= low <= high.
    constexpr std::int64_t between(std::int64_t low, std::int64_t high) noexcept
    {
        const auto size = static_cast<std::uint64_t>(high - low) + 1;
        const auto offset = full_product(next(), size).high;
        return low + static_cast<std::int64_t>(offset);
    }

private:
    std::uint64_t state_;
};

// Returns a seed that differs between calls, threads and runs of the program. std::random_device,
// which is slow, is read once for each thread.
TURNSTILE_EXPORT std::uint64_t random_seed();

} // namespace turnstile::inline v0_1::detail
