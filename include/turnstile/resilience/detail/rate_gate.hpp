#pragma once

#include <turnstile/core/detail/alarm.hpp>
#include <turnstile/core/detail/listener_list.hpp>
#include <turnstile/core/detail/verdict.hpp>
#include <turnstile/resilience/detail/rate_levels.hpp>
#include <turnstile/resilience/rate_options.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace turnstile::detail {

struct rate_waiter : waiter {
    using waiter::waiter;
    std::uint64_t need = 1;
    std::uint64_t owed = 0; // what reservations right behind it have taken for good
    nanoseconds deadline = nanoseconds::max();
    rate_stamp stamp;
    bool is_claim = false;
};

// A reservation's place in the queue. It is granted nothing: when its turn comes it is charged.
struct rate_claim : rate_waiter {
    rate_claim() noexcept : rate_waiter([](waiter&, how) {}) { is_claim = true; }
    bool charged = false;
};

// Buckets, and a FIFO of those who wait for them, operations and claims. Nobody in the queue
// has been charged yet, so who leaves it gives back exactly what it would have used, and those
// behind move up.
template <class Threading, class Clock>
class TURNSTILE_EXPORT rate_gate final : public timed_state<Threading, Clock> {
    using base = timed_state<Threading, Clock>;
    using levels_type = rate_levels<Threading>;

public:
    using listeners_type = listener_list<rate_event, Threading>;

    template <class Executor>
    rate_gate(const Executor& executor, std::vector<bandwidth> limits, const rate_options& options)
        : base(executor), levels_(std::move(limits), this->now()), options_(options)
    {
    }

    bool try_acquire(std::uint64_t n, nanoseconds* retry_after) noexcept
    {
        const auto quick = levels_.try_take(this->now(), n);
        if (quick == levels_type::outcome::taken) [[likely]] {
            count_grant(n);
            if (retry_after)
                *retry_after = nanoseconds::zero();
            return true;
        }
        if (quick == levels_type::outcome::refused && !retry_after && !listeners_.somebody()) {
            count(rejected_, 1);
            return false;
        }
        rate_stamp ignored;
        nanoseconds delay{};
        const bool taken = look(n, nanoseconds::zero(), delay, ignored).is_granted();
        if (retry_after)
            *retry_after = delay;
        return taken;
    }

    // The first look of a wait that may take no longer than `within`.
    verdict try_now(std::uint64_t n, nanoseconds within, rate_stamp& stamp,
                    nanoseconds& retry_after) noexcept;
    void give_back(std::uint64_t n, const rate_stamp& stamp) noexcept;
    void start(waiter& w) noexcept;

    // Takes a place for n permits, and says when they are to be had.
    error_code reserve(rate_claim& claim, std::uint64_t n, nanoseconds within,
                       nanoseconds& when) noexcept;
    // The claim will not be used; or it will, but nobody needs to know it any more.
    void cancel_claim(rate_claim& claim) noexcept;
    void drop_claim(rate_claim& claim) noexcept;

    nanoseconds time_until(std::uint64_t n) noexcept;
    std::uint64_t available() noexcept;
    std::vector<bandwidth> limits();
    void change(std::vector<bandwidth> limits);
    rate_stats stats() noexcept;
    listeners_type& listeners() noexcept { return listeners_; }

private:
    template <class T>
    using cell = typename Threading::template cell<T>;

    static void count(cell<std::uint64_t>& c, std::uint64_t n) noexcept
    {
        std::uint64_t now = c.load(std::memory_order_relaxed);
        while (!c.compare_exchange_weak(now, now + n, std::memory_order_relaxed)) {
        }
    }
    void count_grant(std::uint64_t n) noexcept
    {
        if (options_.count_grants)
            count(granted_, n);
    }
    static rate_waiter& as_rate(waiter& w) noexcept { return static_cast<rate_waiter&>(w); }

    // Runs f(ready) under the lock, and then tells what has happened.
    template <class F>
    auto update_and_tell(F f) noexcept
    {
        struct telling {
            rate_gate& gate;
            ~telling() { gate.tell(); }
        } const after{*this};
        return this->update(f);
    }
    void tell() noexcept
    {
        if (!listeners_.somebody())
            return;
        const wait_state_ptr<Threading> keep_alive(this); // a listener may end the object
        listeners_.dispatch();
    }

    // The longer look, under the lock.
    verdict look(std::uint64_t n, nanoseconds within, nanoseconds& retry_after,
                 rate_stamp& stamp) noexcept;

    // All from here on is under the lock.
    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override { serve(ready); }
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;
    void wake(ready_list& ready) noexcept override { serve(ready); }
    void woken() noexcept override { tell(); }

    nanoseconds next_due() noexcept
    {
        return levels_.opens(looked_, as_rate(this->queue_.front()).need);
    }
    void serve(ready_list& ready) noexcept;
    void settle_claims(nanoseconds time) noexcept;
    void charge(rate_waiter& w, nanoseconds time) noexcept;
    void unlink(rate_waiter& w) noexcept;
    void pass_on(rate_waiter& w, std::uint64_t permits) noexcept;
    void fail_hopeless(nanoseconds time, ready_list& ready) noexcept;
    void fail(rate_waiter& w, errc code, nanoseconds retry_after, ready_list& ready) noexcept;
    void note_rejection(errc code, std::uint64_t n, nanoseconds retry_after) noexcept
    {
        count(rejected_, 1);
        listeners_.publish({rate_event::rejected, code, n, retry_after});
    }
    void finish() noexcept;

    levels_type levels_;
    const rate_options options_;
    cell<std::uint64_t> granted_{0};
    cell<std::uint64_t> rejected_{0};
    // Guarded by the lock.
    std::uint64_t ahead_ = 0;    // what all in the queue need and owe
    std::size_t operations_ = 0; // those who are not claims
    nanoseconds looked_{};       // when the queue was last seen to
    std::uint64_t waited_ = 0;
    std::uint64_t cancelled_ = 0;
    bool is_throttled_ = false;
    listeners_type listeners_;
};

template <class Threading, class Clock>
verdict rate_gate<Threading, Clock>::try_now(std::uint64_t n, nanoseconds within, rate_stamp& stamp,
                                             nanoseconds& retry_after) noexcept
{
    if (levels_.try_take(this->now(), n, stamp) == levels_type::outcome::taken) [[likely]] {
        count_grant(n);
        return verdict::granted();
    }
    return look(n, within, retry_after, stamp);
}

template <class Threading, class Clock>
verdict rate_gate<Threading, Clock>::look(std::uint64_t n, nanoseconds within,
                                          nanoseconds& retry_after, rate_stamp& stamp) noexcept
{
    return update_and_tell([&](ready_list& ready) {
        verdict v = levels_.check(n);
        retry_after = nanoseconds::max();
        if (v.must_wait()) {
            serve(ready);
            levels_.hold();
            const nanoseconds time = this->now();
            const nanoseconds delay = saturating_sub(levels_.opens(time, n, ahead_), time);
            retry_after = std::max(delay, nanoseconds::zero());
            if (retry_after == nanoseconds::zero() && this->queue_.empty()) {
                stamp = levels_.take(time, n);
                count_grant(n);
                v = verdict::granted();
            } else if (retry_after > within || within == nanoseconds::zero()) {
                v = verdict::refused(errc::rate_limited);
            } else if (operations_ >= options_.max_waiters) {
                v = verdict::refused(errc::rejected);
            }
            finish();
        }
        if (!v.is_granted() && !v.must_wait())
            note_rejection(v.code(), n, retry_after);
        return v;
    });
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::give_back(std::uint64_t n, const rate_stamp& stamp) noexcept
{
    update_and_tell([&](ready_list& ready) {
        levels_.hold();
        levels_.give_back(this->now(), n, stamp);
        serve(ready);
    });
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::start(waiter& w) noexcept
{
    if (!listeners_.somebody())
        return base::start(w);
    const wait_state_ptr<Threading> keep_alive(this); // the handler may destroy the object
    base::start(w);
    tell();
}

template <class Threading, class Clock>
bool rate_gate<Threading, Clock>::admit(waiter& plain) noexcept
{
    rate_waiter& w = as_rate(plain);
    const nanoseconds time = this->now();
    levels_.hold();
    settle_claims(time);
    const nanoseconds when = levels_.opens(time, w.need, ahead_);
    if (w.need > levels_.burst()) {
        w.fail(errc::too_large);
    } else if (when <= time && this->queue_.empty()) {
        w.stamp = levels_.take(time, w.need);
        count_grant(w.need);
        w.grant();
    } else if (when > w.deadline) {
        w.fail(errc::rate_limited);
    } else if (operations_ >= options_.max_waiters) {
        w.fail(errc::rejected);
    } else {
        this->queue_.push_back(w);
        ahead_ += w.need;
        ++operations_;
        if (operations_ == 1 && !this->try_wake_at(next_due())) {
            unlink(w);
            w.fail(errc::rejected); // there is no memory for a timer
        }
    }
    if (!w.undecided() && !w.granted())
        note_rejection(w.fate().code(), w.need,
                       w.need > levels_.burst() ? nanoseconds::max() : saturating_sub(when, time));
    finish();
    return !w.undecided();
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::serve(ready_list& ready) noexcept
{
    const nanoseconds time = this->now();
    levels_.hold();
    for (settle_claims(time); !this->queue_.empty(); settle_claims(time)) {
        rate_waiter& w = as_rate(this->queue_.front());
        const nanoseconds when = levels_.opens(time, w.need);
        if (when > time && when <= w.deadline)
            break;
        if (when > time) {
            fail(w, errc::rate_limited, when - time, ready);
            continue;
        }
        charge(w, time);
        ++waited_;
        count_grant(w.need);
        w.grant();
        ready.push_back(w);
    }
    finish();
}

// Charges the claims at the front that are due: at their time, since whoever holds them may
// have used them then, but not before the queue was last seen to.
template <class Threading, class Clock>
void rate_gate<Threading, Clock>::settle_claims(nanoseconds time) noexcept
{
    while (!this->queue_.empty() && as_rate(this->queue_.front()).is_claim) {
        auto& claim = static_cast<rate_claim&>(this->queue_.front());
        const nanoseconds when = levels_.opens(time, claim.need);
        if (when > time)
            break;
        charge(claim, std::min(time, std::max(when, looked_)));
        claim.charged = true;
    }
    looked_ = time;
}

// Takes the first out of the queue, with what it and those right behind it have taken.
template <class Threading, class Clock>
void rate_gate<Threading, Clock>::charge(rate_waiter& w, nanoseconds time) noexcept
{
    w.stamp = levels_.take(time, w.need);
    if (w.owed != 0)
        levels_.take(time, w.owed);
    ahead_ -= std::exchange(w.owed, 0);
    unlink(w);
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::unlink(rate_waiter& w) noexcept
{
    ahead_ -= w.need;
    if (!w.is_claim)
        --operations_;
    w.waiter_hook::unlink();
}

// Somebody in the queue is behind w no more: what is owed there is owed before it.
template <class Threading, class Clock>
void rate_gate<Threading, Clock>::pass_on(rate_waiter& w, std::uint64_t permits) noexcept
{
    if (permits == 0)
        return;
    const auto place = this->queue_.iterator_to(w);
    if (place != this->queue_.begin()) {
        as_rate(*std::prev(place)).owed += permits;
        return;
    }
    levels_.take(this->now(), permits);
    ahead_ -= permits;
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::remove(waiter& plain) noexcept
{
    rate_waiter& w = as_rate(plain);
    pass_on(w, std::exchange(w.owed, 0));
    unlink(w);
    ++cancelled_;
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::take_back(waiter& w, ready_list& ready) noexcept
{
    levels_.hold();
    levels_.give_back(this->now(), as_rate(w).need, as_rate(w).stamp);
    ++cancelled_;
    serve(ready);
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::take_all(waiter_list& out) noexcept
{
    const nanoseconds time = this->now();
    levels_.hold();
    waiter_list operations;
    while (!this->queue_.empty()) {
        rate_waiter& w = as_rate(this->queue_.front());
        if (w.is_claim) {
            charge(w, time);
            static_cast<rate_claim&>(w).charged = true;
            continue;
        }
        pass_on(w, std::exchange(w.owed, 0));
        unlink(w);
        operations.push_back(w);
    }
    finish();
    base::take_all(out);
    out.splice(out.end(), operations);
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::fail(rate_waiter& w, errc code, nanoseconds retry_after,
                                       ready_list& ready) noexcept
{
    note_rejection(code, w.need, retry_after);
    pass_on(w, std::exchange(w.owed, 0));
    unlink(w);
    w.fail(code);
    ready.push_back(w);
}

// After the limits have changed: those who ask for too much, or can no longer be in time.
template <class Threading, class Clock>
void rate_gate<Threading, Clock>::fail_hopeless(nanoseconds time, ready_list& ready) noexcept
{
    std::uint64_t before = 0;
    for (auto it = this->queue_.begin(); it != this->queue_.end();) {
        rate_waiter& w = as_rate(*it++);
        const nanoseconds when = levels_.opens(time, w.need, before);
        if (!w.is_claim && w.need > levels_.burst())
            fail(w, errc::too_large, nanoseconds::max(), ready);
        else if (!w.is_claim && when > w.deadline)
            fail(w, errc::rate_limited, saturating_sub(when, time), ready);
        else
            before += w.need + w.owed;
    }
}

// Whoever is next is woken in time; while nobody is, the fast path is open.
template <class Threading, class Clock>
void rate_gate<Threading, Clock>::finish() noexcept
{
    if (operations_ == 0)
        this->sleep();
    else
        this->wake_at(next_due());
    if (is_throttled_ != (operations_ != 0)) {
        is_throttled_ = !is_throttled_;
        listeners_.publish({is_throttled_ ? rate_event::throttled : rate_event::recovered});
    }
    levels_.release(!this->queue_.empty());
}

template <class Threading, class Clock>
error_code rate_gate<Threading, Clock>::reserve(rate_claim& claim, std::uint64_t n,
                                                nanoseconds within, nanoseconds& when) noexcept
{
    const verdict result = update_and_tell([&](ready_list& ready) {
        if (const verdict possible = levels_.check(n); !possible.must_wait()) {
            note_rejection(possible.code(), n, nanoseconds::max());
            return possible;
        }
        serve(ready);
        levels_.hold();
        const nanoseconds time = this->now();
        when = std::max(time, levels_.opens(time, n, ahead_));
        if (const nanoseconds delay = saturating_sub(when, time); delay > within) {
            note_rejection(errc::rate_limited, n, delay);
            finish();
            when = delay;
            return verdict::refused(errc::rate_limited);
        }
        claim.need = n;
        this->queue_.push_back(claim);
        ahead_ += n;
        settle_claims(time);
        finish();
        return verdict::granted();
    });
    return result.error();
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::cancel_claim(rate_claim& claim) noexcept
{
    update_and_tell([&](ready_list& ready) {
        serve(ready);
        levels_.hold();
        if (claim.waiter_hook::is_linked()) {
            pass_on(claim, std::exchange(claim.owed, 0));
            unlink(claim);
        } else if (claim.charged) {
            levels_.give_back(this->now(), claim.need, claim.stamp);
        }
        serve(ready);
    });
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::drop_claim(rate_claim& claim) noexcept
{
    update_and_tell([&](ready_list& ready) {
        serve(ready);
        if (!claim.waiter_hook::is_linked())
            return;
        levels_.hold();
        pass_on(claim, claim.need + std::exchange(claim.owed, 0));
        ahead_ += claim.need; // it is owed now
        unlink(claim);
        finish();
    });
}

template <class Threading, class Clock>
nanoseconds rate_gate<Threading, Clock>::time_until(std::uint64_t n) noexcept
{
    return update_and_tell([&](ready_list& ready) {
        if (!levels_.check(n).must_wait())
            return nanoseconds::max();
        serve(ready);
        const nanoseconds time = this->now();
        return std::max(saturating_sub(levels_.opens(time, n, ahead_), time), nanoseconds::zero());
    });
}

template <class Threading, class Clock>
std::uint64_t rate_gate<Threading, Clock>::available() noexcept
{
    return update_and_tell([&](ready_list& ready) {
        serve(ready);
        return this->queue_.empty() ? levels_.available(this->now()) : 0;
    });
}

template <class Threading, class Clock>
std::vector<bandwidth> rate_gate<Threading, Clock>::limits()
{
    // Copied without allocating under the lock.
    std::vector<bandwidth> copy;
    for (std::size_t needed = 1; copy.size() < needed;) {
        copy.resize(needed);
        this->update([&](ready_list&) {
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
void rate_gate<Threading, Clock>::change(std::vector<bandwidth> limits)
{
    typename levels_type::plan next(std::move(limits));
    update_and_tell([&](ready_list& ready) {
        serve(ready); // by the old limits, up to now
        const nanoseconds time = this->now();
        levels_.hold();
        levels_.change(next, time);
        listeners_.publish({rate_event::limits_changed});
        fail_hopeless(time, ready);
        serve(ready);
    });
}

template <class Threading, class Clock>
rate_stats rate_gate<Threading, Clock>::stats() noexcept
{
    return this->update([&](ready_list&) {
        return rate_stats{granted_.load(std::memory_order_relaxed),
                          rejected_.load(std::memory_order_relaxed), waited_, cancelled_,
                          operations_};
    });
}

extern template class rate_gate<thread_safe, default_clock>;
extern template class rate_gate<strand_confined, default_clock>;

} // namespace turnstile::detail
