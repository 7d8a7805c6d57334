// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/resilience/detail/rate_waiter.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The line in front of one bucket: waiters in the order of arrival. The rate limiter has one, the
// keyed rate limiter one for each key that is waited for. All functions are called under the
// owner's lock.
//
// Nothing in the line is charged, so a waiter that leaves gives back exactly what it would have
// used. A waiter with others behind it is charged for the time at which it was due, also if the
// timer is late: so its lateness does not delay them. The last one is charged for the present.
//
// A waiter is accepted only if it is expected in time, and nothing but a change of the limits
// makes it later than expected: an accepted waiter never fails because of others.
//
// A Bucket has
//   burst()                  the most that one request can ask for
//   due(now, n, from)        the moment, not before `from`, at which the first in line can have n
//                            permits; in the future it may be estimated too early
//   opens(now, n, ahead)     not later than when n permits can be had after `ahead` others
//   expected(now, n, line)   not earlier than when n permits can be had behind the line
//   can_add(now, n, line)    whether n more permits can be counted
//   take(moment, n)          takes n permits; returns their rate_stamp
//   settle(now)              takes what was promised for a time up to now
//   has_promised()           whether anything is promised for later
//   joining(w, now, line)    a waiter is about to join the line
//   note_change()            permits were taken beside the line, or a waiter has left it undecided
class rate_line {
public:
    bool empty() const noexcept { return queue_.empty(); }
    std::size_t waiting() const noexcept { return waiting_; }
    // What all in the line need.
    std::uint64_t need() const noexcept { return need_; }
    rate_waiter& front() noexcept { return as_rate(queue_.front()); }

    // Calls f(w) for each waiter, in order.
    template <class F>
    void each(F f) const noexcept
    {
        for (const waiter& w : queue_)
            f(static_cast<const rate_waiter&>(w));
    }

    void swap(rate_line& other) noexcept
    {
        queue_.swap(other.queue_);
        std::swap(need_, other.need_);
        std::swap(waiting_, other.waiting_);
        std::swap(served_until_, other.served_until_);
    }

    // Whether n permits can ever be had.
    template <class Bucket>
    static wait_decision check(const Bucket& bucket, std::uint64_t n) noexcept
    {
        if (n == 0)
            return wait_decision::refused(errc::invalid_argument);
        return n > bucket.burst() ? wait_decision::refused(errc::too_large)
                                  : wait_decision::pending();
    }

    // When the first waiter is due.
    template <class Bucket>
    rate_moment due(Bucket& bucket, nanoseconds now) noexcept
    {
        return bucket.due(now, front().need, std::min(now, served_until_));
    }

    // Takes n permits if they are there and the line is empty. If not, says whether the request
    // may wait until `deadline`, and how long it would have to. The line must have been served.
    template <class Bucket>
    wait_decision look(Bucket& bucket, nanoseconds now, std::uint64_t n, nanoseconds deadline,
                       std::size_t max_waiting, rate_stamp& stamp,
                       nanoseconds& retry_after) noexcept
    {
        retry_after = nanoseconds::max();
        if (const wait_decision possible = check(bucket, n); !possible.is_pending())
            return possible;
        const nanoseconds when = bucket.expected(now, n, *this);
        retry_after = std::max(saturating_sub(when, now), nanoseconds::zero());
        if (empty() && when <= now) {
            stamp = bucket.take({now}, n);
            bucket.note_change();
            return wait_decision::granted();
        }
        if (when > deadline || deadline <= now)
            return wait_decision::refused(errc::rate_limited);
        if (waiting_ >= max_waiting || !bucket.can_add(now, n, *this))
            return wait_decision::refused(errc::rejected);
        return wait_decision::pending();
    }

    template <class Bucket>
    void push_back(Bucket& bucket, rate_waiter& w, nanoseconds now) noexcept
    {
        if (empty())
            served_until_ = now;
        bucket.joining(w, now, *this);
        queue_.push_back(w);
        need_ += w.need;
        ++waiting_;
    }

    // Takes w out uncharged. Those behind it move up.
    template <class Bucket>
    void remove(Bucket& bucket, rate_waiter& w, nanoseconds now) noexcept
    {
        if (&front() == &w)
            served_until_ = std::max(served_until_, std::min(now, bucket.opens(now, w.need, 0)));
        unlink(w);
        bucket.note_change();
    }

    // Decides the waiters that are due, and those that a change of the limits has made too late.
    // Calls decided(w) for each.
    template <class Bucket, class F>
    void serve(Bucket& bucket, nanoseconds now, F decided) noexcept
    {
        while (!empty()) {
            rate_waiter& w = front();
            rate_moment when = due(bucket, now);
            if (when.time > now) {
                if (when.time <= w.deadline)
                    return;
                fail(bucket, w, errc::rate_limited, now, when.time);
            } else {
                if (waiting_ == 1 && !bucket.has_promised())
                    when = {now};
                served_until_ = when.time;
                w.stamp = bucket.take(when, w.need);
                unlink(w);
                w.grant();
            }
            decided(w);
        }
        bucket.apply_due_promises(now);
    }

    // After a change of the limits: fails the waiters that ask for too much, or can no longer be
    // served in time, and calls decided(w) for each.
    template <class Bucket, class F>
    void fail_hopeless(Bucket& bucket, nanoseconds now, F decided) noexcept
    {
        std::uint64_t before = 0;
        for (auto it = queue_.begin(); it != queue_.end();) {
            rate_waiter& w = as_rate(*it++);
            const nanoseconds when = bucket.opens(now, w.need, before);
            if (w.need <= bucket.burst() && when <= w.deadline) {
                before += w.need;
                continue;
            }
            if (w.need <= bucket.burst())
                fail(bucket, w, errc::rate_limited, now, when);
            else
                fail(bucket, w, errc::too_large, now, nanoseconds::max());
            decided(w);
        }
    }

    // Takes all waiters out, undecided.
    void take_all(waiter_list& out) noexcept
    {
        out.splice(out.end(), queue_);
        need_ = 0;
        waiting_ = 0;
    }

private:
    static rate_waiter& as_rate(waiter& w) noexcept { return static_cast<rate_waiter&>(w); }

    template <class Bucket>
    void fail(Bucket& bucket, rate_waiter& w, errc code, nanoseconds now, nanoseconds when) noexcept
    {
        remove(bucket, w, now);
        w.fail(code);
        w.retry_after = when == nanoseconds::max() ? when : saturating_sub(when, now);
    }
    void unlink(rate_waiter& w) noexcept
    {
        need_ -= w.need;
        --waiting_;
        w.waiter_hook::unlink();
    }

    waiter_list queue_;
    std::uint64_t need_ = 0;
    std::size_t waiting_ = 0;
    nanoseconds served_until_{}; // no waiter is charged for an earlier time
};

} // namespace turnstile::inline v0_1::detail
