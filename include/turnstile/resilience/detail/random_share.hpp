// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/util/random.hpp>

#include <cstdint>
#include <optional>

namespace turnstile::inline v0_1::detail {

// Random numbers from 0 up to, but not including, 1. The same seed gives the same numbers.
class random_share {
public:
    explicit random_share(std::optional<std::uint64_t> seed) : source_(seed ? *seed : random_seed())
    {
    }

    double operator()() noexcept { return static_cast<double>(source_.next() >> 11) * 0x1.0p-53; }

private:
    random_source source_;
};

} // namespace turnstile::inline v0_1::detail
