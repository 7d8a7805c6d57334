// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/detail/waiter.hpp>

#include <cstdint>

namespace turnstile::detail {

// When permits were taken, so that they can be given back.
struct rate_stamp {
    nanoseconds taken{};
    nanoseconds full{};             // until then the bucket could not have been full without them
    std::uint64_t refunds = 0;      // how many refunds had been made before
    std::uint64_t reservations = 0; // how many reservations had been charged before
};

// An operation that waits for permits of a rate limiter.
struct rate_waiter : waiter {
    using waiter::waiter;
    std::uint64_t need = 1;
    nanoseconds deadline = nanoseconds::max();
    nanoseconds retry_after = nanoseconds::max(); // of a waiter that is refused
    rate_stamp stamp;
    std::uint64_t order = 0; // how many claims had joined the line before
    bool is_claim = false;
};

// The permits of a reservation. While other requests are ahead of them they have a place in the
// line, without a handler. They are charged when no waiter is ahead of them any more, which is
// mostly when the reservation is made. From then on until ready_at they are promised.
struct rate_claim : rate_waiter {
    rate_claim() noexcept : rate_waiter([](waiter&, how) {}) { is_claim = true; }

    // In the line, or among those that are promised; else its time has come.
    bool is_pending() const noexcept { return waiter_hook::is_linked(); }

    nanoseconds ready_at{};
    std::uint64_t departed = 0; // what had left the line when it joined
    std::uint64_t number = 0;   // in the order in which reservations are charged
    // By how many permits the bucket may be refunded without breaking the promise; and how many
    // could not be refunded because of it.
    std::uint64_t slack = 0;
    std::uint64_t withheld = 0;
    bool is_promised = false;
    bool is_dropped = false; // by its holder: it belongs to the list that it is in
};

} // namespace turnstile::detail
