// SPDX-License-Identifier: BSL-1.0
// The state of basic_rate_limiter: its schedule (buckets and bookings), one line of waiters in
// front of it, and a timer for the first waiter. Reservations refer to it and may outlive the
// limiter.
//
// While no operation waits, no booking is outstanding and there is one bucket, permits are taken
// without the lock. Every locked function first disables that fast path and serves the waiters that
// are due; rearm() at its end sets the timer and enables the fast path again.
#pragma once

#include <turnstile/detail/wait/observable_state.hpp>
#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/resilience/detail/rate_limiter_line.hpp>
#include <turnstile/resilience/detail/rate_limiter_schedule.hpp>
#include <turnstile/resilience/rate_limiter_options.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Threading, class Clock>
class TURNSTILE_EXPORT rate_limiter_state final
    : public observable_state<Threading, rate_limiter_event, timed_state<Threading, Clock>> {
    using base = observable_state<Threading, rate_limiter_event, timed_state<Threading, Clock>>;
    using schedule_type = rate_limiter_schedule<Threading>;
    using fast_result = typename schedule_type::fast_result;

public:
    template <class Executor>
    rate_limiter_state(const Executor& executor, std::vector<bandwidth> limits,
                       const rate_limiter_options& options)
        : base(executor), schedule_(std::move(limits), this->now()), options_(options)
    {
        this->arrivals_grant_others_ = true;
    }

    // Takes n permits, or sets `retry_after`, unless it is null, to the expected wait.
    wait_decision try_acquire(std::uint64_t n, nanoseconds* retry_after) noexcept
    {
        const nanoseconds now = this->now();
        const fast_result fast = schedule_.try_take(now, n);
        if (fast == fast_result::taken) [[likely]] {
            count_grant(n);
            if (retry_after)
                *retry_after = nanoseconds::zero();
            return wait_decision::granted();
        }
        if (fast == fast_result::refused && !retry_after && !this->listeners_.has_listeners()) {
            count(rejected_, 1);
            return refused_by_fast_path(n);
        }
        rate_limiter_receipt ignored;
        nanoseconds delay{};
        const wait_decision decision = attempt(n, nanoseconds::min(), ignored, delay);
        if (retry_after)
            *retry_after = delay;
        return decision;
    }

    // Tries a wait that ends at the deadline, before an operation exists for it.
    wait_decision try_now(std::uint64_t n, nanoseconds now, nanoseconds deadline,
                          rate_limiter_receipt& receipt, nanoseconds& retry_after) noexcept
    {
        if (schedule_.try_take(now, n, receipt) == fast_result::taken) [[likely]] {
            count_grant(n);
            return wait_decision::granted();
        }
        return attempt(n, deadline, receipt, retry_after);
    }
    void give_back(std::uint64_t n, const rate_limiter_receipt& receipt) noexcept;

    // Books n permits. `when` becomes the time from which they may be used; if the reservation
    // is refused, the time that it would have taken.
    error_code reserve(rate_limiter_booking& booking, std::uint64_t n, nanoseconds within,
                       nanoseconds& when) noexcept;
    // Gives the permits of a booking back.
    void release_booking(rate_limiter_booking& booking) noexcept;
    // The reservation is destroyed: its permits count as used.
    void orphan_booking(std::unique_ptr<rate_limiter_booking> booking) noexcept;

    nanoseconds time_until(std::uint64_t n) noexcept;
    std::uint64_t available() noexcept;
    std::vector<bandwidth> limits();
    void set_limits(std::vector<bandwidth> limits);
    rate_limiter_stats stats() noexcept
    {
        return this->guarded([&] {
            return rate_limiter_stats{granted_.load(std::memory_order_relaxed),
                                      rejected_.load(std::memory_order_relaxed), waited_,
                                      cancelled_, line_.waiting()};
        });
    }

private:
    static void count(policy_atomic<Threading, std::uint64_t>& c, std::uint64_t n) noexcept
    {
        c.fetch_add(n, std::memory_order_relaxed);
    }
    void count_grant(std::uint64_t n) noexcept
    {
        if (options_.count_grants)
            count(granted_, n);
    }
    wait_decision refused_by_fast_path(std::uint64_t n) const noexcept
    {
        const wait_decision decision = rate_limiter_line::check(schedule_, n);
        return decision.is_pending() ? wait_decision::refused(errc::rate_limited) : decision;
    }
    static rate_limiter_waiter& as_own(waiter& w) noexcept
    {
        return static_cast<rate_limiter_waiter&>(w);
    }

    // Takes n permits, or decides whether the request may wait, under the lock.
    wait_decision attempt(std::uint64_t n, nanoseconds deadline, rate_limiter_receipt& receipt,
                          nanoseconds& retry_after) noexcept;

    // The functions from here on are called under the lock.
    bool admit(waiter& w) noexcept override;
    bool admit_and_grant(waiter& w, ready_list& ready) noexcept override
    {
        serve_line(this->now(), ready);
        return admit(w);
    }
    void remove(waiter& w) noexcept override
    {
        line_.remove(schedule_, as_own(w), this->now());
        ++cancelled_;
    }
    void reconsider(ready_list& ready) noexcept override { serve(this->now(), ready); }
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;
    void wake(ready_list& ready) noexcept override { serve(this->now(), ready); }

    void serve(nanoseconds now, ready_list& ready) noexcept
    {
        serve_line(now, ready);
        rearm(now);
    }
    void serve_line(nanoseconds now, ready_list& ready) noexcept;
    void note_decided(rate_limiter_waiter& w, ready_list& ready) noexcept;
    void note_rejection(errc code, std::uint64_t n, nanoseconds retry_after) noexcept
    {
        count(rejected_, 1);
        this->listeners_.publish({rate_limiter_event::rejected, code, n, retry_after});
    }
    wait_decision decide_request(nanoseconds now, std::uint64_t n, nanoseconds deadline,
                                 rate_limiter_receipt& receipt, nanoseconds& retry_after) noexcept;
    void rearm(nanoseconds now) noexcept;

    schedule_type schedule_;
    const rate_limiter_options options_;
    policy_atomic<Threading, std::uint64_t> granted_{0};
    policy_atomic<Threading, std::uint64_t> rejected_{0};
    // Guarded by the lock.
    rate_limiter_line line_;
    std::uint64_t waited_ = 0;
    std::uint64_t cancelled_ = 0;
    bool is_throttled_ = false;
};

template <class Threading, class Clock>
wait_decision rate_limiter_state<Threading, Clock>::attempt(std::uint64_t n, nanoseconds deadline,
                                                            rate_limiter_receipt& receipt,
                                                            nanoseconds& retry_after) noexcept
{
    return this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve_line(now, ready);
        const wait_decision decision = decide_request(now, n, deadline, receipt, retry_after);
        rearm(now);
        return decision;
    });
}

template <class Threading, class Clock>
wait_decision rate_limiter_state<Threading, Clock>::decide_request(
    nanoseconds now, std::uint64_t n, nanoseconds deadline, rate_limiter_receipt& receipt,
    nanoseconds& retry_after) noexcept
{
    const wait_decision decision =
        line_.decide(schedule_, now, n, deadline, options_.max_waiters, receipt, retry_after);
    if (decision.is_granted())
        count_grant(n);
    else if (decision.is_refused())
        note_rejection(decision.code(), n, retry_after);
    return decision;
}

template <class Threading, class Clock>
bool rate_limiter_state<Threading, Clock>::admit(waiter& plain) noexcept
{
    rate_limiter_waiter& w = as_own(plain);
    const nanoseconds now = this->now();
    w.decide(decide_request(now, w.permits, w.deadline, w.receipt, w.retry_after));
    if (w.is_pending()) {
        line_.push_back(schedule_, w, now);
        // Without memory for a timer the waiter would never be granted.
        if (line_.waiting() == 1 && !this->try_wake_at(line_.due(schedule_, now).time)) {
            line_.remove(schedule_, w, now);
            w.fail(errc::rejected);
            note_rejection(errc::rejected, w.permits, w.retry_after);
        }
    }
    rearm(now);
    return !w.is_pending();
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::serve_line(nanoseconds now, ready_list& ready) noexcept
{
    schedule_.disable_fast_path();
    line_.serve(schedule_, now, [&](rate_limiter_waiter& w) { note_decided(w, ready); });
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::note_decided(rate_limiter_waiter& w,
                                                        ready_list& ready) noexcept
{
    if (w.is_granted()) {
        count_grant(w.permits);
        ++waited_;
    } else {
        note_rejection(w.decision().code(), w.permits, w.retry_after);
    }
    ready.push_back(w);
}

// Sets the timer for the first waiter, publishes the beginning or the end of throttling, and opens
// the fast path if it may be used.
template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::rearm(nanoseconds now) noexcept
{
    if (line_.empty())
        this->sleep();
    else
        this->wake_at(line_.due(schedule_, now).time);
    if (is_throttled_ == line_.empty()) {
        is_throttled_ = !is_throttled_;
        this->listeners_.publish(
            {is_throttled_ ? rate_limiter_event::throttled : rate_limiter_event::recovered});
    }
    schedule_.enable_fast_path(line_);
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::take_back(waiter& w, ready_list& ready) noexcept
{
    const nanoseconds now = this->now();
    schedule_.disable_fast_path();
    schedule_.refund(now, as_own(w).permits, as_own(w).receipt);
    count_grant(-as_own(w).permits);
    ++cancelled_;
    serve(now, ready);
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::give_back(std::uint64_t n,
                                                     const rate_limiter_receipt& receipt) noexcept
{
    this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        schedule_.disable_fast_path();
        schedule_.refund(now, n, receipt);
        count_grant(-n);
        serve(now, ready);
    });
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::take_all(waiter_list& out) noexcept
{
    const nanoseconds now = this->now();
    schedule_.disable_fast_path();
    line_.take_all(out);
    rearm(now);
    base::take_all(out);
}

template <class Threading, class Clock>
error_code rate_limiter_state<Threading, Clock>::reserve(rate_limiter_booking& booking,
                                                         std::uint64_t n, nanoseconds within,
                                                         nanoseconds& when) noexcept
{
    const wait_decision result = this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve_line(now, ready);
        wait_decision decision = line_.check(schedule_, n);
        when = decision.is_pending() ? std::max(now, schedule_.expected(now, n, line_))
                                     : nanoseconds::max();
        const nanoseconds delay = decision.is_pending() ? saturating_sub(when, now) : when;
        if (decision.is_pending() && delay > within)
            decision = wait_decision::refused(errc::rate_limited);
        if (decision.is_pending() && !schedule_.can_add(now, n, line_))
            decision = wait_decision::refused(errc::rejected);
        if (decision.is_pending()) {
            booking.permits = n;
            booking.ready_at = when;
            schedule_.reserve(booking, now, line_);
            count_grant(n);
        } else {
            note_rejection(decision.code(), n, delay);
            when = delay;
        }
        rearm(now);
        return decision;
    });
    return result.is_refused() ? result.error() : error_code();
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::release_booking(rate_limiter_booking& booking) noexcept
{
    this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve_line(now, ready);
        schedule_.release(booking, now);
        count_grant(-booking.permits);
        serve(now, ready);
    });
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::orphan_booking(
    std::unique_ptr<rate_limiter_booking> booking) noexcept
{
    this->guarded([&] {
        if (booking->is_outstanding())
            booking.release()->is_orphaned = true;
    });
}

template <class Threading, class Clock>
nanoseconds rate_limiter_state<Threading, Clock>::time_until(std::uint64_t n) noexcept
{
    return this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve(now, ready);
        if (!line_.check(schedule_, n).is_pending())
            return nanoseconds::max();
        const nanoseconds when = schedule_.expected(now, n, line_);
        return std::max(saturating_sub(when, now), nanoseconds::zero());
    });
}

template <class Threading, class Clock>
std::uint64_t rate_limiter_state<Threading, Clock>::available() noexcept
{
    return this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve(now, ready);
        return line_.empty() ? schedule_.available(now) : 0;
    });
}

template <class Threading, class Clock>
std::vector<bandwidth> rate_limiter_state<Threading, Clock>::limits()
{
    // Memory is allocated without the lock.
    std::vector<bandwidth> copy;
    for (std::size_t needed = 1; copy.size() < needed;) {
        copy.resize(needed);
        this->guarded([&] {
            needed = schedule_.limits().size();
            if (needed <= copy.size()) {
                std::copy(schedule_.limits().begin(), schedule_.limits().end(), copy.begin());
                copy.resize(needed);
            }
        });
    }
    return copy;
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::set_limits(std::vector<bandwidth> limits)
{
    typename schedule_type::prepared_limits next(std::move(limits));
    this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve_line(now, ready); // under the old limits, up to the present
        schedule_.change(next, now);
        this->listeners_.publish({rate_limiter_event::limits_changed});
        line_.fail_hopeless(schedule_, now,
                            [&](rate_limiter_waiter& w) { note_decided(w, ready); });
        schedule_.measure(now, line_);
        serve(now, ready);
    });
}

extern template class rate_limiter_state<thread_safe, default_clock>;
extern template class rate_limiter_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
