#pragma once

#include <turnstile/core/detail/alarm.hpp>
#include <turnstile/core/detail/verdict.hpp>
#include <turnstile/resilience/detail/keyed_waiter.hpp>
#include <turnstile/resilience/rate_options.hpp>

#include <boost/intrusive/set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace turnstile::detail {

// A number of keys that share a lock and a timer: the waiting for them, whatever the keys are.
// Those who are first to wait for their key are in a tree, by the time they may go.
template <class Threading, class Clock>
class TURNSTILE_EXPORT keyed_gate : public timed_state<Threading, Clock> {
    using base = timed_state<Threading, Clock>;

public:
    template <class Executor>
    keyed_gate(const Executor& executor, const bandwidth& limit, std::size_t max_waiters,
               nanoseconds origin)
        : base(executor), rule_(limit), origin_(origin), max_waiters_(max_waiters)
    {
    }

    // Gives n permits back, if anything is known of the key any more.
    void give_back(const void* key, std::uint64_t n, const rate_stamp& stamp) noexcept;
    rate_stats stats() noexcept;

protected:
    // Under the lock, from here on. A slot for the key: one that is there, or null.
    virtual key_slot* find(const void* key) noexcept = 0;
    // A new one if need be; null if there is no memory.
    virtual key_slot* find_or_add(const void* key) noexcept = 0;
    // Keeps an event for those who listen.
    virtual void publish(const void* key, const rate_event& event) noexcept = 0;

    // Takes n permits, or says why not, and how long it would take.
    verdict look(key_slot& slot, std::uint64_t n, nanoseconds within, rate_stamp& stamp,
                 nanoseconds& delay, ready_list& ready) noexcept;
    // The same for a key that was never heard of, or forgotten.
    verdict check(std::uint64_t n) const noexcept;
    bool is_idle(const key_slot& slot, nanoseconds now) const noexcept
    {
        return !slot.head() && slot.full() <= rule_.at(since(now));
    }
    nanoseconds delay(const key_slot& slot, std::uint64_t n, nanoseconds now) const noexcept;
    // The rule for all slots; those that nobody waits for are the derived state's to convert.
    gcra change_rule(const bandwidth& limit, nanoseconds now, ready_list& ready) noexcept;
    void convert(key_slot& slot, const gcra& old, nanoseconds now) noexcept
    {
        if (!slot.head())
            slot.set_full(rule_.converted(old, slot.full(), since(now)));
    }
    void serve(ready_list& ready) noexcept;

    const gcra& rule() const noexcept { return rule_; }
    void note_rejection(const void* key, errc code, std::uint64_t n,
                        nanoseconds retry_after) noexcept
    {
        ++rejected_;
        publish(key, {rate_event::rejected, code, n, retry_after});
    }

private:
    static keyed_waiter& as_keyed(waiter& w) noexcept { return static_cast<keyed_waiter&>(w); }

    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override { serve(ready); }
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;
    void wake(ready_list& ready) noexcept override { serve(ready); }

    nanoseconds since(nanoseconds now) const noexcept { return saturating_sub(now, origin_); }
    nanoseconds opens(gcra::ticks full, std::uint64_t n) const noexcept
    {
        return saturating_add(origin_, rule_.time_of(rule_.opens(full, n)));
    }
    rate_stamp take(gcra::ticks& full, nanoseconds now, std::uint64_t n) noexcept;
    void return_grant(const void* key, std::uint64_t n, const rate_stamp& stamp) noexcept;
    void return_to(key_slot& slot, std::uint64_t n, const rate_stamp& stamp) noexcept;
    // Whether what all need who wait for the key can still be counted.
    static bool fits(const keyed_waiter& head, const keyed_waiter& w) noexcept
    {
        return w.need <= std::numeric_limits<std::uint64_t>::max() - head.need - head.behind;
    }
    static void line_up(keyed_waiter& head, keyed_waiter& w) noexcept
    {
        head.line.push_back(w);
        head.behind += w.need;
        ++head.length;
    }
    void lead(keyed_waiter& w) noexcept;
    void leave(keyed_waiter& w) noexcept;
    void plan() noexcept;

    gcra rule_;
    const nanoseconds origin_;
    const std::size_t max_waiters_; // for each key
    std::uint64_t refunds_ = 0;
    std::uint64_t granted_ = 0;
    std::uint64_t rejected_ = 0;
    std::uint64_t waited_ = 0;
    std::uint64_t cancelled_ = 0;
    std::size_t operations_ = 0;
    boost::intrusive::multiset<keyed_waiter, boost::intrusive::key_of_value<by_due>,
                               boost::intrusive::base_hook<due_hook>,
                               boost::intrusive::constant_time_size<false>>
        heads_;
};

template <class Threading, class Clock>
verdict keyed_gate<Threading, Clock>::check(std::uint64_t n) const noexcept
{
    if (n == 0)
        return verdict::refused(errc::invalid_argument);
    return n > rule_.burst() ? verdict::refused(errc::too_large) : verdict::wait();
}

template <class Threading, class Clock>
rate_stamp keyed_gate<Threading, Clock>::take(gcra::ticks& full, nanoseconds now,
                                              std::uint64_t n) noexcept
{
    const gcra::ticks time = rule_.at(since(now));
    const auto before = static_cast<std::int64_t>(std::max(full, time) / rule_.scale());
    full = rule_.charged(full, time, n);
    granted_ += n;
    return {now, saturating_add(origin_, nanoseconds(before)), refunds_};
}

template <class Threading, class Clock>
verdict keyed_gate<Threading, Clock>::look(key_slot& slot, std::uint64_t n, nanoseconds within,
                                           rate_stamp& stamp, nanoseconds& wait,
                                           ready_list& ready) noexcept
{
    const verdict possible = check(n);
    if (!possible.must_wait())
        return possible;
    if (slot.head())
        serve(ready);
    const nanoseconds now = this->now();
    wait = delay(slot, n, now);
    if (!slot.head() && wait == nanoseconds::zero()) {
        gcra::ticks full = slot.full();
        stamp = take(full, now, n);
        slot.set_full(full);
        return verdict::granted();
    }
    if (wait > within || within == nanoseconds::zero())
        return verdict::refused(errc::rate_limited);
    return verdict::wait();
}

template <class Threading, class Clock>
nanoseconds keyed_gate<Threading, Clock>::delay(const key_slot& slot, std::uint64_t n,
                                                nanoseconds now) const noexcept
{
    gcra::ticks full = 0;
    if (const keyed_waiter* head = slot.head())
        full = rule_.charged(head->full, rule_.at(since(now)), head->need + head->behind);
    else
        full = slot.full();
    return std::max(saturating_sub(opens(full, n), now), nanoseconds::zero());
}

template <class Threading, class Clock>
bool keyed_gate<Threading, Clock>::admit(waiter& plain) noexcept
{
    keyed_waiter& w = as_keyed(plain);
    const nanoseconds now = this->now();
    nanoseconds wait = nanoseconds::max();
    key_slot* slot = find_or_add(w.key);
    if (!slot)
        w.fail(errc::rejected);
    else if (!check(w.need).must_wait())
        w.fail(check(w.need).code());
    else
        wait = delay(*slot, w.need, now);
    if (w.undecided() && !slot->head() && wait == nanoseconds::zero()) {
        gcra::ticks full = slot->full();
        w.stamp = take(full, now, w.need);
        slot->set_full(full);
        w.grant();
        return true;
    }
    keyed_waiter* head = slot ? slot->head() : nullptr;
    if (w.undecided() && saturating_add(now, wait) > w.deadline)
        w.fail(errc::rate_limited);
    if (w.undecided() &&
        ((head ? 1 + head->length : 0) >= max_waiters_ || (head && !fits(*head, w))))
        w.fail(errc::rejected);
    if (w.undecided()) {
        ++operations_;
        w.slot = slot;
        w.full = head ? 0 : slot->full();
        head ? line_up(*head, w) : lead(w);
        if (!this->try_wake_at(heads_.begin()->due)) {
            leave(w);
            w.fail(errc::rejected); // there is no memory for a timer
        }
    }
    if (w.undecided())
        return false;
    note_rejection(w.key, w.fate().code(), w.need, wait);
    return true;
}

// Makes w the first to wait for its key; its line and the bucket are there already.
template <class Threading, class Clock>
void keyed_gate<Threading, Clock>::lead(keyed_waiter& w) noexcept
{
    w.slot->set_head(w);
    w.due = opens(w.full, std::min(w.need, rule_.burst()));
    heads_.insert(w);
}

// Takes w out, whether it is first or not.
template <class Threading, class Clock>
void keyed_gate<Threading, Clock>::leave(keyed_waiter& w) noexcept
{
    --operations_;
    keyed_waiter* head = w.slot->head();
    if (head != &w) {
        head->behind -= w.need;
        --head->length;
        w.waiter_hook::unlink();
        return;
    }
    heads_.erase(heads_.iterator_to(w));
    if (w.line.empty()) {
        w.slot->set_full(w.full);
        return;
    }
    keyed_waiter& next = as_keyed(take_front(w.line));
    next.line.swap(w.line);
    next.behind = w.behind - next.need;
    next.length = w.length - 1;
    next.full = w.full;
    lead(next);
}

template <class Threading, class Clock>
void keyed_gate<Threading, Clock>::serve(ready_list& ready) noexcept
{
    const nanoseconds now = this->now();
    while (!heads_.empty() && heads_.begin()->due <= now) {
        keyed_waiter& w = *heads_.begin();
        w.stamp = take(w.full, now, w.need);
        ++waited_;
        leave(w);
        w.grant();
        ready.push_back(w);
    }
    plan();
}

template <class Threading, class Clock>
void keyed_gate<Threading, Clock>::plan() noexcept
{
    if (heads_.empty())
        this->sleep();
    else
        this->wake_at(heads_.begin()->due);
}

template <class Threading, class Clock>
void keyed_gate<Threading, Clock>::remove(waiter& w) noexcept
{
    leave(as_keyed(w));
    ++cancelled_;
}

// Whoever else gave something back since may have given it back to the same bucket: then it is
// not known for how long that would not have been full.
template <class Threading, class Clock>
void keyed_gate<Threading, Clock>::return_to(key_slot& slot, std::uint64_t n,
                                             const rate_stamp& stamp) noexcept
{
    const nanoseconds not_full = stamp.refunds == refunds_ ? stamp.full : stamp.taken;
    const nanoseconds idle = std::max(saturating_sub(this->now(), not_full), nanoseconds::zero());
    ++refunds_;
    keyed_waiter* head = slot.head();
    const gcra::ticks full = rule_.refunded(head ? head->full : slot.full(), n, rule_.at(idle));
    if (!head) {
        slot.set_full(full);
        return;
    }
    heads_.erase(heads_.iterator_to(*head));
    head->full = full;
    lead(*head);
}

template <class Threading, class Clock>
void keyed_gate<Threading, Clock>::return_grant(const void* key, std::uint64_t n,
                                                const rate_stamp& stamp) noexcept
{
    granted_ -= n;
    if (key_slot* slot = find(key)) // what is forgotten was full
        return_to(*slot, n, stamp);
}

template <class Threading, class Clock>
void keyed_gate<Threading, Clock>::take_back(waiter& plain, ready_list& ready) noexcept
{
    const keyed_waiter& w = as_keyed(plain);
    ++cancelled_;
    return_grant(w.key, w.need, w.stamp);
    serve(ready);
}

template <class Threading, class Clock>
void keyed_gate<Threading, Clock>::give_back(const void* key, std::uint64_t n,
                                             const rate_stamp& stamp) noexcept
{
    this->update([&](ready_list& ready) {
        return_grant(key, n, stamp);
        serve(ready);
    });
}

template <class Threading, class Clock>
void keyed_gate<Threading, Clock>::take_all(waiter_list& out) noexcept
{
    while (!heads_.empty()) {
        keyed_waiter& w = *heads_.begin();
        leave(w);
        out.push_back(w);
    }
    base::take_all(out);
}

template <class Threading, class Clock>
gcra keyed_gate<Threading, Clock>::change_rule(const bandwidth& limit, nanoseconds now,
                                               ready_list& ready) noexcept
{
    serve(ready); // by the old rule, up to now
    const gcra old = std::exchange(rule_, gcra(limit));
    ++refunds_; // stamps are in the old measure
    auto heads = std::move(heads_);
    while (!heads.empty()) {
        keyed_waiter& head = *heads.begin();
        heads.erase(heads.begin());
        head.full = rule_.converted(old, head.full, since(now));
        lead(head);
        // Those who ask for too much now, or can no longer be in time.
        waiter_list line;
        line.swap(head.line);
        std::uint64_t before = 0;
        const auto fails = [&](keyed_waiter& w) {
            const gcra::ticks full = head.full;
            const gcra::ticks then =
                before == 0 ? full : rule_.charged(full, rule_.at(since(now)), before);
            const bool too_large = w.need > rule_.burst();
            const nanoseconds when = too_large ? nanoseconds::max() : opens(then, w.need);
            if (!too_large && when <= w.deadline) {
                before += w.need;
                return false;
            }
            w.fail(too_large ? errc::too_large : errc::rate_limited);
            note_rejection(w.key, w.fate().code(), w.need, saturating_sub(when, now));
            return true;
        };
        const bool head_fails = fails(head);
        head.behind = 0;
        head.length = 0;
        while (!line.empty()) {
            keyed_waiter& w = as_keyed(take_front(line));
            if (fails(w)) {
                --operations_;
                ready.push_back(w);
            } else {
                line_up(head, w);
            }
        }
        if (head_fails) {
            leave(head);
            ready.push_back(head);
        }
    }
    serve(ready);
    return old;
}

template <class Threading, class Clock>
rate_stats keyed_gate<Threading, Clock>::stats() noexcept
{
    return this->update([&](ready_list&) {
        return rate_stats{granted_, rejected_, waited_, cancelled_, operations_};
    });
}

extern template class keyed_gate<thread_safe, default_clock>;
extern template class keyed_gate<strand_confined, default_clock>;

} // namespace turnstile::detail
