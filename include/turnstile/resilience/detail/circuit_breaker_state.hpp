// SPDX-License-Identifier: BSL-1.0
//
// The state of basic_circuit_breaker: a circuit_breaker_machine under the lock of a wait_state,
// the waiters for each state of the circuit, and the listeners.
//
// Calls through a closed circuit take no lock. They read `word_`:
//   bit 0        `passes`: calls are admitted;
//   bit 1        `clean`: a success changes nothing in the machine;
//   bits 2..63   the generation of the machine's state.
// The word is written under the lock after every change of the machine, so it may be outdated
// only as long as the change is under way. `clean` implies `passes`.
//
// Permits and calls may outlive the object. `out_` counts the calls that have not ended:
//   bit 0        `orphaned`: the object is destroyed;
//   bits 1..63   the number of admitted calls without a report.
// The destructor of the object sets `orphaned`. If calls are outstanding at that time, they own one
// reference to the state, which the last one drops. An orphaned state is neither `passes` nor
// `clean`, so that every later report takes the lock.
#pragma once

#include <turnstile/detail/wait/observable_state.hpp>
#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/resilience/circuit_breaker_machine.hpp>
#include <turnstile/resilience/circuit_breaker_options.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace turnstile::inline v0_1::detail {

struct circuit_breaker_waiter : waiter {
    using waiter::waiter;
    circuit_state wanted{};
};

template <class Threading, clock_policy Clock>
class TURNSTILE_EXPORT circuit_breaker_state final
    : public observable_state<Threading, circuit_breaker_event, timed_state<Threading, Clock>> {
    using base = observable_state<Threading, circuit_breaker_event, timed_state<Threading, Clock>>;

public:
    template <class Executor>
    circuit_breaker_state(const Executor& executor, const circuit_breaker_options& options)
        : base(executor), machine_(options), generator_(options.break_duration),
          classify_(options.classify), times_calls_(machine_.times_calls())
    {
        word_.store(word(), std::memory_order_relaxed);
    }

    // Either admits a call and writes its ticket, or refuses it and writes the delay after which a
    // call may be admitted.
    TURNSTILE_HOT bool admit_call(circuit_breaker_ticket& ticket, nanoseconds& retry_after) noexcept
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

    // Reports the outcome of an admitted call. The state may be destroyed when this returns.
    TURNSTILE_HOT void report(const circuit_breaker_ticket& ticket, call_outcome outcome) noexcept
    {
        const std::uint64_t now = word_.load(std::memory_order_acquire);
        const bool is_current = now / one_generation == ticket.generation;
        if (outcome == call_outcome::success && (now & clean) != 0 && is_current) [[likely]]
            return end_successfully();
        report_slowly(ticket, outcome);
        leave();
    }

    // Called by the destructor of the object: outstanding calls own the state from then on.
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
    wait_decision try_wait(circuit_state wanted) noexcept
    {
        return state() == wanted ? wait_decision::granted() : wait_decision::pending();
    }
    circuit_breaker_stats stats() noexcept;
    void force_open() noexcept { call_machine(&circuit_breaker_machine::force_open); }
    void force_closed() noexcept { call_machine(&circuit_breaker_machine::force_closed); }
    void reset() noexcept { call_machine(&circuit_breaker_machine::reset); }

    // The classifier of the options; may be empty.
    const std::function<call_outcome(const failure&)>& classify() const noexcept
    {
        return classify_;
    }

private:
    // The fields of word_, and of out_.
    static constexpr std::uint64_t passes = 1;
    static constexpr std::uint64_t clean = 2;
    static constexpr std::uint64_t one_generation = 4;
    static constexpr std::uint64_t orphaned = 1;
    static constexpr std::uint64_t one_out = 2;

    bool admit_probe(circuit_breaker_ticket& ticket, nanoseconds& retry_after) noexcept;
    void report_slowly(const circuit_breaker_ticket& ticket, call_outcome outcome) noexcept;
    void call_machine(bool (circuit_breaker_machine::*function)(nanoseconds)) noexcept;
    TURNSTILE_HOT void end_successfully() noexcept
    {
        const auto relaxed = std::memory_order_relaxed;
        if constexpr (Threading::is_confined) {
            // No other thread can have orphaned the state since the word was read.
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
        return generator_due_ != 0 || base::has_pending_events();
    }
    void notify_listeners() noexcept override;

    // Advances the machine to the present, runs f(now, ready) under the lock, and dispatches the
    // events after it.
    template <class F>
    void at_present(F f) noexcept;
    void catch_up(nanoseconds now, ready_list& ready) noexcept;
    void changed(ready_list& ready) noexcept;
    void update_word() noexcept;
    void set_alarm() noexcept;
    void call_generator() noexcept;
    std::uint64_t word() const noexcept;
    waiter_list& waiting_for(circuit_state state) noexcept
    {
        return waiting_for_[static_cast<std::size_t>(state)];
    }

    circuit_breaker_machine machine_; // the lock guards it and every member that is not atomic
    policy_atomic<Threading, std::uint64_t> word_{0};
    policy_atomic<Threading, std::uint64_t> quick_successes_{0};
    policy_atomic<Threading, std::uint64_t> out_{0};
    circuit_breaker_stats totals_;
    std::array<waiter_list, 3> waiting_for_;
    bool is_orphaned_ = false;
    std::uint64_t generator_due_ = 0; // the generation for which break_duration is to be called

    const std::function<nanoseconds(const break_info&)> generator_;
    const std::function<call_outcome(const failure&)> classify_;
    const bool times_calls_;
};

// ------------------------------------------------------------------------- calls ----

template <class Threading, clock_policy Clock>
template <class F>
void circuit_breaker_state<Threading, Clock>::at_present(F f) noexcept
{
    this->update_and_notify([&](ready_list& ready) {
        const nanoseconds now = base::now();
        catch_up(now, ready);
        f(now, ready);
        update_word();
    });
}

template <class Threading, clock_policy Clock>
bool circuit_breaker_state<Threading, Clock>::admit_probe(circuit_breaker_ticket& ticket,
                                                          nanoseconds& retry_after) noexcept
{
    bool admitted = false;
    at_present([&](nanoseconds now, ready_list&) {
        if (const auto given = machine_.admit(now)) {
            ticket = *given;
            admitted = true;
            out_.fetch_add(one_out, std::memory_order_relaxed);
        } else {
            ++totals_.rejected;
            retry_after = machine_.retry_after(now);
        }
    });
    return admitted;
}

template <class Threading, clock_policy Clock>
void circuit_breaker_state<Threading, Clock>::report_slowly(const circuit_breaker_ticket& ticket,
                                                            call_outcome outcome) noexcept
{
    this->update_and_notify([&](ready_list& ready) {
        nanoseconds now{};
        if (machine_.needs_time_for(outcome)) {
            now = base::now();
            catch_up(now, ready);
        }
        ++(ticket.generation != machine_.generation() ? totals_.late
           : outcome == call_outcome::success         ? totals_.successes
           : outcome == call_outcome::failure         ? totals_.failures
                                                      : totals_.ignored);
        if (machine_.report(ticket, outcome, now))
            changed(ready);
        update_word();
    });
}

template <class Threading, clock_policy Clock>
void circuit_breaker_state<Threading, Clock>::call_machine(
    bool (circuit_breaker_machine::*function)(nanoseconds)) noexcept
{
    at_present([&](nanoseconds now, ready_list& ready) {
        if ((machine_.*function)(now))
            changed(ready);
    });
}

template <class Threading, clock_policy Clock>
circuit_state circuit_breaker_state<Threading, Clock>::state() noexcept
{
    if ((word_.load(std::memory_order_acquire) & passes) != 0)
        return circuit_state::closed;
    circuit_state now{};
    at_present([&](nanoseconds, ready_list&) { now = machine_.state(); });
    return now;
}

template <class Threading, clock_policy Clock>
circuit_breaker_stats circuit_breaker_state<Threading, Clock>::stats() noexcept
{
    circuit_breaker_stats result;
    at_present([&](nanoseconds now, ready_list&) {
        result = totals_;
        result.successes += quick_successes_.load(std::memory_order_relaxed);
        result.state = machine_.state();
        result.forced = machine_.is_forced();
        result.window = machine_.window(now);
        result.probes_out = machine_.probes_out();
        result.retry_after = machine_.retry_after(now);
    });
    return result;
}

// -------------------------------------------------------------- under the lock ----

template <class Threading, clock_policy Clock>
void circuit_breaker_state<Threading, Clock>::catch_up(nanoseconds now, ready_list& ready) noexcept
{
    while (machine_.advance(now))
        changed(ready);
}

template <class Threading, clock_policy Clock>
void circuit_breaker_state<Threading, Clock>::changed(ready_list& ready) noexcept
{
    const circuit_state state = machine_.state();
    totals_.opened += state == circuit_state::open ? 1 : 0;
    if (machine_.wants_break_duration())
        generator_due_ = machine_.generation();
    this->listeners_.publish({machine_.changed_from(), state});
    while (!waiting_for(state).empty()) {
        waiter& w = take_front(waiting_for(state));
        w.grant();
        ready.push_back(w);
    }
}

// Publishes the state of the machine to callers that do not take the lock.
template <class Threading, clock_policy Clock>
void circuit_breaker_state<Threading, Clock>::update_word() noexcept
{
    word_.store(word(), std::memory_order_release);
    set_alarm();
}

template <class Threading, clock_policy Clock>
std::uint64_t circuit_breaker_state<Threading, Clock>::word() const noexcept
{
    const std::uint64_t generation = machine_.generation() * one_generation;
    if (machine_.state() != circuit_state::closed || is_orphaned_)
        return generation;
    const bool traceless =
        machine_.forgets_successes() && (machine_.is_forced() || !machine_.remembers_failures());
    return generation | passes | (traceless ? clean : 0);
}

// A timer is needed only while operations wait for a state: without waiters, the next call makes
// the changes that are due.
template <class Threading, clock_policy Clock>
void circuit_breaker_state<Threading, Clock>::set_alarm() noexcept
{
    const nanoseconds next = this->has_waiters() ? machine_.next_change() : nanoseconds::max();
    if (next != nanoseconds::max())
        this->wake_at(next);
    else
        this->sleep();
}

template <class Threading, clock_policy Clock>
bool circuit_breaker_state<Threading, Clock>::admit(waiter& w) noexcept
{
    const circuit_state wanted = static_cast<circuit_breaker_waiter&>(w).wanted;
    if (machine_.state() == wanted) {
        w.grant();
        return true;
    }
    waiting_for(wanted).push_back(w);
    set_alarm();
    return false;
}

template <class Threading, clock_policy Clock>
void circuit_breaker_state<Threading, Clock>::take_all(waiter_list& out) noexcept
{
    base::take_all(out);
    for (waiter_list& list : waiting_for_)
        out.splice(out.end(), list);
}

template <class Threading, clock_policy Clock>
void circuit_breaker_state<Threading, Clock>::wake(ready_list& ready) noexcept
{
    catch_up(base::now(), ready);
    update_word();
}

// ------------------------------------------------------------- without the lock ----

template <class Threading, clock_policy Clock>
void circuit_breaker_state<Threading, Clock>::notify_listeners() noexcept
{
    if (generator_ && !this->listeners_.is_closed())
        call_generator();
    base::notify_listeners();
}

template <class Threading, clock_policy Clock>
void circuit_breaker_state<Threading, Clock>::call_generator() noexcept
{
    std::uint64_t generation = 0;
    break_info info;
    this->update([&](ready_list&) {
        generation = std::exchange(generator_due_, 0);
        info = machine_.last_break();
    });
    if (generation == 0)
        return;
    nanoseconds duration = info.proposed;
    try {
        duration = generator_(info);
    } catch (...) { // the proposed duration is used
    }
    this->update([&](ready_list&) {
        machine_.set_break_duration(generation, duration);
        update_word();
    });
}

extern template class circuit_breaker_state<thread_safe, default_clock>;
extern template class circuit_breaker_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
