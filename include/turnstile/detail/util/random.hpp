// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/checked_arithmetic.hpp>

#include <cstdint>
#include <optional>

namespace turnstile::inline v0_1::detail {

// A small generator of random numbers (splitmix64): the same everywhere for the same seed.
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

    // From `low` to `high`, both included; low <= high, and neither is negative.
    constexpr std::int64_t between(std::int64_t low, std::int64_t high) noexcept
    {
        const auto size = static_cast<std::uint64_t>(high - low) + 1;
        const auto offset = full_product(next(), size).high;
        return low + static_cast<std::int64_t>(offset);
    }

private:
    std::uint64_t state_;
};

// A seed that differs from call to call, thread to thread and run to run. The system's source of
// randomness, which is slow, is read once for each thread.
TURNSTILE_EXPORT std::uint64_t random_seed();

// Random fractions: numbers from 0 up to, but not including, 1. Without a seed, random_seed() gives
// one; with the same seed, the numbers are the same.
class random_fraction {
public:
    explicit random_fraction(std::optional<std::uint64_t> seed)
        : source_(seed ? *seed : random_seed())
    {
    }

    double operator()() noexcept { return static_cast<double>(source_.next() >> 11) * 0x1.0p-53; }

private:
    random_source source_;
};

} // namespace turnstile::inline v0_1::detail
