// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <boost/intrusive/list.hpp>

#include <cstdint>

namespace turnstile::inline v0_1::detail {

// When permits were taken, so that they can be given back.
struct rate_stamp {
    nanoseconds taken{};
    nanoseconds full{};        // until then the bucket could not have been full without them
    std::uint64_t refunds = 0; // how many refunds had been made before
};

// The time for which permits are charged. If they became available in the nanosecond that ends
// at `time`, they are charged for the exact time in it, so that no remainder is lost.
struct rate_moment {
    nanoseconds time{};
    bool is_opening = false;
};

// An operation that waits for permits of a rate limiter.
struct rate_waiter : waiter {
    using waiter::waiter;
    std::uint64_t need = 1;
    nanoseconds deadline = nanoseconds::max();
    nanoseconds retry_after = nanoseconds::max(); // of a waiter that is refused
    rate_stamp stamp;
    std::uint64_t reservations = 0; // how many had been made when it joined the line
};

using rate_promise_hook = boost::intrusive::list_base_hook<>;

// The permits of a reservation. Until ready_at they are promised, and in the list of promises;
// then they are taken from the buckets.
struct rate_promise : rate_promise_hook {
    bool is_promised() const noexcept { return rate_promise_hook::is_linked(); }

    std::uint64_t need = 1;
    nanoseconds ready_at{};
    std::uint64_t number = 0; // of the reservation, in the order in which they are made
    rate_stamp stamp;         // once they are taken
    bool is_dropped = false;  // by its holder: it belongs to the list of promises
};

} // namespace turnstile::inline v0_1::detail
