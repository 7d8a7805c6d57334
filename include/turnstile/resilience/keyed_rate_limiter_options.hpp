// SPDX-License-Identifier: BSL-1.0
// The options, statistics and events of a keyed rate limiter.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace turnstile::inline v0_1 {

/// The options of a keyed rate limiter. Every value is valid.
struct keyed_rate_limiter_options {
    /// The number of operations that may wait for one key; further requests for that key fail with
    /// `errc::rejected`. With 0 no operation ever waits.
    std::size_t max_waiters = std::numeric_limits<std::size_t>::max();
};

/// The counters of a keyed rate limiter since its construction, for all keys together.
struct keyed_rate_limiter_stats {
    std::uint64_t granted = 0;   ///< Permits granted and not given back.
    std::uint64_t rejected = 0;  ///< Requests refused, for any reason.
    std::uint64_t waited = 0;    ///< Requests granted after a wait.
    std::uint64_t cancelled = 0; ///< Operations cancelled before their completion.
    std::size_t waiting = 0;     ///< Operations that are waiting.
};

/// An event of a keyed rate limiter: a request was refused, at once or, after a change of the
/// limit, while it waited. There are no other events.
template <class Key>
struct keyed_rate_limiter_event {
    const Key& key;            ///< The key of the request; valid during the call of the listener.
    errc code{};               ///< The reason.
    std::uint64_t permits = 0; ///< The number of permits requested.
    /// The time after which to try again; the maximum if the request can never be granted.
    nanoseconds retry_after{};
};

} // namespace turnstile::inline v0_1
