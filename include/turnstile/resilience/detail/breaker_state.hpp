// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/observable_state.hpp>
#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/resilience/breaker_policy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1 {

/// What the listeners of a circuit breaker are told.
struct circuit_change {
    circuit_state from;
    circuit_state to;
};

/// A circuit breaker's figures at one time.
struct breaker_stats {
    circuit_state state = circuit_state::closed;
    bool forced = false;         ///< By `force_open` or `force_closed`.
    std::uint64_t successes = 0; ///< Calls reported so since it was made, as all totals.
    std::uint64_t failures = 0;
    std::uint64_t ignored = 0;
    std::uint64_t late = 0;     ///< Reported when the state they were admitted in was over.
    std::uint64_t rejected = 0; ///< Calls not let through.
    std::uint64_t opened = 0;   ///< How often it has opened.
    call_tally window;          ///< What the present state of the window is.
    std::uint32_t probes_out = 0;
    nanoseconds retry_after{};
};

namespace detail {

struct circuit_waiter : waiter {
    using waiter::waiter;
    circuit_state wanted{};
};

// A breaker_policy under a lock, those who wait for one of its states, and its listeners.
//
// One word holds the generation and two flags, so that calls through a closed circuit need no
// lock: `passes` says that calls are let through, and `clean` that a success leaves no trace.
//
// Permits and calls may outlive the object. `out_` counts those that have not ended, and the state
// is kept until the last one has: when the object is destroyed it sets `orphaned` there, and if any
// are out leaves them a reference, which the last one drops. An orphaned state is never `clean`.
template <class Threading, clock_policy Clock>
class TURNSTILE_EXPORT breaker_state final
    : public observable_state<Threading, circuit_change, timed_state<Threading, Clock>> {
    using base = observable_state<Threading, circuit_change, timed_state<Threading, Clock>>;

public:
    template <class Executor>
    breaker_state(const Executor& executor, const breaker_options& options)
        : base(executor), policy_(options), generator_(options.break_duration),
          classify_(options.classify), times_calls_(policy_.times_calls())
    {
        word_.store(word(), std::memory_order_relaxed);
    }

    // Lets a call pass, and writes its ticket; or not, and says when to come again.
    TURNSTILE_HOT bool admit_call(breaker_ticket& ticket, nanoseconds& retry_after) noexcept
    {
        const std::uint64_t now = word_.load(std::memory_order_acquire);
        if ((now & passes) == 0) [[unlikely]]
            return admit_probe(ticket, retry_after);
        out_.fetch_add(one_out, std::memory_order_relaxed);
        ticket.generation = now / one_generation;
        if (times_calls_)
            ticket.started = base::now();
        return true;
    }

    // The end of an admitted call. It is the last use that the call makes of the state.
    TURNSTILE_HOT void report(const breaker_ticket& ticket, call_outcome outcome) noexcept
    {
        const std::uint64_t now = word_.load(std::memory_order_acquire);
        const bool is_current = now / one_generation == ticket.generation;
        if (outcome == call_outcome::success && (now & clean) != 0 && is_current) [[likely]]
            return end_successfully();
        report_slowly(ticket, outcome);
        leave();
    }

    // The object is being destroyed: what is out keeps the state from now on.
    void orphan() noexcept
    {
        intrusive_ptr_add_ref(this);
        this->update([&](ready_list&) {
            is_orphaned_ = true;
            update_word();
        });
        if (set_bits(out_, orphaned) == 0)
            intrusive_ptr_release(this);
    }

    circuit_state state() noexcept;
    wait_decision look_for(circuit_state wanted) noexcept
    {
        return state() == wanted ? wait_decision::granted() : wait_decision::pending();
    }
    breaker_stats stats() noexcept;
    void force_open() noexcept { set(&breaker_policy::force_open); }
    void force_closed() noexcept { set(&breaker_policy::force_closed); }
    void reset() noexcept { set(&breaker_policy::reset); }

    // What the options say of failed calls.
    const std::function<call_outcome(const failure&)>& rule() const noexcept { return classify_; }

private:
    static constexpr std::uint64_t passes = 1;
    static constexpr std::uint64_t clean = 2;
    static constexpr std::uint64_t one_generation = 4;
    static constexpr std::uint64_t orphaned = 1; // in out_, as what follows
    static constexpr std::uint64_t one_out = 2;

    bool admit_probe(breaker_ticket& ticket, nanoseconds& retry_after) noexcept;
    void report_slowly(const breaker_ticket& ticket, call_outcome outcome) noexcept;
    void set(bool (breaker_policy::*function)(nanoseconds)) noexcept;
    TURNSTILE_HOT void end_successfully() noexcept
    {
        const auto relaxed = std::memory_order_relaxed;
        if constexpr (Threading::is_confined) {
            // Nobody can have orphaned the state since it was seen to be clean.
            quick_successes_.store(quick_successes_.load(relaxed) + 1, relaxed);
            out_.store(out_.load(relaxed) - one_out, relaxed);
        } else {
            quick_successes_.fetch_add(1, relaxed);
            leave();
        }
    }
    void leave() noexcept
    {
        if (out_.fetch_sub(one_out, std::memory_order_acq_rel) == (one_out | orphaned)) [[unlikely]]
            intrusive_ptr_release(this);
    }

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list&) noexcept override { set_alarm(); }
    void take_back(waiter&, ready_list&) noexcept override {}
    void take_all(waiter_list& out) noexcept override;
    void wake(ready_list& ready) noexcept override;
    bool has_pending_events() const noexcept override
    {
        return ask_for_ != 0 || base::has_pending_events();
    }
    void tell() noexcept override;

    // Runs f(now, ready) under the lock on a policy that has caught up with time, and after
    // it tells what has changed.
    template <class F>
    void at_present(F f) noexcept;
    void catch_up(nanoseconds now, ready_list& ready) noexcept;
    void changed(ready_list& ready) noexcept;
    void update_word() noexcept;
    void set_alarm() noexcept;
    void ask_generator() noexcept;
    std::uint64_t word() const noexcept;
    waiter_list& waiting_for(circuit_state state) noexcept
    {
        return waiting_for_[static_cast<std::size_t>(state)];
    }

    breaker_policy policy_; // guarded by the lock, as all that is no cell
    policy_atomic<Threading, std::uint64_t> word_{0};
    policy_atomic<Threading, std::uint64_t> quick_successes_{0};
    policy_atomic<Threading, std::uint64_t> out_{0};
    breaker_stats totals_;
    std::array<waiter_list, 3> waiting_for_;
    bool is_orphaned_ = false;
    std::uint64_t ask_for_ = 0; // the generation whose duration the generator is to say

    const std::function<nanoseconds(const break_info&)> generator_;
    const std::function<call_outcome(const failure&)> classify_;
    const bool times_calls_;
};

// ------------------------------------------------------------------------- calls ----

template <class Threading, clock_policy Clock>
template <class F>
void breaker_state<Threading, Clock>::at_present(F f) noexcept
{
    this->update_and_tell([&](ready_list& ready) {
        const nanoseconds now = base::now();
        catch_up(now, ready);
        f(now, ready);
        update_word();
    });
}

template <class Threading, clock_policy Clock>
bool breaker_state<Threading, Clock>::admit_probe(breaker_ticket& ticket,
                                                  nanoseconds& retry_after) noexcept
{
    bool admitted = false;
    at_present([&](nanoseconds now, ready_list&) {
        if (const auto given = policy_.admit(now)) {
            ticket = *given;
            admitted = true;
            out_.fetch_add(one_out, std::memory_order_relaxed);
        } else {
            ++totals_.rejected;
            retry_after = policy_.retry_after(now);
        }
    });
    return admitted;
}

template <class Threading, clock_policy Clock>
void breaker_state<Threading, Clock>::report_slowly(const breaker_ticket& ticket,
                                                    call_outcome outcome) noexcept
{
    this->update_and_tell([&](ready_list& ready) {
        nanoseconds now{};
        if (policy_.needs_time_for(outcome)) {
            now = base::now();
            catch_up(now, ready);
        }
        ++(ticket.generation != policy_.generation() ? totals_.late
           : outcome == call_outcome::success        ? totals_.successes
           : outcome == call_outcome::failure        ? totals_.failures
                                                     : totals_.ignored);
        if (policy_.report(ticket, outcome, now))
            changed(ready);
        update_word();
    });
}

template <class Threading, clock_policy Clock>
void breaker_state<Threading, Clock>::set(bool (breaker_policy::*function)(nanoseconds)) noexcept
{
    at_present([&](nanoseconds now, ready_list& ready) {
        if ((policy_.*function)(now))
            changed(ready);
    });
}

template <class Threading, clock_policy Clock>
circuit_state breaker_state<Threading, Clock>::state() noexcept
{
    if ((word_.load(std::memory_order_acquire) & passes) != 0)
        return circuit_state::closed;
    circuit_state now{};
    at_present([&](nanoseconds, ready_list&) { now = policy_.state(); });
    return now;
}

template <class Threading, clock_policy Clock>
breaker_stats breaker_state<Threading, Clock>::stats() noexcept
{
    breaker_stats result;
    at_present([&](nanoseconds now, ready_list&) {
        result = totals_;
        result.successes += quick_successes_.load(std::memory_order_relaxed);
        result.state = policy_.state();
        result.forced = policy_.is_forced();
        result.window = policy_.window(now);
        result.probes_out = policy_.probes_out();
        result.retry_after = policy_.retry_after(now);
    });
    return result;
}

// -------------------------------------------------------------- under the lock ----

template <class Threading, clock_policy Clock>
void breaker_state<Threading, Clock>::catch_up(nanoseconds now, ready_list& ready) noexcept
{
    while (policy_.advance(now))
        changed(ready);
}

template <class Threading, clock_policy Clock>
void breaker_state<Threading, Clock>::changed(ready_list& ready) noexcept
{
    const circuit_state state = policy_.state();
    totals_.opened += state == circuit_state::open ? 1 : 0;
    if (policy_.wants_break_duration())
        ask_for_ = policy_.generation();
    this->listeners_.publish({policy_.changed_from(), state});
    while (!waiting_for(state).empty()) {
        waiter& w = take_front(waiting_for(state));
        w.grant();
        ready.push_back(w);
    }
}

// Makes what the policy says now known to those who come without the lock.
template <class Threading, clock_policy Clock>
void breaker_state<Threading, Clock>::update_word() noexcept
{
    word_.store(word(), std::memory_order_release);
    set_alarm();
}

template <class Threading, clock_policy Clock>
std::uint64_t breaker_state<Threading, Clock>::word() const noexcept
{
    const std::uint64_t generation = policy_.generation() * one_generation;
    if (policy_.state() != circuit_state::closed || is_orphaned_)
        return generation;
    const bool traceless =
        policy_.forgets_successes() && (policy_.is_forced() || !policy_.remembers_failures());
    return generation | passes | (traceless ? clean : 0);
}

// Time alone changes the state only when somebody looks: a call, or one who waits for it.
template <class Threading, clock_policy Clock>
void breaker_state<Threading, Clock>::set_alarm() noexcept
{
    const nanoseconds next = this->has_waiters() ? policy_.next_change() : nanoseconds::max();
    if (next != nanoseconds::max())
        this->wake_at(next);
    else
        this->sleep();
}

template <class Threading, clock_policy Clock>
bool breaker_state<Threading, Clock>::admit(waiter& w) noexcept
{
    const circuit_state wanted = static_cast<circuit_waiter&>(w).wanted;
    if (policy_.state() == wanted) {
        w.grant();
        return true;
    }
    waiting_for(wanted).push_back(w);
    set_alarm();
    return false;
}

template <class Threading, clock_policy Clock>
void breaker_state<Threading, Clock>::take_all(waiter_list& out) noexcept
{
    base::take_all(out);
    for (waiter_list& list : waiting_for_)
        out.splice(out.end(), list);
}

template <class Threading, clock_policy Clock>
void breaker_state<Threading, Clock>::wake(ready_list& ready) noexcept
{
    catch_up(base::now(), ready);
    update_word();
}

// ------------------------------------------------------------- without the lock ----

template <class Threading, clock_policy Clock>
void breaker_state<Threading, Clock>::tell() noexcept
{
    if (generator_ && !this->listeners_.is_closed())
        ask_generator();
    base::tell();
}

template <class Threading, clock_policy Clock>
void breaker_state<Threading, Clock>::ask_generator() noexcept
{
    std::uint64_t generation = 0;
    break_info info;
    this->update([&](ready_list&) {
        generation = std::exchange(ask_for_, 0);
        info = policy_.last_break();
    });
    if (generation == 0)
        return;
    nanoseconds duration = info.proposed;
    try {
        duration = generator_(info);
    } catch (...) { // what was proposed holds
    }
    this->update([&](ready_list&) {
        policy_.set_break_duration(generation, duration);
        update_word();
    });
}

extern template class breaker_state<thread_safe, default_clock>;
extern template class breaker_state<strand_confined, default_clock>;

} // namespace detail
} // namespace turnstile::inline v0_1
