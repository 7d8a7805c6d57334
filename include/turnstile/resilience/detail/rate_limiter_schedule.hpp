// SPDX-License-Identifier: BSL-1.0
// The buckets of a rate limiter together with the bookings of its reservations, and the predictions
// that follow from both: when a request will be granted. rate_limiter_state has one; it is the
// Bucket of its rate_limiter_line. All functions are called under the lock of the state, except
// the fast path of the buckets.
//
// Invariants:
// - The buckets hold the permits taken up to the present. A reservation is used later; until then
//   it is not in the buckets but in the list of bookings, in the order of their times. A released
//   booking therefore gives back everything: it leaves the list.
// - Every booking can be kept: each bucket has a `latest`, the latest time at which it may be full
//   such that all bookings can be used at their times. No other request exceeds it.
// - A prediction is never too early. It is exact for one bucket without bookings. Otherwise it
//   follows from the `tail` of each bucket, the time at which the bucket is full behind all
//   bookings and waiters. A request that leaves makes the tails later than necessary; they are
//   measured again when this examines no more than 64 waiters for each such change.
#pragma once

#include <turnstile/resilience/detail/rate_limiter_buckets.hpp>
#include <turnstile/resilience/detail/rate_limiter_line.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class TURNSTILE_EXPORT rate_limiter_schedule final : public rate_limiter_buckets<Threading> {
    using base = rate_limiter_buckets<Threading>;

    struct bounds {
        gcra::ticks latest = gcra::end_of_time;
        gcra::ticks tail = 0;
    };

public:
    struct prepared_limits : base::prepared_limits {
        explicit prepared_limits(std::vector<bandwidth> l)
            : base::prepared_limits(std::move(l)), all_bounds(this->limits.size())
        {
        }
        std::vector<bounds> all_bounds;
    };

    rate_limiter_schedule(std::vector<bandwidth> limits, nanoseconds now)
        : base(std::move(limits), now), bounds_(this->limits().size())
    {
    }
    ~rate_limiter_schedule();

    // Enables the fast path unless operations wait or bookings are outstanding.
    void enable_fast_path(const rate_limiter_line& line) noexcept
    {
        if (line.empty() && bookings_.empty())
            base::enable_fast_path();
    }

    // The functions of a Bucket; see rate_limiter_line.hpp. allowed_at() and take() are inherited.
    charge_time due(nanoseconds now, std::uint64_t n, nanoseconds from) noexcept;
    nanoseconds expected(nanoseconds now, std::uint64_t n, const rate_limiter_line& line) noexcept;
    bool can_add(nanoseconds now, std::uint64_t n, const rate_limiter_line& line) const noexcept;
    void apply_due_bookings(nanoseconds now) noexcept;
    bool has_bookings() const noexcept { return !bookings_.empty(); }
    void joining(rate_limiter_waiter& w, nanoseconds now, const rate_limiter_line& line) noexcept;
    void note_change() noexcept { ++changes_; }

    // Books booking.permits permits for booking.ready_at, behind the line.
    void reserve(rate_limiter_booking& booking, nanoseconds now,
                 const rate_limiter_line& line) noexcept;
    // Gives back the permits of a booking, outstanding or not.
    void release(rate_limiter_booking& booking, nanoseconds now) noexcept;

    void refund(nanoseconds now, std::uint64_t n, const rate_limiter_receipt& receipt) noexcept
    {
        if (base::refund(now, n, receipt))
            note_change();
    }
    std::uint64_t available(nanoseconds now) noexcept;

    // Exchanges the limits. measure() is to be called once the line is settled.
    void change(prepared_limits& next, nanoseconds now) noexcept;
    // Computes the tails anew, from the bookings and the line.
    void measure(nanoseconds now, const rate_limiter_line& line) noexcept;

private:
    bool fits(nanoseconds now, charge_time when, std::uint64_t n, std::uint64_t ahead) noexcept;
    void find_latest() noexcept;
    void remove(rate_limiter_booking& booking) noexcept;
    void apply_first_booking() noexcept;
    // Whether the tails follow from the buckets without a look at each waiter.
    bool has_simple_tails(const rate_limiter_line& line) const noexcept
    {
        return bookings_.empty() && (this->is_single() || line.empty());
    }
    void update_tails(nanoseconds now, const rate_limiter_line& line) noexcept;
    void reset_tails() noexcept;
    nanoseconds tail_allows_at(std::uint64_t n) const noexcept;
    void append_to_tails(charge_time when, std::uint64_t n) noexcept;

    std::vector<bounds> bounds_; // of each bucket
    boost::intrusive::list<rate_limiter_booking> bookings_;
    std::uint64_t booked_permits_ = 0;
    std::uint64_t reservations_ = 0;
    bool latest_is_early_ = false; // each `latest` may be earlier than necessary
    std::size_t changes_ = 0;      // since the tails were measured
};

extern template class rate_limiter_schedule<thread_safe>;
extern template class rate_limiter_schedule<strand_confined>;

} // namespace turnstile::inline v0_1::detail
