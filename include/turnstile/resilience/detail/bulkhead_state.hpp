// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/wait/observable_state.hpp>
#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/resilience/adaptive_limit.hpp>
#include <turnstile/resilience/call_outcome.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace turnstile::inline v0_1 {

/// How a bulkhead is made. Checked then: `errc::invalid_argument` for a limit of zero or of
/// `limit_bound` and more, a negative wait, or adaptive options out of their range.
struct bulkhead_options {
    /// How many may be inside at a time; where an adaptive limit starts from.
    std::uint64_t limit = 10;
    /// How many may wait. A further call is refused with `errc::rejected`.
    std::uint64_t max_queue = 100;
    /// How long one may wait.
    nanoseconds max_wait = nanoseconds::max();
    /// Whether the limit finds its own size.
    limit_options adaptive = fixed_limit{};
    /// What a failed call says to an adaptive limit; not asked about others. A failure counts
    /// as dropped, and what is ignored not at all. By default a cancelled call and one that
    /// another stage refused (`is_refusal`) are ignored, and any other failure is one.
    std::function<call_outcome(const failure&)> classify = nullptr;
};

/// What the listeners of a bulkhead are told.
struct limit_change {
    std::uint64_t from;
    std::uint64_t to;
};

/// A bulkhead's figures at one time.
struct bulkhead_stats {
    std::uint64_t limit = 0;
    std::uint64_t in_flight = 0; ///< May be above a limit that has just shrunk.
    std::uint64_t waiting = 0;
    std::uint64_t rejected = 0;  ///< Since it was made, as all totals: no room to wait.
    std::uint64_t timed_out = 0; ///< Those who have waited too long.
    std::uint64_t dropped = 0;   ///< Calls reported as failed to an adaptive limit.
};

namespace detail {

// One call that was let in; timed only for an adaptive limit.
struct bulkhead_ticket {
    nanoseconds started{};
};

struct bulkhead_waiter : semaphore_waiter {
    using semaphore_waiter::semaphore_waiter;
    nanoseconds deadline = nanoseconds::max();
};

// The gate of a semaphore, with a limit on those who wait, and on how long. All wait equally
// long, so the first in line has the earliest deadline, and the alarm is set for that one.
template <class Threading, clock_policy Clock>
class TURNSTILE_EXPORT bulkhead_state final
    : public observable_state<Threading, limit_change,
                              timed_state<Threading, Clock, semaphore_state<Threading>>> {
    using semaphore = semaphore_state<Threading>;
    using base =
        observable_state<Threading, limit_change, timed_state<Threading, Clock, semaphore>>;

public:
    template <class Executor>
    bulkhead_state(const Executor& executor, const bulkhead_options& options)
        : bulkhead_state(executor, options, any_limit(options.adaptive, checked(options).limit))
    {
    }

    bool is_adaptive() const noexcept { return policy_.is_adaptive(); }
    bulkhead_ticket ticket() const noexcept
    {
        return {is_adaptive() ? base::now() : nanoseconds::zero()};
    }
    nanoseconds deadline() const noexcept
    {
        return max_wait_ == nanoseconds::max() ? max_wait_ : saturating_add(base::now(), max_wait_);
    }

    // Gives a permit back that was not used. Whoever gets it may destroy the object at once: it
    // is the last thing that happens, under the lock or without.
    void give_back() noexcept
    {
        bool fits = false;
        if (max_wait_ == nanoseconds::max())
            semaphore::release(1, semaphore::one_handle); // there is no alarm to look after
        else if (!semaphore::release_quickly(1, semaphore::one_handle, fits)) [[unlikely]]
            this->update([&](ready_list& ready) { put_back(ready); });
    }
    // The end of a call: gives its permit back, and learns from it.
    void report(const bulkhead_ticket& ticket, call_outcome outcome) noexcept
    {
        if (is_adaptive())
            learn(ticket.started, outcome);
        else
            give_back();
    }

    // False if the limit is adaptive.
    bool resize_to(std::uint64_t limit) noexcept;
    bulkhead_stats stats() noexcept;
    // What the options say of failed calls.
    const std::function<call_outcome(const failure&)>& rule() const noexcept { return classify_; }

private:
    template <class Executor>
    bulkhead_state(const Executor& executor, const bulkhead_options& options, any_limit policy)
        : base(executor, policy.limit(), policy.limit()), max_queue_(options.max_queue),
          max_wait_(options.max_wait), policy_(policy), classify_(options.classify)
    {
    }

    static_assert(limit_bound <= semaphore::unlimited);
    static bool is_possible(std::uint64_t limit) noexcept
    {
        return limit != 0 && limit < limit_bound;
    }
    static const bulkhead_options& checked(const bulkhead_options& o)
    {
        if (!is_possible(o.limit))
            throw_error(errc::invalid_argument, "bulkhead: limit must be in [1, limit_bound)");
        if (o.max_wait < nanoseconds::zero())
            throw_error(errc::invalid_argument, "bulkhead: max_wait must not be negative");
        return o;
    }

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void wake(ready_list& ready) noexcept override;

    void learn(nanoseconds started, call_outcome outcome) noexcept;
    void set_limit(std::uint64_t limit, ready_list& ready) noexcept;
    void put_back(ready_list& ready) noexcept
    {
        semaphore::release_locked(1, semaphore::one_handle, ready);
        tidy_up();
    }
    void tidy_up() noexcept;
    bulkhead_waiter& head() noexcept { return static_cast<bulkhead_waiter&>(this->queue_.front()); }

    const std::uint64_t max_queue_;
    const nanoseconds max_wait_;
    any_limit policy_; // guarded by the lock, as what follows
    bulkhead_stats totals_;
    nanoseconds latest_deadline_ = nanoseconds::min();
    bool alarm_is_set_ = false;
    const std::function<call_outcome(const failure&)> classify_;
};

template <class Threading, clock_policy Clock>
bool bulkhead_state<Threading, Clock>::admit(waiter& w) noexcept
{
    auto& call = static_cast<bulkhead_waiter&>(w);
    const std::uint64_t ahead = this->waiters() - 1; // w is counted already
    if (ahead >= max_queue_) {
        // A permit may have come back since the fast path looked.
        if (ahead == 0 && semaphore::try_acquire(call.need, semaphore::one_handle)) {
            w.grant();
        } else {
            w.fail(errc::rejected);
            ++totals_.rejected;
        }
        return true;
    }
    if (semaphore::admit(w))
        return true;
    if (call.deadline != nanoseconds::max()) {
        // Also if the clock went back, or another thread has overtaken this one.
        latest_deadline_ = call.deadline = std::max(call.deadline, latest_deadline_);
        this->wake_at(head().deadline);
        alarm_is_set_ = true;
    }
    return false;
}

template <class Threading, clock_policy Clock>
void bulkhead_state<Threading, Clock>::reconsider(ready_list& ready) noexcept
{
    semaphore::reconsider(ready);
    tidy_up();
}

template <class Threading, clock_policy Clock>
void bulkhead_state<Threading, Clock>::take_back(waiter& w, ready_list& ready) noexcept
{
    semaphore::take_back(w, ready);
    tidy_up();
}

template <class Threading, clock_policy Clock>
void bulkhead_state<Threading, Clock>::wake(ready_list& ready) noexcept
{
    const nanoseconds now = base::now();
    while (!this->queue_.empty() && head().deadline <= now) {
        waiter& w = take_front(this->queue_);
        w.fail(errc::timed_out);
        ++totals_.timed_out;
        ready.push_back(w);
    }
    semaphore::reconsider(ready);
    if (!this->queue_.empty())
        this->wake_at(head().deadline);
    else
        alarm_is_set_ = false;
}

// The timer is not left running when the last one has gone.
template <class Threading, clock_policy Clock>
void bulkhead_state<Threading, Clock>::tidy_up() noexcept
{
    if (this->has_waiters() || !alarm_is_set_)
        return;
    alarm_is_set_ = false;
    this->sleep();
}

template <class Threading, clock_policy Clock>
void bulkhead_state<Threading, Clock>::learn(nanoseconds started, call_outcome outcome) noexcept
{
    this->update_and_notify([&](ready_list& ready) {
        if (outcome != call_outcome::ignored) {
            const bool dropped = outcome == call_outcome::failure;
            totals_.dropped += dropped ? 1 : 0;
            const limit_sample sample{started, base::now(), semaphore::in_use(), dropped};
            set_limit(policy_.update(sample), ready);
        }
        put_back(ready);
    });
}

template <class Threading, clock_policy Clock>
void bulkhead_state<Threading, Clock>::set_limit(std::uint64_t limit, ready_list& ready) noexcept
{
    const std::uint64_t before = semaphore::maximum();
    if (limit == before)
        return;
    semaphore::set_maximum(limit, ready);
    this->listeners_.publish({before, limit});
}

template <class Threading, clock_policy Clock>
bool bulkhead_state<Threading, Clock>::resize_to(std::uint64_t limit) noexcept
{
    if (is_adaptive() || !is_possible(limit))
        return false;
    this->update_and_notify([&](ready_list& ready) {
        set_limit(limit, ready);
        tidy_up();
    });
    return true;
}

template <class Threading, clock_policy Clock>
bulkhead_stats bulkhead_state<Threading, Clock>::stats() noexcept
{
    bulkhead_stats result;
    this->update([&](ready_list&) {
        result = totals_;
        result.limit = semaphore::maximum();
        result.in_flight = semaphore::in_use();
        result.waiting = this->waiters();
    });
    return result;
}

extern template class timed_state<thread_safe, default_clock, semaphore_state<thread_safe>>;
extern template class timed_state<strand_confined, default_clock, semaphore_state<strand_confined>>;
extern template class bulkhead_state<thread_safe, default_clock>;
extern template class bulkhead_state<strand_confined, default_clock>;

} // namespace detail
} // namespace turnstile::inline v0_1
