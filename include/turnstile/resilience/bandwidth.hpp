// SPDX-License-Identifier: BSL-1.0
// The limit of a rate limiter: a number of permits for each period, and a burst.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/export.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace turnstile::inline v0_1 {

/// The treatment of permits that no request takes.
enum class shaping : std::uint8_t {
    bursty, ///< The bucket saves them up to the burst; one request may take all of them.
    smooth, ///< They are lost. A request for n permits keeps all others out for n times 1 / rate.
};

template <>
inline constexpr auto detail::enum_names<shaping> = std::to_array<std::string_view>({"bursty",
                                                                                     "smooth"});

/// A number of permits for each period, and the number that may be taken at once.
///
/// The constructor of a limiter and its `set_limits` check the rules below. A bandwidth that
/// breaks one of them is refused with `errc::invalid_argument`.
struct bandwidth {
    /// Permits earned in each period. At least 1, and at most one for each nanosecond of the
    /// period.
    std::uint64_t permits = 1;
    /// Must be positive.
    nanoseconds period = std::chrono::seconds(1);
    /// The largest number of permits that the bucket holds, and that one request may take. With
    /// `shaping::smooth` it limits only the request. At least 1, and earned in 4 years or less.
    std::uint64_t burst = 1;
    /// Whether unused permits are saved up.
    shaping mode = shaping::bursty;

    friend bool operator==(const bandwidth&, const bandwidth&) = default;
};

/// A bandwidth of `rate` permits each second.
///
/// @param rate A rate that is no whole number is rounded down to a millionth. A rate that is zero,
/// negative, not a number or too large gives a bandwidth that every limiter refuses with
/// `errc::invalid_argument`.
TURNSTILE_EXPORT bandwidth per_second(double rate, std::uint64_t burst = 1) noexcept;

/// The same bandwidth with evenly spaced permits.
constexpr bandwidth smooth(bandwidth b) noexcept
{
    b.mode = shaping::smooth;
    return b;
}

} // namespace turnstile::inline v0_1
