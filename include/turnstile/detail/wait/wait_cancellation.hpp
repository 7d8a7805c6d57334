// SPDX-License-Identifier: BSL-1.0
// The cancellation handler in the slot of a wait. wait_operation::start() puts it there, and the
// slot is not accessed again after that, in particular not by a thread that grants the waiter.
//
// Invariant: the handler and its waiter point to each other while both exist; the one that is
// destroyed first ends the link, under the object's lock. So a signal that is emitted after the
// completion finds no waiter and has no effect. The handler holds a reference to the state.
#pragma once

#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_type.hpp>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class wait_cancellation : cancel_link {
public:
    wait_cancellation(wait_state_ptr<Threading> state, waiter& w) noexcept
        : state_(std::move(state))
    {
        target = &w;
        w.cancellation = this;
        w.is_cancellable = true;
    }
    wait_cancellation(const wait_cancellation&) = delete;
    wait_cancellation& operator=(const wait_cancellation&) = delete;
    ~wait_cancellation() { state_->unlink(*this); }

    void operator()(asio::cancellation_type_t type)
    {
        if ((type & asio::cancellation_type::all) != asio::cancellation_type::none)
            state_->cancel(*this);
    }

private:
    wait_state_ptr<Threading> state_;
};

template <class Threading, class Slot>
TURNSTILE_NOINLINE void make_wait_cancellation(Slot& slot, wait_state<Threading>& state, waiter& w)
{
    slot.template emplace<wait_cancellation<Threading>>(wait_state_ptr<Threading>(&state), w);
}

template <class Threading, class Handler>
TURNSTILE_HOT void arm_cancellation(const Handler& handler, wait_state<Threading>& state, waiter& w)
{
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected())
        make_wait_cancellation(slot, state, w);
}

} // namespace turnstile::inline v0_1::detail
