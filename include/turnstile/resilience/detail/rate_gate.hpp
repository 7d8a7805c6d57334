#pragma once

#include <turnstile/core/detail/alarm.hpp>
#include <turnstile/core/detail/telling_state.hpp>
#include <turnstile/core/detail/verdict.hpp>
#include <turnstile/resilience/detail/rate_levels.hpp>
#include <turnstile/resilience/detail/rate_waiter.hpp>
#include <turnstile/resilience/rate_options.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace turnstile::detail {

// Buckets, and a FIFO of those who wait for them, operations and claims. Nobody in the queue
// has been charged yet, so who leaves it gives back exactly what it would have used, and those
// behind move up.
template <class Threading, class Clock>
class TURNSTILE_EXPORT rate_gate final
    : public telling_state<Threading, rate_event, timed_state<Threading, Clock>> {
    using base = telling_state<Threading, rate_event, timed_state<Threading, Clock>>;
    using levels_type = rate_levels<Threading>;

public:
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
        if (quick == levels_type::outcome::refused && !retry_after &&
            !this->listeners_.somebody()) {
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

    // Takes a place for n permits, and says when they are to be had.
    error_code reserve(rate_claim& claim, std::uint64_t n, nanoseconds within,
                       nanoseconds& when) noexcept;
    // The claim will not be used; or it will, but nobody needs to know it any more.
    void cancel_claim(std::unique_ptr<rate_claim> claim) noexcept;
    void drop_claim(std::unique_ptr<rate_claim> claim) noexcept;

    nanoseconds time_until(std::uint64_t n) noexcept;
    std::uint64_t available() noexcept;
    std::vector<bandwidth> limits();
    void change(std::vector<bandwidth> limits);
    rate_stats stats() noexcept;

private:
    template <class T>
    using cell = typename Threading::template cell<T>;

    static void count(cell<std::uint64_t>& c, std::uint64_t n) noexcept
    {
        c.fetch_add(n, std::memory_order_relaxed);
    }
    void count_grant(std::uint64_t n) noexcept
    {
        if (options_.count_grants)
            count(granted_, n);
    }
    void take_back_grant(std::uint64_t n, const rate_stamp& stamp) noexcept
    {
        levels_.hold();
        levels_.give_back(this->now(), n, stamp);
        claims_lag_ = claims_ != 0; // as when somebody leaves the queue
        if (options_.count_grants)
            count(granted_, -n);
    }
    static rate_waiter& as_rate(waiter& w) noexcept { return static_cast<rate_waiter&>(w); }

    // The longer look, under the lock.
    verdict look(std::uint64_t n, nanoseconds within, nanoseconds& retry_after,
                 rate_stamp& stamp) noexcept;

    // All from here on is under the lock.
    bool admit(waiter& plain) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override { serve(ready); }
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;
    void wake(ready_list& ready) noexcept override { serve(ready); }

    // When the first in the queue may go.
    nanoseconds due(nanoseconds time) noexcept
    {
        const rate_waiter& first = as_rate(this->queue_.front());
        const nanoseconds opens = levels_.opens(time, first.need);
        return first.is_claim ? std::max(opens, static_cast<const rate_claim&>(first).ready_at)
                              : opens;
    }
    nanoseconds opens_behind_all(nanoseconds time, std::uint64_t n) noexcept;
    bool is_full(std::uint64_t n) const noexcept
    {
        return operations_ >= options_.max_waiters || !can_add(n);
    }
    bool can_add(std::uint64_t n) const noexcept
    {
        return n <= std::numeric_limits<std::uint64_t>::max() - ahead_;
    }
    void serve(ready_list& ready) noexcept;
    void settle_claims(nanoseconds time) noexcept;
    void charge(rate_waiter& w, nanoseconds time) noexcept;
    void charge_claim(nanoseconds time) noexcept;
    void enqueue(rate_waiter& w) noexcept;
    void unlink(rate_waiter& w) noexcept;
    void leave(rate_waiter& w) noexcept;
    void fail_hopeless(nanoseconds time, ready_list& ready) noexcept;
    void fail(rate_waiter& w, errc code, nanoseconds retry_after, ready_list& ready) noexcept;
    void note_rejection(errc code, std::uint64_t n, nanoseconds retry_after) noexcept
    {
        count(rejected_, 1);
        this->listeners_.publish({rate_event::rejected, code, n, retry_after});
    }
    void finish() noexcept;

    levels_type levels_;
    const rate_options options_;
    cell<std::uint64_t> granted_{0};
    cell<std::uint64_t> rejected_{0};
    // Guarded by the lock.
    std::uint64_t ahead_ = 0;    // what all in the queue need
    std::size_t operations_ = 0; // those who are not claims
    std::size_t claims_ = 0;
    bool claims_lag_ = false; // they may have been told a later time than they would be now
    nanoseconds looked_{};    // when the queue was last seen to
    std::uint64_t waited_ = 0;
    std::uint64_t cancelled_ = 0;
    bool is_throttled_ = false;
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
    return this->update_and_tell([&](ready_list& ready) {
        verdict v = levels_.check(n);
        retry_after = nanoseconds::max();
        if (v.must_wait()) {
            serve(ready);
            levels_.hold();
            const nanoseconds time = this->now();
            const nanoseconds delay = saturating_sub(opens_behind_all(time, n), time);
            retry_after = std::max(delay, nanoseconds::zero());
            if (retry_after == nanoseconds::zero() && this->queue_.empty()) {
                stamp = levels_.take(time, n);
                count_grant(n);
                v = verdict::granted();
            } else if (retry_after > within || within == nanoseconds::zero()) {
                v = verdict::refused(errc::rate_limited);
            } else if (is_full(n)) {
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
    this->update_and_tell([&](ready_list& ready) {
        take_back_grant(n, stamp);
        serve(ready);
    });
}

// Those who wait are charged one after the other, but a claim never before its time, and with
// it all that are behind.
template <class Threading, class Clock>
nanoseconds rate_gate<Threading, Clock>::opens_behind_all(nanoseconds time,
                                                          std::uint64_t n) noexcept
{
    nanoseconds latest = levels_.opens(time, n, ahead_);
    std::uint64_t from_here = 0;
    for (auto it = this->queue_.rbegin(); claims_lag_ && it != this->queue_.rend(); ++it) {
        const rate_waiter& w = as_rate(*it);
        from_here += w.need;
        if (!w.is_claim)
            continue;
        const nanoseconds ready_at = static_cast<const rate_claim&>(w).ready_at;
        latest = std::max({latest, ready_at, levels_.opens(ready_at, n, from_here)});
    }
    return latest;
}

template <class Threading, class Clock>
bool rate_gate<Threading, Clock>::admit(waiter& plain) noexcept
{
    rate_waiter& w = as_rate(plain);
    const nanoseconds time = this->now();
    levels_.hold();
    settle_claims(time);
    const nanoseconds when = opens_behind_all(time, w.need);
    if (w.need > levels_.burst()) {
        w.fail(errc::too_large);
    } else if (when <= time && this->queue_.empty()) {
        w.stamp = levels_.take(time, w.need);
        count_grant(w.need);
        w.grant();
    } else if (when > w.deadline) {
        w.fail(errc::rate_limited);
    } else if (is_full(w.need)) {
        w.fail(errc::rejected);
    } else {
        enqueue(w);
        if (operations_ == 1 && !this->try_wake_at(due(time))) {
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
        const nanoseconds when = due(time);
        if (when > time && when <= w.deadline)
            break;
        if (when > time) {
            fail(w, errc::rate_limited, when - time, ready);
            continue;
        }
        charge(w, time);
        ++waited_;
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
        const nanoseconds when = due(time);
        if (when > time)
            break;
        charge_claim(std::min(time, std::max(when, looked_)));
    }
    looked_ = time;
}

// Charges the first in the queue, which is a claim.
template <class Threading, class Clock>
void rate_gate<Threading, Clock>::charge_claim(nanoseconds time) noexcept
{
    auto& claim = static_cast<rate_claim&>(this->queue_.front());
    charge(claim, time);
    claim.charged = true;
    if (claim.dropped)
        delete &claim;
}

// Takes the first out of the queue, with what it needs.
template <class Threading, class Clock>
void rate_gate<Threading, Clock>::charge(rate_waiter& w, nanoseconds time) noexcept
{
    w.stamp = levels_.take(time, w.need);
    count_grant(w.need);
    unlink(w);
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::enqueue(rate_waiter& w) noexcept
{
    this->queue_.push_back(w);
    ahead_ += w.need;
    ++(w.is_claim ? claims_ : operations_);
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::unlink(rate_waiter& w) noexcept
{
    ahead_ -= w.need;
    --(w.is_claim ? claims_ : operations_);
    claims_lag_ = claims_lag_ && claims_ != 0;
    w.waiter_hook::unlink();
}

// Takes w out of the queue uncharged: those behind it move up, but for claims.
template <class Threading, class Clock>
void rate_gate<Threading, Clock>::leave(rate_waiter& w) noexcept
{
    claims_lag_ = true;
    unlink(w);
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::remove(waiter& w) noexcept
{
    leave(as_rate(w));
    ++cancelled_;
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::take_back(waiter& w, ready_list& ready) noexcept
{
    take_back_grant(as_rate(w).need, as_rate(w).stamp);
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
            charge_claim(time);
            continue;
        }
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
    leave(w);
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
            before += w.need;
    }
}

// Whoever is next is woken in time; while nobody is, the fast path is open.
template <class Threading, class Clock>
void rate_gate<Threading, Clock>::finish() noexcept
{
    if (operations_ == 0)
        this->sleep();
    else
        this->wake_at(due(looked_));
    if (is_throttled_ != (operations_ != 0)) {
        is_throttled_ = !is_throttled_;
        this->listeners_.publish({is_throttled_ ? rate_event::throttled : rate_event::recovered});
    }
    levels_.release(!this->queue_.empty());
}

template <class Threading, class Clock>
error_code rate_gate<Threading, Clock>::reserve(rate_claim& claim, std::uint64_t n,
                                                nanoseconds within, nanoseconds& when) noexcept
{
    const verdict result = this->update_and_tell([&](ready_list& ready) {
        if (const verdict possible = levels_.check(n); !possible.must_wait()) {
            note_rejection(possible.code(), n, nanoseconds::max());
            return possible;
        }
        serve(ready);
        levels_.hold();
        const nanoseconds time = this->now();
        when = std::max(time, opens_behind_all(time, n));
        if (const nanoseconds delay = saturating_sub(when, time); delay > within || !can_add(n)) {
            const errc code = delay > within ? errc::rate_limited : errc::rejected;
            note_rejection(code, n, delay);
            finish();
            when = delay;
            return verdict::refused(code);
        }
        claim.need = n;
        claim.ready_at = when;
        enqueue(claim);
        settle_claims(time);
        finish();
        return verdict::granted();
    });
    return result.error();
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::cancel_claim(std::unique_ptr<rate_claim> claim) noexcept
{
    this->update_and_tell([&](ready_list& ready) {
        serve(ready);
        levels_.hold();
        if (claim->waiter_hook::is_linked())
            leave(*claim);
        else if (claim->charged)
            take_back_grant(claim->need, claim->stamp);
        serve(ready);
    });
}

template <class Threading, class Clock>
void rate_gate<Threading, Clock>::drop_claim(std::unique_ptr<rate_claim> claim) noexcept
{
    this->guarded([&] {
        if (claim->waiter_hook::is_linked())
            claim.release()->dropped = true;
    });
}

template <class Threading, class Clock>
nanoseconds rate_gate<Threading, Clock>::time_until(std::uint64_t n) noexcept
{
    return this->update_and_tell([&](ready_list& ready) {
        if (!levels_.check(n).must_wait())
            return nanoseconds::max();
        serve(ready);
        const nanoseconds time = this->now();
        return std::max(saturating_sub(opens_behind_all(time, n), time), nanoseconds::zero());
    });
}

template <class Threading, class Clock>
std::uint64_t rate_gate<Threading, Clock>::available() noexcept
{
    return this->update_and_tell([&](ready_list& ready) {
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
    this->update_and_tell([&](ready_list& ready) {
        serve(ready); // by the old limits, up to now
        const nanoseconds time = this->now();
        levels_.hold();
        levels_.change(next, time);
        claims_lag_ = claims_ != 0;
        this->listeners_.publish({rate_event::limits_changed});
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
