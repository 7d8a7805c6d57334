// SPDX-License-Identifier: BSL-1.0
//
// The state of basic_bulkhead, its waiter and its request: a semaphore_state whose permits are the
// places, with a bounded queue, a maximum waiting time, and an optional adaptive limit.
//
// All waiters wait for the same maximum time, so the first in the queue has the earliest deadline,
// and one timer, set for that deadline, serves the queue. The timer runs only while operations
// wait. Deadlines never decrease along the queue, even if the clock goes back.
//
// A place is given back by the last action of a call on the state: the operation that receives it
// may destroy the object at once.
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/wait/observable_state.hpp>
#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/detail/wait/wait_request.hpp>
#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/resilience/adaptive_limit.hpp>
#include <turnstile/resilience/bulkhead_options.hpp>
#include <turnstile/resilience/call_outcome.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace turnstile::inline v0_1::detail {

// An admitted call. Its start is recorded only for an adaptive limit.
struct bulkhead_ticket {
    nanoseconds started{};
};

struct bulkhead_waiter : semaphore_waiter {
    using semaphore_waiter::semaphore_waiter;
    nanoseconds deadline = nanoseconds::max();
};

template <class Threading, clock_policy Clock>
class TURNSTILE_EXPORT bulkhead_state final
    : public observable_state<Threading, bulkhead_event,
                              timed_state<Threading, Clock, semaphore_state<Threading>>> {
    using semaphore = semaphore_state<Threading>;
    using base =
        observable_state<Threading, bulkhead_event, timed_state<Threading, Clock, semaphore>>;

public:
    template <class Executor>
    bulkhead_state(const Executor& executor, const bulkhead_options& options)
        : bulkhead_state(executor, options, limit_machine(options.adaptive, checked(options).limit))
    {
    }

    bool is_adaptive() const noexcept { return limit_.is_adaptive(); }
    bulkhead_ticket ticket() const noexcept
    {
        return {is_adaptive() ? base::now() : nanoseconds::zero()};
    }
    nanoseconds deadline() const noexcept
    {
        return max_wait_ == nanoseconds::max() ? max_wait_ : saturating_add(base::now(), max_wait_);
    }

    // Gives a place back without a report.
    void give_back() noexcept
    {
        bool fits = false;
        if (max_wait_ == nanoseconds::max())
            semaphore::release(
                1,
                semaphore::one_handle); // waiters have no deadlines, so no timer runs
        else if (!semaphore::release_quickly(1, semaphore::one_handle, fits)) [[unlikely]]
            this->update([&](ready_list& ready) { put_back(ready); });
    }
    // Gives the place of a call back, and reports its outcome to an adaptive limit.
    void report(const bulkhead_ticket& ticket, call_outcome outcome) noexcept
    {
        if (is_adaptive())
            learn(ticket.started, outcome);
        else
            give_back();
    }

    // Returns false if the limit is adaptive or out of range.
    bool resize_to(std::uint64_t limit) noexcept;
    bulkhead_stats stats() noexcept;
    // The classifier of the options; may be empty.
    const std::function<call_outcome(const failure&)>& classify() const noexcept
    {
        return classify_;
    }

private:
    template <class Executor>
    bulkhead_state(const Executor& executor, const bulkhead_options& options, limit_machine limit)
        : base(executor, limit.limit(), limit.limit()), max_waiters_(options.max_waiters),
          max_wait_(options.max_wait), limit_(limit), classify_(options.classify)
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
        stop_idle_timer();
    }
    void stop_idle_timer() noexcept;
    bulkhead_waiter& head() noexcept { return static_cast<bulkhead_waiter&>(this->queue_.front()); }

    const std::uint64_t max_waiters_;
    const nanoseconds max_wait_;
    limit_machine limit_; // the lock guards it and the members below
    bulkhead_stats totals_;
    nanoseconds latest_deadline_ = nanoseconds::min();
    bool timer_is_set_ = false;
    const std::function<call_outcome(const failure&)> classify_;
};

template <class Threading, clock_policy Clock>
bool bulkhead_state<Threading, Clock>::admit(waiter& w) noexcept
{
    auto& call = static_cast<bulkhead_waiter&>(w);
    const std::uint64_t ahead = this->waiters() - 1; // without w, which is counted
    if (ahead >= max_waiters_) {
        // A place may have been given back since the attempt without the lock.
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
        // Keeps deadlines in order if the clock went back, or another thread has overtaken this
        // one.
        latest_deadline_ = call.deadline = std::max(call.deadline, latest_deadline_);
        this->wake_at(head().deadline);
        timer_is_set_ = true;
    }
    return false;
}

template <class Threading, clock_policy Clock>
void bulkhead_state<Threading, Clock>::reconsider(ready_list& ready) noexcept
{
    semaphore::reconsider(ready);
    stop_idle_timer();
}

template <class Threading, clock_policy Clock>
void bulkhead_state<Threading, Clock>::take_back(waiter& w, ready_list& ready) noexcept
{
    semaphore::take_back(w, ready);
    stop_idle_timer();
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
        timer_is_set_ = false;
}

// Stops the timer when the last waiter has left.
template <class Threading, clock_policy Clock>
void bulkhead_state<Threading, Clock>::stop_idle_timer() noexcept
{
    if (this->has_waiters() || !timer_is_set_)
        return;
    timer_is_set_ = false;
    this->sleep();
}

template <class Threading, clock_policy Clock>
void bulkhead_state<Threading, Clock>::learn(nanoseconds started, call_outcome outcome) noexcept
{
    this->update_and_notify([&](ready_list& ready) {
        if (outcome != call_outcome::ignored) {
            const bool dropped = outcome == call_outcome::failure;
            totals_.failures += dropped ? 1 : 0;
            const limit_sample sample{started, base::now(), semaphore::in_use(), dropped};
            set_limit(limit_.update(sample), ready);
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
        stop_idle_timer();
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

// A wait for a place. Result is the handle that the place is delivered in.
template <class Executor, class State, class Threading, class Result>
struct bulkhead_request {
    using executor_type = Executor;
    using threading = Threading;
    using result_type = Result;
    using waiter_type = bulkhead_waiter;
    static constexpr request_traits traits{.refundable = true};
    static constexpr const char* stage = "bulkhead";
    static constexpr nanoseconds retry_after = nanoseconds::max(); // it depends on other calls

    const Executor* home;
    State* state_ptr;

    const executor_type& executor() const noexcept { return *home; }
    State& state() const noexcept { return *state_ptr; }

    wait_decision try_now() const noexcept { return state_ptr->try_now(1, State::one_handle); }
    void give_back() const noexcept { state_ptr->give_back(); }
    void prepare(bulkhead_waiter& w) const noexcept { w.deadline = state_ptr->deadline(); }
    Result take_now() const noexcept { return Result(state_ptr, state_ptr->ticket()); }
};

extern template class timed_state<thread_safe, default_clock, semaphore_state<thread_safe>>;
extern template class timed_state<strand_confined, default_clock, semaphore_state<strand_confined>>;
extern template class bulkhead_state<thread_safe, default_clock>;
extern template class bulkhead_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
