// SPDX-License-Identifier: BSL-1.0
// The functions of resource_pool_state that deal with the operations of the user: the pump, which
// starts them, their cancellation and their ends.
#pragma once

#include <turnstile/work/detail/resource_pool_state.hpp>

namespace turnstile::inline v0_1::detail {

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::schedule_pump() noexcept
{
    if (pump_is_posted_ || is_shut_down_)
        return;
    boost::intrusive_ptr<resource_pool_state> keep_alive(this);
    pump_is_posted_ = true;
    if (this->object_executor().post(*this)) [[likely]]
        keep_alive.detach();
    else
        pump_is_posted_ = false; // there is no memory for it: the next change tries again
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::run_task(intrusive_task& task, task_action action)
{
    auto& self = static_cast<resource_pool_state&>(task);
    const boost::intrusive_ptr<resource_pool_state> keep_alive(&self, false);
    if (action == task_action::invoke)
        self.run_pump();
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::run_pump() noexcept
{
    this->guarded([&] { pump_is_posted_ = false; });
    while (start_operation())
        continue;
    while (start_creation())
        continue;
    change([](ready_list&) {}); // destroys what was released
}

template <class Threading, clock_policy Clock>
bool resource_pool_state<Threading, Clock>::start_operation() noexcept
{
    slot_phase phase{};
    const pool_slot_ptr s = this->guarded([&] {
        pool_slot_ptr next = machine_.next_start();
        if (next)
            phase = next->phase();
        return next;
    });
    if (!s)
        return false;
    pool_call_ptr call;
    try {
        call = make_call(s, phase);
    } catch (...) {
        change([&](ready_list&) {
            const nanoseconds now = base::now();
            if (s->phase() == slot_phase::checking)
                machine_.checked(*s, now, false);
            else if (s->phase() == slot_phase::resetting)
                machine_.reset_ended(*s, now, false);
            else if (s->phase() == slot_phase::closing)
                machine_.closed(*s);
        });
        return true;
    }
    launch(std::move(call));
    return true;
}

template <class Threading, clock_policy Clock>
bool resource_pool_state<Threading, Clock>::start_creation() noexcept
{
    if (!this->guarded([&] { return machine_.has_creations(); }))
        return false;
    pool_call_ptr call;
    pool_failure failed;
    try {
        call = make_call(make_slot(), slot_phase::creating);
    } catch (...) {
        failed = {failure(std::current_exception()).code(), std::current_exception()};
    }
    if (!call) {
        change([&](ready_list& ready) {
            machine_.creation_failed(base::now(), failed.code);
            set_cause(failed);
            fail_after_creation(ready);
        });
        return true;
    }
    if (!this->guarded([&] { return machine_.begin_creation(*call->slot, base::now()); }))
        return false;
    launch(std::move(call));
    return true;
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::launch(pool_call_ptr call) noexcept
{
    const bool starts = this->guarded([&] {
        if (call->slot->phase() == slot_phase::gone)
            return false;
        call->slot->call = call.get();
        call->is_posted = true;
        return true;
    });
    if (!starts)
        return;
    pool_call_ptr posted(call);
    if (posted->post_to_strand()) [[likely]] {
        posted.detach();
        return;
    }
    this->guarded([&] { call->is_posted = false; });
    end_call(*call, std::make_exception_ptr(std::bad_alloc()), false);
}

// Cancels the operations of released slots, or destroys their resources, and drops the references
// of the machine.
template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::finish(slot_work_list& released) noexcept
{
    std::size_t destroyed = 0;
    while (!released.empty()) {
        const pool_slot_ptr s(&released.front(), false);
        released.pop_front();
        pool_call_ptr call;
        const bool posts = this->guarded([&] {
            call.reset(static_cast<pool_call*>(s->call));
            if (!call || call->has_ended || is_shut_down_)
                return false;
            call->is_cancelled = true;
            return !std::exchange(call->is_posted, true);
        });
        if (!call)
            s->destroy_resource();
        if (s->keeps_place())
            ++destroyed;
        if (!posts)
            continue;
        if (call->post_to_strand())
            call.detach();
        else // the operation is not cancelled
            this->guarded([&] { call->is_posted = false; });
    }
    if (destroyed != 0)
        change([&](ready_list&) { machine_.destroyed(destroyed); });
}

template <class Threading, clock_policy Clock>
pool_call_step resource_pool_state<Threading, Clock>::next_step(pool_call& call) noexcept
{
    return this->guarded([&] {
        call.is_posted = false;
        if (call.has_ended)
            return pool_call_step::none;
        if (call.is_started)
            return call.is_cancelled ? pool_call_step::cancel : pool_call_step::none;
        call.is_started = true;
        return call.is_cancelled ? pool_call_step::end : pool_call_step::start;
    });
}

template <class Threading, clock_policy Clock>
bool resource_pool_state<Threading, Clock>::ends_with_drop(pool_call& call) noexcept
{
    return this->guarded([&] {
        call.is_posted = false;
        return !std::exchange(call.is_started, true);
    });
}

template <class Threading, clock_policy Clock>
void resource_pool_state<Threading, Clock>::end_call(pool_call& call, std::exception_ptr exception,
                                                     bool is_good) noexcept
{
    pool_failure failed; // destroyed without the lock
    if (!is_good) {
        failed = {exception ? failure(exception).code()
                            : error_code(asio::error::operation_aborted),
                  std::move(exception)};
        if (!failed.code) // an exception with an error code that is not set
            failed.code = errc::operation_failed;
    }
    change([&](ready_list& ready) {
        if (std::exchange(call.has_ended, true))
            return;
        pool_slot& s = *call.slot;
        s.call = nullptr;
        const nanoseconds now = base::now();
        switch (s.phase()) {
        case slot_phase::creating:
            if (is_good) {
                machine_.created(s, now);
                return set_cause(failed);
            }
            machine_.creation_failed(s, now, failed.code);
            set_cause(failed);
            return fail_after_creation(ready);
        case slot_phase::checking:
            return machine_.checked(s, now, is_good);
        case slot_phase::resetting:
            return machine_.reset_ended(s, now, is_good);
        case slot_phase::closing:
            return machine_.closed(s);
        default:
            return; // the slot is gone
        }
    });
}

} // namespace turnstile::inline v0_1::detail
