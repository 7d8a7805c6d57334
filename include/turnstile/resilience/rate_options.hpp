// SPDX-License-Identifier: BSL-1.0
// How a rate limiter is set up, and what it tells about itself.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace turnstile::inline v0_1 {

/// Something that happened to a rate limiter.
struct rate_event {
    enum kind_type : unsigned char {
        rejected,       ///< A request was refused, for the reason in `code`.
        throttled,      ///< Somebody has to wait, and nobody had to before.
        recovered,      ///< Nobody waits any more.
        limits_changed, ///< `set_limits` was called.
    };

    kind_type kind{};
    errc code{};               ///< Why it was rejected.
    std::uint64_t permits = 0; ///< How many it asked for.
    nanoseconds retry_after{}; ///< When it makes sense to ask again; the maximum is never.
};

template <>
inline constexpr auto detail::enum_names<rate_event::kind_type> =
    std::to_array<std::string_view>({"rejected", "throttled", "recovered", "limits_changed"});

/// Settings of a rate limiter that are made once.
struct rate_options {
    /// How many may wait; who comes after them is `errc::rejected`. 0: nobody ever waits.
    std::size_t max_waiters = std::numeric_limits<std::size_t>::max();
    /// Whether `stats()` counts the permits that were granted: one more atomic operation each.
    bool count_grants = false;
};

/// What a rate limiter has done so far.
struct rate_stats {
    /// Permits granted and not given back, if `count_grants` says so; those of a reservation
    /// from the time it is made.
    std::uint64_t granted = 0;
    std::uint64_t rejected = 0;  ///< Requests refused, for whatever reason.
    std::uint64_t waited = 0;    ///< Requests granted after a wait.
    std::uint64_t cancelled = 0; ///< Requests cancelled while they waited, or on their way.
    std::size_t waiting = 0;     ///< Requests that wait now.
};

} // namespace turnstile::inline v0_1
