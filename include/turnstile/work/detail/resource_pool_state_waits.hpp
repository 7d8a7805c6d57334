// SPDX-License-Identifier: BSL-1.0
// The functions of resource_pool_state that deal with waiters, leases and the timer.
#pragma once

#include <turnstile/work/detail/resource_pool_state.hpp>

namespace turnstile::inline v0_1::detail {

template <class Threading, clock_policy Clock>
wait_decision resource_pool_state<Threading, Clock>::refusal(pool_failure& failed) noexcept
{
    if (machine_.has_actions()) // the lifetime of an idle resource was over
        schedule_pump();
    if (machine_.is_closed())
        return wait_decision::refused(errc::closed);
    if (!machine_.fail_fast() || acquiring_ != 0 || !machine_.refuses(base::now()))
        return wait_decision::pending();
    failed = cause();
    return wait_decision::granted();
}

template <class Threading, clock_policy Clock>
bool resource_pool_state<Threading, Clock>::admit(waiter& w) noexcept
{
    auto& p = static_cast<resource_waiter&>(w);
    const nanoseconds now = base::now();
    if (p.kind == resource_wait::close) {
        if (machine_.is_drained()) {
            p.grant();
            return true;
        }
        if (p.deadline <= now) {
            machine_.abandon();
            schedule_pump();
            if (machine_.is_drained())
                p.grant();
            else
                p.fail(errc::timed_out);
            return true;
        }
        closers_.push_back(p);
    } else {
        if (machine_.is_closed()) {
            p.fail(errc::closed);
            return true;
        }
        if (acquiring_ == 0) {
            p.slot = take(now, p.where);
            if (!p.slot && machine_.refuses(now))
                p.failed = cause();
            if (p.slot || p.failed.code) {
                p.grant();
                return true;
            }
        }
        if (acquiring_ >= machine_.max_waiters()) {
            ++rejected_;
            p.fail(errc::rejected);
            return true;
        }
        if (p.deadline <= now) {
            ++timed_out_;
            p.failed = timed_out();
            p.grant();
            return true;
        }
        p.since = now;
        this->queue_.push_back(p);
        ++acquiring_;
        machine_.plan(now, acquiring_);
        if (machine_.has_actions())
            schedule_pump();
    }
    if (p.deadline != never)
        deadlines_.insert(p);
    set_timer();
    return false;
}

// A pending waiter leaves the queues.
template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::leave(resource_waiter& w) noexcept
{
    w.waiter_hook::unlink();
    if (w.deadline_hook.is_linked())
        w.deadline_hook.unlink();
    if (w.kind == resource_wait::acquire)
        --acquiring_;
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::remove(waiter& w) noexcept
{
    leave(static_cast<resource_waiter&>(w));
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::grant(resource_waiter& w, ready_list& ready) noexcept
{
    leave(w);
    w.grant();
    ready.push_back(w);
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::fail(resource_waiter& w, const pool_failure& why,
                                                 ready_list& ready) noexcept
{
    w.failed = why;
    grant(w, ready);
}

// Grants the waiters for which there are resources, plans what the others need, and sees to it that
// this happens.
template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::settle(ready_list& ready) noexcept
{
    if (is_abandoned_)
        return;
    const nanoseconds now = base::now();
    while (acquiring_ != 0) {
        resource_waiter& w = front(this->queue_);
        w.slot = machine_.take(now);
        if (!w.slot)
            break;
        w.slot->where = w.where;
        slow_waits_.add(saturating_sub(now, w.since));
        grant(w, ready);
    }
    machine_.plan(now, acquiring_);
    if (machine_.is_drained())
        while (!closers_.empty())
            grant(front(closers_), ready);
    if (machine_.has_starts())
        schedule_pump();
    set_timer();
}

// In an update() of the base class, after which only the pump destroys what was released.
template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::settle_in_update(ready_list& ready) noexcept
{
    settle(ready);
    if (machine_.has_actions())
        schedule_pump();
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::set_timer() noexcept
{
    nanoseconds when = machine_.wake_time();
    if (!deadlines_.empty())
        when = std::min(when, deadlines_.begin()->deadline);
    if (when == armed_for_)
        return;
    armed_for_ = when;
    if (when == never)
        this->sleep();
    else
        this->wake_at(when);
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::wake(ready_list& ready) noexcept
{
    armed_for_ = never; // the timer has no deadline now
    if (is_abandoned_)
        return;
    expire(ready);
    settle_in_update(ready);
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::expire(ready_list& ready) noexcept
{
    const nanoseconds now = base::now();
    if (const std::size_t failed = machine_.expire(now); failed != 0) {
        creation_timed_out_ = true;
        for (std::size_t i = 0; i != failed; ++i)
            fail_after_creation(ready);
    }
    while (!deadlines_.empty() && deadlines_.begin()->deadline <= now) {
        resource_waiter& w = *deadlines_.begin();
        if (w.kind == resource_wait::acquire) {
            ++timed_out_;
            slow_waits_.add(saturating_sub(now, w.since));
            fail(w, timed_out(), ready);
        } else {
            machine_.abandon();
            fail(w, {machine_.is_drained() ? error_code() : error_code(errc::timed_out)}, ready);
        }
    }
}

// A creation has failed: so does the first waiter, or all of them.
template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::fail_after_creation(ready_list& ready) noexcept
{
    while (acquiring_ != 0) {
        fail(front(this->queue_), cause(), ready);
        if (!machine_.fail_fast())
            return;
    }
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::close_locked(ready_list& ready) noexcept
{
    machine_.close(base::now());
    while (acquiring_ != 0) {
        resource_waiter& w = front(this->queue_);
        leave(w);
        w.fail(errc::closed);
        ready.push_back(w);
    }
}

template <class Threading, clock_policy Clock>
wait_decision resource_pool_state<Threading, Clock>::try_close() noexcept
{
    return change([&](ready_list& ready) {
        close_locked(ready);
        return machine_.is_drained() ? wait_decision::granted() : wait_decision::pending();
    });
}

template <class Threading, clock_policy Clock>
template <class F>
void resource_pool_state<Threading, Clock>::end_lease(F end) noexcept
{
    change([&](ready_list& ready) {
        end();
        if (is_abandoned_)
            machine_.abandon();
        if (is_orphaned_ && machine_.in_use() == 0)
            ready.drop_handles_reference();
    });
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::hand_over(pool_slot& s) noexcept
{
    const nanoseconds now = base::now();
    this->lock();
    // A waiter with a limit may leave the timer to be set.
    if (acquiring_ != 0 && !is_abandoned_ && front(this->queue_).deadline == never &&
        machine_.renew(s, now)) [[likely]] {
        resource_waiter& w = front(this->queue_);
        slow_waits_.add(saturating_sub(now, w.since));
        leave(w);
        w.slot = &s;
        w.grant();
        return this->commit(w);
    }
    this->update_locked([](ready_list&) {});
    end_lease([&] { machine_.give_back(s, now, true); });
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::take_back(waiter& w, ready_list& ready) noexcept
{
    auto& p = static_cast<resource_waiter&>(w);
    if (pool_slot* const s = std::exchange(p.slot, nullptr)) {
        machine_.give_back(*s, base::now(), false);
        if (is_abandoned_)
            machine_.abandon();
        if (is_orphaned_ && machine_.in_use() == 0)
            ready.drop_handles_reference();
    }
    settle_in_update(ready); // if the pool was destroyed, the pump destroys the resource
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::return_handle(waiter& w, ready_list& ready) noexcept
{
    take_back(w, ready);
}

template <class Threading, clock_policy Clock>
bool resource_pool_state<Threading, Clock>::keep_for_handles() noexcept
{
    is_orphaned_ = true;
    return machine_.in_use() != 0;
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::take_all(waiter_list& out) noexcept
{
    deadlines_.clear();
    acquiring_ = 0;
    armed_for_ = never;
    out.splice(out.end(), closers_);
    base::take_all(out);
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::abandon() noexcept
{
    change([&](ready_list&) {
        machine_.close(base::now());
        machine_.abandon();
        is_abandoned_ = true;
    });
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::end_pool() noexcept
{
    slot_work_list released;
    pool_failure cause;
    this->guarded([&] {
        is_shut_down_ = is_abandoned_ = true;
        machine_.close(base::now());
        machine_.abandon();
        machine_.take_released(released);
        std::swap(cause, cause_);
    });
    while (!released.empty()) {
        const pool_slot_ptr s(&released.front(), false);
        released.pop_front();
    }
}

template <class Threading, clock_policy Clock>
resource_pool_stats resource_pool_state<Threading, Clock>::stats() noexcept
{
    return this->guarded([&] {
        resource_pool_stats s;
        machine_.write(s);
        s.waiting = acquiring_;
        s.timed_out = timed_out_;
        s.rejected = rejected_;
        const auto quick = static_cast<double>(quick_waits_);
        const auto slow = static_cast<double>(slow_waits_.samples());
        const auto quantile = [&](double p) {
            const double rank = p * (quick + slow) - quick;
            return rank <= 0 ? nanoseconds::zero()
                             : slow_waits_.percentile(rank / slow).value_or(nanoseconds::zero());
        };
        s.wait_median = quantile(0.5);
        s.wait_p90 = quantile(0.9);
        s.wait_p99 = quantile(0.99);
        return s;
    });
}

} // namespace turnstile::inline v0_1::detail
