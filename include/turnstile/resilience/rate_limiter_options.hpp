// SPDX-License-Identifier: BSL-1.0
// The options, statistics and events of a rate limiter.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace turnstile::inline v0_1 {

/// The options of a rate limiter. Every value is valid.
struct rate_limiter_options {
    /// The number of operations that may wait; further requests fail with `errc::rejected`. With 0
    /// no operation ever waits.
    std::size_t max_waiters = std::numeric_limits<std::size_t>::max();
    /// Whether `stats()` counts granted permits, which takes one more atomic operation for each
    /// grant.
    bool count_grants = false;
};

/// The counters of a rate limiter since its construction.
struct rate_limiter_stats {
    /// Permits granted and not given back, if `count_grants` is set. The permits of a reservation
    /// count from the time at which it is made.
    std::uint64_t granted = 0;
    std::uint64_t rejected = 0;  ///< Requests refused, for any reason.
    std::uint64_t waited = 0;    ///< Requests granted after a wait.
    std::uint64_t cancelled = 0; ///< Operations cancelled before their completion.
    std::size_t waiting = 0;     ///< Operations that are waiting.
};

/// An event of a rate limiter.
struct rate_limiter_event {
    enum kind_type : unsigned char {
        rejected,       ///< A request was refused, for the reason in `code`.
        throttled,      ///< An operation has to wait, and no other was waiting.
        recovered,      ///< The last waiting operation was granted, refused or cancelled.
        limits_changed, ///< `set_limits` was called.
    };

    kind_type kind{};
    errc code{};               ///< Of a rejection: its reason.
    std::uint64_t permits = 0; ///< Of a rejection: the number of permits requested.
    /// Of a rejection: the time after which to try again; the maximum if the request can never be
    /// granted.
    nanoseconds retry_after{};
};

template <>
inline constexpr auto detail::enum_names<rate_limiter_event::kind_type> =
    std::to_array<std::string_view>({"rejected", "throttled", "recovered", "limits_changed"});

} // namespace turnstile::inline v0_1
