// SPDX-License-Identifier: BSL-1.0
// The part of a keyed rate limiter's state that does not depend on the type of the key: the buckets
// and lines of a number of keys that share a lock and a timer. keyed_rate_limiter_shard derives
// from it and adds the keys.
//
// Invariant: the first waiter of every line is in `heads_`, a tree in the order of their times; the
// timer is set for the first of them. A `visit` takes the line and the bucket of one key out of
// that structure and puts them back at its end.
#pragma once

#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/resilience/detail/keyed_rate_limiter_bucket.hpp>
#include <turnstile/resilience/keyed_rate_limiter_options.hpp>

#include <boost/intrusive/set.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1::detail {

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

    void give_back(keyed_rate_limiter_word& word, std::uint64_t n,
                   const rate_limiter_receipt& receipt) noexcept
    {
        this->update([&](ready_list& ready) {
            return_grant(word, n, receipt);
            serve(ready);
        });
    }
    keyed_rate_limiter_stats stats() noexcept
    {
        return this->guarded([&] {
            return keyed_rate_limiter_stats{granted_, rejected_, waited_, cancelled_, waiting_};
        });
    }

protected:
    // The functions from here on are called under the lock.

    // Records a rejection for the listeners.
    virtual void publish(keyed_rate_limiter_word& word, errc code, std::uint64_t n,
                         nanoseconds retry_after) noexcept = 0;

    // Takes n permits, or decides whether the request may wait.
    wait_decision attempt(keyed_rate_limiter_word& word, std::uint64_t n, nanoseconds deadline,
                          rate_limiter_receipt& receipt, nanoseconds& retry_after,
                          ready_list& ready) noexcept
    {
        if (word.head())
            serve(ready);
        const nanoseconds now = this->now();
        visit v(*this, word, now);
        return decide_request(v, now, n, deadline, receipt, retry_after);
    }
    // Refuses a request that can never be granted.
    wait_decision refuse(keyed_rate_limiter_word& word, errc code, std::uint64_t n,
                         nanoseconds& retry_after) noexcept
    {
        retry_after = nanoseconds::max();
        note_rejection(word, code, n, retry_after);
        return wait_decision::refused(code);
    }
    bool is_idle(const keyed_rate_limiter_word& word, nanoseconds now) const noexcept
    {
        return !word.head() && word.full() <= rule_.at(saturating_sub(now, origin_));
    }
    // The time that a request for n permits would wait.
    nanoseconds delay(const keyed_rate_limiter_word& word, std::uint64_t n) const noexcept
    {
        const nanoseconds now = this->now();
        const keyed_rate_limiter_waiter* head = word.head();
        const keyed_rate_limiter_bucket bucket{rule_, origin_, refunds_,
                                               head ? head->full : word.full()};
        if (!rate_limiter_line::check(bucket, n).is_pending())
            return nanoseconds::max();
        const nanoseconds when = bucket.allowed_at(now, n, head ? head->line.permits() : 0);
        return std::max(saturating_sub(when, now), nanoseconds::zero());
    }
    // Changes the rule, in two steps. Between them the derived state converts the keys without a
    // line. The second step converts the keys with one; their waiters may be granted or refused.
    gcra change_rule(const bandwidth& limit, ready_list& ready) noexcept;
    void convert_lines(const gcra& old, nanoseconds now, ready_list& ready) noexcept;
    void convert(keyed_rate_limiter_word& word, const gcra& old, nanoseconds now) noexcept
    {
        if (!word.head())
            word.set_full(rule_.converted(old, word.full(), saturating_sub(now, origin_)));
    }
    void serve(ready_list& ready) noexcept;

    const gcra& rule() const noexcept { return rule_; }

private:
    // The line and the bucket of a key, taken out of the head of the line and put back at the end.
    class visit {
    public:
        visit(keyed_rate_limiter_state& owner, keyed_rate_limiter_word& word,
              nanoseconds now) noexcept
            : bucket{owner.rule_, owner.origin_, owner.refunds_, 0}, owner_(owner), word_(word),
              now_(now)
        {
            keyed_rate_limiter_waiter* head = word.head();
            bucket.full = head ? head->full : word.full();
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
                word_.set_full(bucket.full);
                return;
            }
            keyed_rate_limiter_waiter& head = as_keyed(line.front());
            word_.set_head(head);
            head.full = bucket.full;
            head.due = bucket.allowed_at(now_, head.permits, 0);
            head.line.swap(line);
            owner_.heads_.insert(head);
        }

        keyed_rate_limiter_word& word() noexcept { return word_; }

        rate_limiter_line line;
        keyed_rate_limiter_bucket bucket;

    private:
        keyed_rate_limiter_state& owner_;
        keyed_rate_limiter_word& word_;
        nanoseconds now_;
    };

    static keyed_rate_limiter_waiter& as_keyed(waiter& w) noexcept
    {
        return static_cast<keyed_rate_limiter_waiter&>(w);
    }

    bool admit(waiter& w) noexcept override;
    bool admit_and_grant(waiter& w, ready_list& ready) noexcept override
    {
        serve(ready);
        return admit(w);
    }
    void remove(waiter& w) noexcept override
    {
        const nanoseconds now = this->now();
        visit v(*this, *as_keyed(w).word, now);
        v.line.remove(v.bucket, as_keyed(w), now);
        --waiting_;
        ++cancelled_;
    }
    void reconsider(ready_list& ready) noexcept override { serve(ready); }
    void take_back(waiter& plain, ready_list& ready) noexcept override
    {
        const keyed_rate_limiter_waiter& w = as_keyed(plain);
        ++cancelled_;
        return_grant(*w.word, w.permits, w.receipt);
        serve(ready);
    }
    void take_all(waiter_list& out) noexcept override;
    void wake(ready_list& ready) noexcept override { serve(ready); }

    wait_decision decide_request(visit& v, nanoseconds now, std::uint64_t n, nanoseconds deadline,
                                 rate_limiter_receipt& receipt, nanoseconds& retry_after) noexcept;
    void return_grant(keyed_rate_limiter_word& word, std::uint64_t n,
                      const rate_limiter_receipt& receipt) noexcept
    {
        const nanoseconds now = this->now();
        visit(*this, word, now).bucket.refund(now, n, receipt);
        granted_ -= n;
        ++refunds_;
    }
    void note_rejection(keyed_rate_limiter_word& word, errc code, std::uint64_t n,
                        nanoseconds retry_after) noexcept
    {
        ++rejected_;
        publish(word, code, n, retry_after);
    }
    void note_decided(rate_limiter_waiter& w, ready_list& ready) noexcept;

    gcra rule_;
    const nanoseconds origin_;
    const std::size_t max_waiters_; // of each key
    std::uint64_t refunds_ = 0;
    std::uint64_t granted_ = 0;
    std::uint64_t rejected_ = 0;
    std::uint64_t waited_ = 0;
    std::uint64_t cancelled_ = 0;
    std::size_t waiting_ = 0;
    boost::intrusive::multiset<keyed_rate_limiter_waiter, boost::intrusive::key_of_value<by_due>,
                               boost::intrusive::base_hook<keyed_rate_limiter_due_hook>,
                               boost::intrusive::constant_time_size<false>>
        heads_;
};

template <class Threading, class Clock>
wait_decision keyed_rate_limiter_state<Threading, Clock>::decide_request(
    visit& v, nanoseconds now, std::uint64_t n, nanoseconds deadline, rate_limiter_receipt& receipt,
    nanoseconds& retry_after) noexcept
{
    const wait_decision result =
        v.line.decide(v.bucket, now, n, deadline, max_waiters_, receipt, retry_after);
    if (result.is_granted())
        granted_ += n;
    else if (result.is_refused())
        note_rejection(v.word(), result.code(), n, retry_after);
    return result;
}

template <class Threading, class Clock>
bool keyed_rate_limiter_state<Threading, Clock>::admit(waiter& plain) noexcept
{
    keyed_rate_limiter_waiter& w = as_keyed(plain);
    const nanoseconds now = this->now();
    visit v(*this, *w.word, now);
    w.decide(decide_request(v, now, w.permits, w.deadline, w.receipt, w.retry_after));
    if (!w.is_pending())
        return true;
    // The timer must expire for this key, or for one that is due before. Without memory for the
    // timer the waiter would never be granted.
    nanoseconds due = v.line.empty() ? v.bucket.allowed_at(now, w.permits, 0)
                                     : v.bucket.allowed_at(now, v.line.front().permits, 0);
    if (!heads_.empty())
        due = std::min(due, heads_.begin()->due);
    if (!this->try_wake_at(due)) {
        w.fail(errc::rejected);
        note_rejection(*w.word, errc::rejected, w.permits, w.retry_after);
        return true;
    }
    v.line.push_back(v.bucket, w, now);
    ++waiting_;
    return false;
}

template <class Threading, class Clock>
void keyed_rate_limiter_state<Threading, Clock>::note_decided(rate_limiter_waiter& w,
                                                              ready_list& ready) noexcept
{
    --waiting_;
    if (w.is_granted()) {
        ++waited_;
        granted_ += w.permits;
    } else {
        note_rejection(*as_keyed(w).word, w.decision().code(), w.permits, w.retry_after);
    }
    ready.push_back(w);
}

template <class Threading, class Clock>
void keyed_rate_limiter_state<Threading, Clock>::serve(ready_list& ready) noexcept
{
    const nanoseconds now = this->now();
    while (!heads_.empty() && heads_.begin()->due <= now) {
        visit v(*this, *heads_.begin()->word, now);
        v.line.serve(v.bucket, now, [&](rate_limiter_waiter& w) { note_decided(w, ready); });
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
        visit v(*this, *heads_.begin()->word, now);
        v.line.take_all(out);
    }
    waiting_ = 0;
    base::take_all(out);
}

template <class Threading, class Clock>
gcra keyed_rate_limiter_state<Threading, Clock>::change_rule(const bandwidth& limit,
                                                             ready_list& ready) noexcept
{
    serve(ready); // under the old rule, up to the present
    refunds_ += rate_limiter_receipt::limits_change;
    return std::exchange(rule_, gcra(limit));
}

template <class Threading, class Clock>
void keyed_rate_limiter_state<Threading, Clock>::convert_lines(const gcra& old, nanoseconds now,
                                                               ready_list& ready) noexcept
{
    auto heads = std::move(heads_);
    while (!heads.empty()) {
        keyed_rate_limiter_waiter& head = *heads.begin();
        heads.erase(heads.begin());
        heads_.insert(head);
        visit v(*this, *head.word, now);
        v.bucket.full = rule_.converted(old, v.bucket.full, saturating_sub(now, origin_));
        v.line.fail_hopeless(v.bucket, now,
                             [&](rate_limiter_waiter& w) { note_decided(w, ready); });
    }
    serve(ready);
}

extern template class keyed_rate_limiter_state<thread_safe, default_clock>;
extern template class keyed_rate_limiter_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
