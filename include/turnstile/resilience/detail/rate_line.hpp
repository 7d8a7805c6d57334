// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/detail/verdict.hpp>
#include <turnstile/resilience/detail/rate_waiter.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace turnstile::detail {

// The line in front of one bucket: waiters in the order of arrival, and the claims of
// reservations that were made while others waited. The rate limiter has one, the keyed rate
// limiter one for each key that is waited for. All functions are called under the owner's lock.
//
// Nothing in the line is charged, so a waiter that leaves gives back exactly what it would have
// used. A waiter with others behind it is charged for the time at which it was due, also if the
// timer is late: so its lateness does not delay them. The last one is charged for the present.
//
// A Bucket has
//   burst()                 the most that one request can ask for
//   opens(now, n, ahead)    when n permits can be had after `ahead` others are taken
//   take(now, n)            takes n permits; returns their rate_stamp
//   can_take(now, n)        whether so many can be counted
//   reserve(claim, now)     charges a claim, if there are any
class rate_line {
public:
    bool empty() const noexcept { return queue_.empty(); }
    // Waiters, without claims.
    std::size_t waiting() const noexcept { return waiting_; }
    rate_waiter& front() noexcept { return as_rate(queue_.front()); }

    void swap(rate_line& other) noexcept
    {
        queue_.swap(other.queue_);
        std::swap(ahead_, other.ahead_);
        std::swap(waiting_, other.waiting_);
        std::swap(claims_, other.claims_);
        std::swap(joined_, other.joined_);
        std::swap(departed_, other.departed_);
        std::swap(settled_, other.settled_);
        std::swap(served_until_, other.served_until_);
    }

    // When n permits can be had behind the whole line. With one bucket that is exact, unless a
    // request has left the line in front of a claim: then it may be sooner.
    template <class Bucket>
    nanoseconds opens(const Bucket& bucket, nanoseconds now, std::uint64_t n) const noexcept
    {
        return bucket.opens(now, n, ahead());
    }

    // Whether n permits can ever be had.
    template <class Bucket>
    static verdict check(const Bucket& bucket, std::uint64_t n) noexcept
    {
        if (n == 0)
            return verdict::refused(errc::invalid_argument);
        return n > bucket.burst() ? verdict::refused(errc::too_large) : verdict::wait();
    }

    // Whether n more can be counted in the bucket, behind the line.
    template <class Bucket>
    bool can_add(const Bucket& bucket, nanoseconds now, std::uint64_t n) const noexcept
    {
        return bucket.can_take(now, ahead() + n);
    }

    // Takes n permits if they are there and the line is empty. If not, says whether the request
    // may wait until `deadline`, and how long it would have to. The line must have been served.
    template <class Bucket>
    verdict look(Bucket& bucket, nanoseconds now, std::uint64_t n, nanoseconds deadline,
                 std::size_t max_waiting, rate_stamp& stamp, nanoseconds& retry_after) noexcept
    {
        retry_after = nanoseconds::max();
        if (const verdict possible = check(bucket, n); !possible.must_wait())
            return possible;
        const nanoseconds when = opens(bucket, now, n);
        retry_after = std::max(saturating_sub(when, now), nanoseconds::zero());
        if (empty() && when <= now) {
            stamp = bucket.take(now, n);
            return verdict::granted();
        }
        if (when > deadline || deadline <= now)
            return verdict::refused(errc::rate_limited);
        if (waiting_ >= max_waiting || !can_add(bucket, now, n))
            return verdict::refused(errc::rejected);
        return verdict::wait();
    }

    void push_back(rate_waiter& w, nanoseconds now) noexcept
    {
        if (empty())
            served_until_ = now;
        queue_.push_back(w);
        ahead_ += w.need;
        w.order = joined_;
        ++waiting_;
    }
    void push_back(rate_claim& claim) noexcept
    {
        if (claims_++ == 0)
            settled_ = departed_;
        queue_.push_back(claim);
        ahead_ += claim.need;
        claim.order = ++joined_;
        claim.departed = departed_;
    }

    // Takes w out uncharged. Those behind it move up, but the claims keep their time.
    template <class Bucket>
    void remove(const Bucket& bucket, rate_waiter& w, nanoseconds now) noexcept
    {
        if (&front() == &w) {
            const nanoseconds due = std::min(now, bucket.opens(now, w.need, 0));
            served_until_ = std::max(served_until_, due);
        }
        unlink(w);
        if (w.order != joined_)
            departed_ += w.need;
    }

    // Decides the waiters that are due, and those that have turned out to be too late, as may
    // happen with several buckets. Calls decided(w) for each.
    template <class Bucket, class F>
    void serve(Bucket& bucket, nanoseconds now, F decided) noexcept
    {
        for (settle(bucket, now); !empty(); settle(bucket, now)) {
            rate_waiter& w = front();
            const nanoseconds due = bucket.opens(now, w.need, 0);
            if (due > now) {
                if (due <= w.deadline)
                    return;
                fail(bucket, w, errc::rate_limited, now, due);
            } else {
                const bool is_last = &queue_.back() == &w;
                served_until_ = is_last ? now : std::min(now, std::max(due, served_until_));
                w.stamp = bucket.take(served_until_, w.need);
                unlink(w);
                w.grant();
            }
            decided(w);
        }
    }

    // Charges the claims that no waiter is ahead of.
    template <class Bucket>
    void settle(Bucket& bucket, nanoseconds now) noexcept
    {
        if constexpr (requires(rate_claim & claim) { bucket.reserve(claim, now); }) {
            while (!empty() && front().is_claim) {
                auto& claim = static_cast<rate_claim&>(front());
                settled_ = claim.departed;
                unlink(claim);
                bucket.reserve(claim, now);
            }
        }
    }

    // After a change of the limits: fails the waiters that ask for too much, or can no longer be
    // served in time, and calls decided(w) for each.
    template <class Bucket, class F>
    void fail_hopeless(const Bucket& bucket, nanoseconds now, F decided) noexcept
    {
        std::uint64_t before = 0;
        for (auto it = queue_.begin(); it != queue_.end();) {
            rate_waiter& w = as_rate(*it++);
            const nanoseconds when = bucket.opens(now, w.need, before);
            if (w.is_claim || (w.need <= bucket.burst() && when <= w.deadline)) {
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

    // Takes all waiters out, undecided, and charges the claims.
    template <class Bucket>
    void take_all(Bucket& bucket, nanoseconds now, waiter_list& out) noexcept
    {
        for (settle(bucket, now); !empty(); settle(bucket, now)) {
            rate_waiter& w = front();
            unlink(w);
            out.push_back(w);
        }
    }

private:
    static rate_waiter& as_rate(waiter& w) noexcept { return static_cast<rate_waiter&>(w); }

    // What is charged before a newcomer. A request that has left in front of a claim counts until
    // that claim is settled: the claim keeps its time, and so do those behind it.
    std::uint64_t ahead() const noexcept
    {
        return ahead_ + (claims_ == 0 ? 0 : departed_ - settled_);
    }
    template <class Bucket>
    void fail(const Bucket& bucket, rate_waiter& w, errc code, nanoseconds now,
              nanoseconds when) noexcept
    {
        remove(bucket, w, now);
        w.fail(code);
        w.retry_after = when == nanoseconds::max() ? when : saturating_sub(when, now);
    }
    void unlink(rate_waiter& w) noexcept
    {
        ahead_ -= w.need;
        --(w.is_claim ? claims_ : waiting_);
        w.waiter_hook::unlink();
    }

    waiter_list queue_;
    std::uint64_t ahead_ = 0; // what all in the line need
    std::size_t waiting_ = 0;
    std::size_t claims_ = 0;
    std::uint64_t joined_ = 0;   // claims so far
    std::uint64_t departed_ = 0; // permits that requests have left in front of a claim, so far
    std::uint64_t settled_ = 0;  // up to here that is past
    nanoseconds served_until_{}; // no waiter is charged for an earlier time
};

} // namespace turnstile::detail
