#pragma once

#include <cstdint>
#include <optional>
#include <random>

namespace turnstile::detail {

// Random numbers from 0 up to, but not including, 1, by SplitMix64: eight bytes of state.
// The same seed gives the same numbers.
class random_share {
public:
    explicit random_share(std::optional<std::uint64_t> seed)
        : state_(seed ? *seed
                      : (std::uint64_t(std::random_device()()) << 32) | std::random_device()())
    {
    }

    double operator()() noexcept
    {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        z ^= z >> 31;
        return static_cast<double>(z >> 11) * 0x1.0p-53;
    }

private:
    std::uint64_t state_;
};

} // namespace turnstile::detail
