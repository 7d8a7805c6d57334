// SPDX-License-Identifier: BSL-1.0
// The queue of waiters in front of one bucket, in the order of arrival. A rate limiter has one
// line; a keyed rate limiter has one for each key that operations wait for. All functions are
// called under the lock of the state.
//
// Invariants:
// - The bucket is not charged for permits that a queued waiter waits for. A waiter that leaves the
//   line therefore gives back exactly the permits that it would have used.
// - A waiter with others behind it is charged for the time at which it was due, even if the timer
//   is late, so its lateness does not delay the others. The last waiter is charged for the present.
// - A waiter is accepted only if it is expected to be granted before its deadline, and only a
//   change of the limits can delay it beyond that. No other request can make it fail.
//
// A Bucket is a rate_limiter_schedule or a keyed_rate_limiter_bucket. It has
//   burst()                    the largest number of permits that one request may take
//   due(now, n, from)          the time, not before `from`, for which the first waiter is charged
//                              when it takes n permits; a time in the future may be too early
//   allowed_at(now, n, ahead)  a time at which n permits may be taken after `ahead` others, or an
//                              earlier one
//   expected(now, n, line)     a time at which n permits can be taken behind the line, or a later
//                              one
//   can_add(now, n, line)      whether the bucket can count n more permits
//   take(when, n)              takes n permits; returns the receipt
//   apply_due_bookings(now)    takes the permits of the bookings that are due
//   has_bookings()             whether bookings are outstanding
//   joining(w, now, line)      a waiter is about to join the line
//   note_change()              permits were taken beside the line, or an undecided waiter has
//                              left it
#pragma once

#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/resilience/detail/rate_limiter_records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1::detail {

class rate_limiter_line {
public:
    bool empty() const noexcept { return queue_.empty(); }
    std::size_t waiting() const noexcept { return waiting_; }
    // The sum of the permits that the waiters wait for.
    std::uint64_t permits() const noexcept { return permits_; }
    rate_limiter_waiter& front() noexcept { return as_own(queue_.front()); }

    // Calls f(w) for each waiter, in order.
    template <class F>
    void each(F f) const noexcept
    {
        for (const waiter& w : queue_)
            f(static_cast<const rate_limiter_waiter&>(w));
    }

    void swap(rate_limiter_line& other) noexcept
    {
        queue_.swap(other.queue_);
        std::swap(permits_, other.permits_);
        std::swap(waiting_, other.waiting_);
        std::swap(served_until_, other.served_until_);
    }

    // Whether n permits can ever be granted: refused or pending.
    template <class Bucket>
    static wait_decision check(const Bucket& bucket, std::uint64_t n) noexcept
    {
        if (n == 0)
            return wait_decision::refused(errc::invalid_argument);
        return n > bucket.burst() ? wait_decision::refused(errc::too_large)
                                  : wait_decision::pending();
    }

    // The time for which the first waiter is charged.
    template <class Bucket>
    charge_time due(Bucket& bucket, nanoseconds now) noexcept
    {
        return bucket.due(now, front().permits, std::min(now, served_until_));
    }

    // Decides a new request. Granted: the n permits are taken. Pending: the request may wait, and
    // is expected to be granted before its deadline. `retry_after` becomes the expected wait. The
    // waiters that are due must have been served.
    template <class Bucket>
    wait_decision decide(Bucket& bucket, nanoseconds now, std::uint64_t n, nanoseconds deadline,
                         std::size_t max_waiters, rate_limiter_receipt& receipt,
                         nanoseconds& retry_after) noexcept
    {
        retry_after = nanoseconds::max();
        if (const wait_decision possible = check(bucket, n); !possible.is_pending())
            return possible;
        const nanoseconds when = bucket.expected(now, n, *this);
        retry_after = std::max(saturating_sub(when, now), nanoseconds::zero());
        if (empty() && when <= now) {
            receipt = bucket.take({now}, n);
            bucket.note_change();
            return wait_decision::granted();
        }
        if (when > deadline || deadline <= now)
            return wait_decision::refused(errc::rate_limited);
        if (waiting_ >= max_waiters || !bucket.can_add(now, n, *this))
            return wait_decision::refused(errc::rejected);
        return wait_decision::pending();
    }

    template <class Bucket>
    void push_back(Bucket& bucket, rate_limiter_waiter& w, nanoseconds now) noexcept
    {
        if (empty())
            served_until_ = now;
        bucket.joining(w, now, *this);
        queue_.push_back(w);
        permits_ += w.permits;
        ++waiting_;
    }

    // Takes w out of the line; the waiters behind it move up.
    template <class Bucket>
    void remove(Bucket& bucket, rate_limiter_waiter& w, nanoseconds now) noexcept
    {
        if (&front() == &w)
            served_until_ =
                std::max(served_until_, std::min(now, bucket.allowed_at(now, w.permits, 0)));
        unlink(w);
        bucket.note_change();
    }

    // Grants the waiters that are due, and refuses waiters that a change of the limits has delayed
    // beyond their deadline. Calls decided(w) for each.
    template <class Bucket, class F>
    void serve(Bucket& bucket, nanoseconds now, F decided) noexcept
    {
        while (!empty()) {
            rate_limiter_waiter& w = front();
            charge_time when = due(bucket, now);
            if (when.time > now) {
                if (when.time <= w.deadline)
                    return;
                fail(bucket, w, errc::rate_limited, now, when.time);
            } else {
                if (waiting_ == 1 && !bucket.has_bookings())
                    when = {now};
                served_until_ = when.time;
                w.receipt = bucket.take(when, w.permits);
                unlink(w);
                w.grant();
            }
            decided(w);
        }
        bucket.apply_due_bookings(now);
    }

    // After a change of the limits: refuses the waiters that need more than the burst, or that
    // cannot be granted before their deadline. Calls decided(w) for each.
    template <class Bucket, class F>
    void fail_hopeless(Bucket& bucket, nanoseconds now, F decided) noexcept
    {
        std::uint64_t before = 0;
        for (auto it = queue_.begin(); it != queue_.end();) {
            rate_limiter_waiter& w = as_own(*it++);
            const nanoseconds when = bucket.allowed_at(now, w.permits, before);
            if (w.permits <= bucket.burst() && when <= w.deadline) {
                before += w.permits;
                continue;
            }
            if (w.permits <= bucket.burst())
                fail(bucket, w, errc::rate_limited, now, when);
            else
                fail(bucket, w, errc::too_large, now, nanoseconds::max());
            decided(w);
        }
    }

    // Moves all waiters to `out`, undecided.
    void take_all(waiter_list& out) noexcept
    {
        out.splice(out.end(), queue_);
        permits_ = 0;
        waiting_ = 0;
    }

private:
    static rate_limiter_waiter& as_own(waiter& w) noexcept
    {
        return static_cast<rate_limiter_waiter&>(w);
    }

    // Refuses w, which could be granted at `when`.
    template <class Bucket>
    void fail(Bucket& bucket, rate_limiter_waiter& w, errc code, nanoseconds now,
              nanoseconds when) noexcept
    {
        remove(bucket, w, now);
        w.fail(code);
        w.retry_after = when == nanoseconds::max() ? when : saturating_sub(when, now);
    }
    void unlink(rate_limiter_waiter& w) noexcept
    {
        permits_ -= w.permits;
        --waiting_;
        w.waiter_hook::unlink();
    }

    waiter_list queue_;
    std::uint64_t permits_ = 0;
    std::size_t waiting_ = 0;
    nanoseconds served_until_{}; // no waiter is charged for an earlier time
};

} // namespace turnstile::inline v0_1::detail
