// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/resilience/detail/keyed_waiter.hpp>
#include <turnstile/resilience/rate_options.hpp>

#include <boost/intrusive/set.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A number of keys that share a lock and a timer: the waiting for them, whatever the keys are.
// The first waiters of all lines are in a tree, by the time they are due.
template <class Threading, class Clock>
class TURNSTILE_EXPORT keyed_rate_limiter_state : public timed_state<Threading, Clock> {
    using base = timed_state<Threading, Clock>;

public:
    template <class Executor>
    keyed_rate_limiter_state(const Executor& executor, const bandwidth& limit,
                             std::size_t max_waiters, nanoseconds origin)
        : base(executor), rule_(limit), origin_(origin), max_waiters_(max_waiters)
    {
        this->arrivals_grant_others_ = true;
    }

    // Gives n permits back.
    void give_back(key_slot& slot, std::uint64_t n, const rate_stamp& stamp) noexcept
    {
        this->update([&](ready_list& ready) {
            return_grant(slot, n, stamp);
            serve(ready);
        });
    }
    rate_stats stats() noexcept
    {
        return this->guarded([&] {
            return rate_stats{granted_, rejected_, waited_, cancelled_, waiting_};
        });
    }

protected:
    // Under the lock, from here on. Keeps an event for the listeners.
    virtual void publish(key_slot& slot, const rate_event& event) noexcept = 0;

    // Takes n permits, or says why not, and how long it would take.
    wait_decision look(key_slot& slot, std::uint64_t n, nanoseconds deadline, rate_stamp& stamp,
                       nanoseconds& retry_after, ready_list& ready) noexcept
    {
        if (slot.head())
            serve(ready);
        const nanoseconds now = this->now();
        visit v(*this, slot, now);
        return look(v, now, n, deadline, stamp, retry_after);
    }
    bool is_idle(const key_slot& slot, nanoseconds now) const noexcept
    {
        return !slot.head() && slot.full() <= rule_.at(saturating_sub(now, origin_));
    }
    // How long a request for n permits would wait: for a key, or for a new one.
    nanoseconds delay(const key_slot& slot, std::uint64_t n) const noexcept
    {
        const nanoseconds now = this->now();
        const keyed_waiter* head = slot.head();
        const key_bucket bucket{rule_, origin_, refunds_, head ? head->full : slot.full()};
        if (!rate_line::check(bucket, n).is_pending())
            return nanoseconds::max();
        const nanoseconds when = bucket.opens(now, n, head ? head->line.need() : 0);
        return std::max(saturating_sub(when, now), nanoseconds::zero());
    }
    // Changes the rule, in two steps. Between them the derived state converts the slots without a
    // line; the second step converts those with one, which may lose it by that.
    gcra change_rule(const bandwidth& limit, ready_list& ready) noexcept;
    void convert_lines(const gcra& old, nanoseconds now, ready_list& ready) noexcept;
    void convert(key_slot& slot, const gcra& old, nanoseconds now) noexcept
    {
        if (!slot.head())
            slot.set_full(rule_.converted(old, slot.full(), saturating_sub(now, origin_)));
    }
    void serve(ready_list& ready) noexcept;

    const gcra& rule() const noexcept { return rule_; }

private:
    // The line and the bucket of a slot, taken out of its head and put back at the end.
    class visit {
    public:
        visit(keyed_rate_limiter_state& owner, key_slot& slot, nanoseconds now) noexcept
            : bucket{owner.rule_, owner.origin_, owner.refunds_, 0}, owner_(owner), slot_(slot),
              now_(now)
        {
            keyed_waiter* head = slot.head();
            bucket.full = head ? head->full : slot.full();
            if (!head)
                return;
            owner.heads_.erase(owner.heads_.iterator_to(*head));
            line.swap(head->line);
        }
        visit(const visit&) = delete;
        visit& operator=(const visit&) = delete;
        ~visit()
        {
            if (line.empty()) {
                slot_.set_full(bucket.full);
                return;
            }
            keyed_waiter& head = as_keyed(line.front());
            slot_.set_head(head);
            head.full = bucket.full;
            head.due = bucket.opens(now_, head.need, 0);
            head.line.swap(line);
            owner_.heads_.insert(head);
        }

        key_slot& slot() noexcept { return slot_; }

        rate_line line;
        key_bucket bucket;

    private:
        keyed_rate_limiter_state& owner_;
        key_slot& slot_;
        nanoseconds now_;
    };

    static keyed_waiter& as_keyed(waiter& w) noexcept { return static_cast<keyed_waiter&>(w); }

    bool admit(waiter& w) noexcept override;
    bool admit_and_grant(waiter& w, ready_list& ready) noexcept override
    {
        serve(ready);
        return admit(w);
    }
    void remove(waiter& w) noexcept override
    {
        const nanoseconds now = this->now();
        visit v(*this, *as_keyed(w).slot, now);
        v.line.remove(v.bucket, as_keyed(w), now);
        --waiting_;
        ++cancelled_;
    }
    void reconsider(ready_list& ready) noexcept override { serve(ready); }
    void take_back(waiter& plain, ready_list& ready) noexcept override
    {
        const keyed_waiter& w = as_keyed(plain);
        ++cancelled_;
        return_grant(*w.slot, w.need, w.stamp);
        serve(ready);
    }
    void take_all(waiter_list& out) noexcept override;
    void wake(ready_list& ready) noexcept override { serve(ready); }

    wait_decision look(visit& v, nanoseconds now, std::uint64_t n, nanoseconds deadline,
                       rate_stamp& stamp, nanoseconds& retry_after) noexcept;
    void return_grant(key_slot& slot, std::uint64_t n, const rate_stamp& stamp) noexcept
    {
        const nanoseconds now = this->now();
        visit(*this, slot, now).bucket.give_back(now, n, stamp);
        granted_ -= n;
        ++refunds_;
    }
    void note_rejection(key_slot& slot, errc code, std::uint64_t n,
                        nanoseconds retry_after) noexcept
    {
        ++rejected_;
        publish(slot, {rate_event::rejected, code, n, retry_after});
    }
    void note_decided(rate_waiter& w, ready_list& ready) noexcept;

    gcra rule_;
    const nanoseconds origin_;
    const std::size_t max_waiters_; // for each key
    std::uint64_t refunds_ = 0;
    std::uint64_t granted_ = 0;
    std::uint64_t rejected_ = 0;
    std::uint64_t waited_ = 0;
    std::uint64_t cancelled_ = 0;
    std::size_t waiting_ = 0;
    boost::intrusive::multiset<keyed_waiter, boost::intrusive::key_of_value<by_due>,
                               boost::intrusive::base_hook<due_hook>,
                               boost::intrusive::constant_time_size<false>>
        heads_;
};

template <class Threading, class Clock>
wait_decision
keyed_rate_limiter_state<Threading, Clock>::look(visit& v, nanoseconds now, std::uint64_t n,
                                                 nanoseconds deadline, rate_stamp& stamp,
                                                 nanoseconds& retry_after) noexcept
{
    const wait_decision result =
        v.line.look(v.bucket, now, n, deadline, max_waiters_, stamp, retry_after);
    if (result.is_granted())
        granted_ += n;
    else if (result.is_refused())
        note_rejection(v.slot(), result.code(), n, retry_after);
    return result;
}

template <class Threading, class Clock>
bool keyed_rate_limiter_state<Threading, Clock>::admit(waiter& plain) noexcept
{
    keyed_waiter& w = as_keyed(plain);
    const nanoseconds now = this->now();
    visit v(*this, *w.slot, now);
    w.decide(look(v, now, w.need, w.deadline, w.stamp, w.retry_after));
    if (!w.is_pending())
        return true;
    // The timer must go off for this key, or for one that is due before. If there is no memory
    // for it, the waiter is refused.
    nanoseconds due = v.line.empty() ? v.bucket.opens(now, w.need, 0)
                                     : v.bucket.opens(now, v.line.front().need, 0);
    if (!heads_.empty())
        due = std::min(due, heads_.begin()->due);
    if (!this->try_wake_at(due)) {
        w.fail(errc::rejected);
        note_rejection(*w.slot, errc::rejected, w.need, w.retry_after);
        return true;
    }
    v.line.push_back(v.bucket, w, now);
    ++waiting_;
    return false;
}

template <class Threading, class Clock>
void keyed_rate_limiter_state<Threading, Clock>::note_decided(rate_waiter& w,
                                                              ready_list& ready) noexcept
{
    --waiting_;
    if (w.is_granted()) {
        ++waited_;
        granted_ += w.need;
    } else {
        note_rejection(*as_keyed(w).slot, w.decision().code(), w.need, w.retry_after);
    }
    ready.push_back(w);
}

template <class Threading, class Clock>
void keyed_rate_limiter_state<Threading, Clock>::serve(ready_list& ready) noexcept
{
    const nanoseconds now = this->now();
    while (!heads_.empty() && heads_.begin()->due <= now) {
        visit v(*this, *heads_.begin()->slot, now);
        v.line.serve(v.bucket, now, [&](rate_waiter& w) { note_decided(w, ready); });
    }
    if (heads_.empty())
        this->sleep();
    else
        this->wake_at(heads_.begin()->due);
}

template <class Threading, class Clock>
void keyed_rate_limiter_state<Threading, Clock>::take_all(waiter_list& out) noexcept
{
    const nanoseconds now = this->now();
    while (!heads_.empty()) {
        visit v(*this, *heads_.begin()->slot, now);
        v.line.take_all(out);
    }
    waiting_ = 0;
    base::take_all(out);
}

template <class Threading, class Clock>
gcra keyed_rate_limiter_state<Threading, Clock>::change_rule(const bandwidth& limit,
                                                             ready_list& ready) noexcept
{
    serve(ready);                       // by the old rule, up to now
    refunds_ += key_bucket::one_change; // stamps are in the old measure
    return std::exchange(rule_, gcra(limit));
}

template <class Threading, class Clock>
void keyed_rate_limiter_state<Threading, Clock>::convert_lines(const gcra& old, nanoseconds now,
                                                               ready_list& ready) noexcept
{
    auto heads = std::move(heads_);
    while (!heads.empty()) {
        keyed_waiter& head = *heads.begin();
        heads.erase(heads.begin());
        heads_.insert(head);
        visit v(*this, *head.slot, now);
        v.bucket.full = rule_.converted(old, v.bucket.full, saturating_sub(now, origin_));
        v.line.fail_hopeless(v.bucket, now, [&](rate_waiter& w) { note_decided(w, ready); });
    }
    serve(ready);
}

extern template class keyed_rate_limiter_state<thread_safe, default_clock>;
extern template class keyed_rate_limiter_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
