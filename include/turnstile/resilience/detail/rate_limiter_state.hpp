// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/observable_state.hpp>
#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/resilience/detail/rate_levels.hpp>
#include <turnstile/resilience/detail/rate_line.hpp>
#include <turnstile/resilience/rate_options.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

// The state of a rate limiter: its buckets, and one line of waiters in front of them. While the
// line is empty and there is one bucket, permits are taken without the lock.
template <class Threading, class Clock>
class TURNSTILE_EXPORT rate_limiter_state final
    : public observable_state<Threading, rate_event, timed_state<Threading, Clock>> {
    using base = observable_state<Threading, rate_event, timed_state<Threading, Clock>>;
    using levels_type = rate_levels<Threading>;

public:
    template <class Executor>
    rate_limiter_state(const Executor& executor, std::vector<bandwidth> limits,
                       const rate_options& options)
        : base(executor), levels_(std::move(limits), this->now()), options_(options)
    {
        this->arrivals_grant_others_ = true;
    }

    bool try_acquire(std::uint64_t n, nanoseconds* retry_after) noexcept
    {
        const nanoseconds now = this->now();
        const auto quick = levels_.try_take(now, n);
        if (quick == levels_type::outcome::taken) [[likely]] {
            count_grant(n);
            if (retry_after)
                *retry_after = nanoseconds::zero();
            return true;
        }
        if (quick == levels_type::outcome::refused && !retry_after &&
            !this->listeners_.has_listeners()) {
            count(rejected_, 1);
            return false;
        }
        rate_stamp ignored;
        nanoseconds delay{};
        const bool taken = look(n, nanoseconds::min(), ignored, delay).is_granted();
        if (retry_after)
            *retry_after = delay;
        return taken;
    }

    // The first look of a wait that ends at the deadline.
    wait_decision try_now(std::uint64_t n, nanoseconds now, nanoseconds deadline, rate_stamp& stamp,
                          nanoseconds& retry_after) noexcept
    {
        if (levels_.try_take(now, n, stamp) == levels_type::outcome::taken) [[likely]] {
            count_grant(n);
            return wait_decision::granted();
        }
        return look(n, deadline, stamp, retry_after);
    }
    void give_back(std::uint64_t n, const rate_stamp& stamp) noexcept;

    // Takes n permits that will be there later, and says when. If that is after `within`, says how
    // long it would have taken.
    error_code reserve(rate_promise& promise, std::uint64_t n, nanoseconds within,
                       nanoseconds& when) noexcept;
    // The claim will not be used.
    void cancel_promise(rate_promise& promise) noexcept;
    // The claim will be used, but its holder is gone.
    void drop_promise(std::unique_ptr<rate_promise> promise) noexcept;

    nanoseconds time_until(std::uint64_t n) noexcept;
    std::uint64_t available() noexcept;
    std::vector<bandwidth> limits();
    void change(std::vector<bandwidth> limits);
    rate_stats stats() noexcept;

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
    static rate_waiter& as_rate(waiter& w) noexcept { return static_cast<rate_waiter&>(w); }

    // The longer look, under the lock.
    wait_decision look(std::uint64_t n, nanoseconds deadline, rate_stamp& stamp,
                       nanoseconds& retry_after) noexcept;

    // All from here on is under the lock.
    bool admit(waiter& w) noexcept override;
    bool admit_and_grant(waiter& w, ready_list& ready) noexcept override;
    void remove(waiter& w) noexcept override;
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
    void note_decided(rate_waiter& w, ready_list& ready) noexcept;
    void note_rejection(errc code, std::uint64_t n, nanoseconds retry_after) noexcept
    {
        count(rejected_, 1);
        this->listeners_.publish({rate_event::rejected, code, n, retry_after});
    }
    wait_decision look_locked(nanoseconds now, std::uint64_t n, nanoseconds deadline,
                              rate_stamp& stamp, nanoseconds& retry_after) noexcept;
    void rearm(nanoseconds now) noexcept;

    levels_type levels_;
    const rate_options options_;
    policy_atomic<Threading, std::uint64_t> granted_{0};
    policy_atomic<Threading, std::uint64_t> rejected_{0};
    // Guarded by the lock.
    rate_line line_;
    std::uint64_t waited_ = 0;
    std::uint64_t cancelled_ = 0;
    bool is_throttled_ = false;
};

template <class Threading, class Clock>
wait_decision rate_limiter_state<Threading, Clock>::look(std::uint64_t n, nanoseconds deadline,
                                                         rate_stamp& stamp,
                                                         nanoseconds& retry_after) noexcept
{
    return this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve_line(now, ready);
        const wait_decision v = look_locked(now, n, deadline, stamp, retry_after);
        rearm(now);
        return v;
    });
}

template <class Threading, class Clock>
wait_decision rate_limiter_state<Threading, Clock>::look_locked(nanoseconds now, std::uint64_t n,
                                                                nanoseconds deadline,
                                                                rate_stamp& stamp,
                                                                nanoseconds& retry_after) noexcept
{
    const wait_decision v =
        line_.look(levels_, now, n, deadline, options_.max_waiters, stamp, retry_after);
    if (v.is_granted())
        count_grant(n);
    else if (v.is_refused())
        note_rejection(v.code(), n, retry_after);
    return v;
}

template <class Threading, class Clock>
bool rate_limiter_state<Threading, Clock>::admit(waiter& plain) noexcept
{
    rate_waiter& w = as_rate(plain);
    const nanoseconds now = this->now();
    w.decide(look_locked(now, w.need, w.deadline, w.stamp, w.retry_after));
    if (w.is_pending()) {
        line_.push_back(levels_, w, now);
        // If there is no memory for a timer, it had better not wait.
        if (line_.waiting() == 1 && !this->try_wake_at(line_.due(levels_, now).time)) {
            line_.remove(levels_, w, now);
            w.fail(errc::rejected);
            note_rejection(errc::rejected, w.need, w.retry_after);
        }
    }
    rearm(now);
    return !w.is_pending();
}

template <class Threading, class Clock>
bool rate_limiter_state<Threading, Clock>::admit_and_grant(waiter& w, ready_list& ready) noexcept
{
    serve_line(this->now(), ready);
    return admit(w);
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::serve_line(nanoseconds now, ready_list& ready) noexcept
{
    levels_.close_fast_path();
    line_.serve(levels_, now, [&](rate_waiter& w) { note_decided(w, ready); });
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::note_decided(rate_waiter& w, ready_list& ready) noexcept
{
    if (w.is_granted()) {
        count_grant(w.need);
        ++waited_;
    } else {
        note_rejection(w.decision().code(), w.need, w.retry_after);
    }
    ready.push_back(w);
}

// The first in the line is woken in time; while the line is empty, the fast path is open.
template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::rearm(nanoseconds now) noexcept
{
    if (line_.empty())
        this->sleep();
    else
        this->wake_at(line_.due(levels_, now).time);
    if (is_throttled_ == line_.empty()) {
        is_throttled_ = !is_throttled_;
        this->listeners_.publish({is_throttled_ ? rate_event::throttled : rate_event::recovered});
    }
    levels_.release(!line_.empty());
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::remove(waiter& w) noexcept
{
    line_.remove(levels_, as_rate(w), this->now());
    ++cancelled_;
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::take_back(waiter& w, ready_list& ready) noexcept
{
    const nanoseconds now = this->now();
    levels_.close_fast_path();
    levels_.give_back(now, as_rate(w).need, as_rate(w).stamp);
    count_grant(-as_rate(w).need);
    ++cancelled_;
    serve(now, ready);
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::give_back(std::uint64_t n,
                                                     const rate_stamp& stamp) noexcept
{
    this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        levels_.close_fast_path();
        levels_.give_back(now, n, stamp);
        count_grant(-n);
        serve(now, ready);
    });
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::take_all(waiter_list& out) noexcept
{
    const nanoseconds now = this->now();
    levels_.close_fast_path();
    line_.take_all(out);
    rearm(now);
    base::take_all(out);
}

template <class Threading, class Clock>
error_code rate_limiter_state<Threading, Clock>::reserve(rate_promise& promise, std::uint64_t n,
                                                         nanoseconds within,
                                                         nanoseconds& when) noexcept
{
    const wait_decision result = this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve_line(now, ready);
        wait_decision v = line_.check(levels_, n);
        when = v.is_pending() ? std::max(now, levels_.expected(now, n, line_)) : nanoseconds::max();
        const nanoseconds delay = v.is_pending() ? saturating_sub(when, now) : when;
        if (v.is_pending() && delay > within)
            v = wait_decision::refused(errc::rate_limited);
        if (v.is_pending() && !levels_.can_add(now, n, line_))
            v = wait_decision::refused(errc::rejected);
        if (v.is_pending()) {
            promise.need = n;
            promise.ready_at = when;
            levels_.reserve(promise, now, line_);
            count_grant(n);
        } else {
            note_rejection(v.code(), n, delay);
            when = delay;
        }
        rearm(now);
        return v;
    });
    return result.is_refused() ? result.error() : error_code();
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::cancel_promise(rate_promise& promise) noexcept
{
    this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve_line(now, ready);
        levels_.cancel(promise, now);
        count_grant(-promise.need);
        serve(now, ready);
    });
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::drop_promise(
    std::unique_ptr<rate_promise> promise) noexcept
{
    this->guarded([&] {
        if (promise->is_promised())
            promise.release()->is_dropped = true;
    });
}

template <class Threading, class Clock>
nanoseconds rate_limiter_state<Threading, Clock>::time_until(std::uint64_t n) noexcept
{
    return this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve(now, ready);
        if (!line_.check(levels_, n).is_pending())
            return nanoseconds::max();
        const nanoseconds when = levels_.expected(now, n, line_);
        return std::max(saturating_sub(when, now), nanoseconds::zero());
    });
}

template <class Threading, class Clock>
std::uint64_t rate_limiter_state<Threading, Clock>::available() noexcept
{
    return this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve(now, ready);
        return line_.empty() ? levels_.available(now) : 0;
    });
}

template <class Threading, class Clock>
std::vector<bandwidth> rate_limiter_state<Threading, Clock>::limits()
{
    // Copied without allocating under the lock.
    std::vector<bandwidth> copy;
    for (std::size_t needed = 1; copy.size() < needed;) {
        copy.resize(needed);
        this->guarded([&] {
            needed = levels_.limits().size();
            if (needed <= copy.size()) {
                std::copy(levels_.limits().begin(), levels_.limits().end(), copy.begin());
                copy.resize(needed);
            }
        });
    }
    return copy;
}

template <class Threading, class Clock>
void rate_limiter_state<Threading, Clock>::change(std::vector<bandwidth> limits)
{
    typename levels_type::plan next(std::move(limits));
    this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = this->now();
        serve_line(now, ready); // by the old limits, up to now
        levels_.change(next, now);
        this->listeners_.publish({rate_event::limits_changed});
        line_.fail_hopeless(levels_, now, [&](rate_waiter& w) { note_decided(w, ready); });
        levels_.measure(now, line_);
        serve(now, ready);
    });
}

template <class Threading, class Clock>
rate_stats rate_limiter_state<Threading, Clock>::stats() noexcept
{
    return this->guarded([&] {
        return rate_stats{granted_.load(std::memory_order_relaxed),
                          rejected_.load(std::memory_order_relaxed), waited_, cancelled_,
                          line_.waiting()};
    });
}

extern template class rate_limiter_state<thread_safe, default_clock>;
extern template class rate_limiter_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
