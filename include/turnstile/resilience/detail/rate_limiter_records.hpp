// SPDX-License-Identifier: BSL-1.0
// The records that the parts of a rate limiter exchange: the waiter, the booking behind a
// reservation, the receipt for permits that were taken, and the time for which permits are
// charged. Both rate limiters use them. Waiters and bookings are guarded by the lock of the state.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <boost/intrusive/list.hpp>

#include <cstdint>

namespace turnstile::inline v0_1::detail {

// A receipt for permits that were taken from a bucket, with which they can be given back. The
// bucket numbers its refunds, so a receipt shows how many were made since.
struct rate_limiter_receipt {
    // A change of the limits adds this to the number of refunds.
    static constexpr std::uint64_t limits_change = std::uint64_t(1) << 32;

    // Such permits are not given back: they were earned at another rate.
    bool is_of_earlier_limits(std::uint64_t refunds) const noexcept
    {
        return refunds - refunds_before >= limits_change;
    }

    nanoseconds taken_at{};
    nanoseconds not_full_until{}; // the bucket could not have been full earlier without the grant
    std::uint64_t refunds_before = 0;
};

// The time for which permits are charged. If they became available in the nanosecond that ends at
// `time`, they are charged for the exact tick in it, so that no fraction is lost.
struct charge_time {
    nanoseconds time{};
    bool became_allowed = false;
};

// An operation that waits for permits of a rate limiter.
struct rate_limiter_waiter : waiter {
    using waiter::waiter;
    std::uint64_t permits = 1;
    nanoseconds deadline = nanoseconds::max();
    nanoseconds retry_after = nanoseconds::max(); // if the waiter is refused
    rate_limiter_receipt receipt;                 // once the waiter is granted
    std::uint64_t reservations_before = 0;        // made before the waiter joined the line
};

using rate_limiter_booking_hook = boost::intrusive::list_base_hook<>;

// The permits of a reservation. Until `ready_at` the booking is in the list of bookings; then its
// permits are taken from the buckets, and it leaves the list.
struct rate_limiter_booking : rate_limiter_booking_hook {
    bool is_outstanding() const noexcept { return rate_limiter_booking_hook::is_linked(); }

    std::uint64_t permits = 1;
    nanoseconds ready_at{};
    std::uint64_t number = 0;     // in the order in which reservations are made
    rate_limiter_receipt receipt; // once the permits are taken
    bool is_orphaned = false;     // the reservation was destroyed: the list owns the booking
};

} // namespace turnstile::inline v0_1::detail
