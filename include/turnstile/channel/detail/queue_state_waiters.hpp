// SPDX-License-Identifier: BSL-1.0
// Definitions of the members of queue_state that admit, grant and cancel waiters, and of the
// reservations. They are compiled into the library for `queue`, and included by priority_queue.hpp,
// because the store of a priority_queue depends on types of the user. The members that move items
// are in queue_state_items.hpp; the invariants are in queue_state.hpp.
#pragma once

#include <turnstile/channel/detail/queue_state.hpp>

#include <utility>

namespace turnstile::inline v0_1::detail {

// ---------------------------------------------------------------------- admission ----

template <class Threading, class Store>
bool queue_state<Threading, Store>::admit(waiter&) noexcept
{
    return false; // never called, because arrivals_grant_others_ is set
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::admit_and_grant(waiter& any, ready_list& ready) noexcept
{
    fast_limit_ = 0;
    auto& w = static_cast<queue_waiter&>(any);
    switch (w.operation) {
    case queue_operation::pop:
        return admit_pop(w, ready);
    case queue_operation::push:
        return admit_push(w, ready);
    case queue_operation::reserve:
        return admit_reserve(w);
    case queue_operation::join:
        break;
    }
    if (unfinished_locked() == 0) {
        w.grant();
        return true;
    }
    joiners_.push_back(w);
    ++joins_;
    return false;
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::admit_pop(queue_waiter& w, ready_list& ready) noexcept
{
    w.promised = promise_now(w.max_items, ready);
    if (w.promised != 0) {
        w.grant();
        return true;
    }
    if (w.max_items == 0 || is_drained()) {
        w.fail(w.max_items == 0 ? errc::invalid_argument : errc::closed);
        return true;
    }
    this->queue_.push_back(w);
    ++demand_;
    if (!pushers_.empty())
        grant_waiters(ready);
    return false;
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::admit_push(queue_waiter& w, ready_list& ready) noexcept
{
    if (can_enter()) {
        grant_entry(w);
        if (!this->queue_.empty())
            grant_waiters(ready);
        return true;
    }
    const wait_decision full = overflow_decision();
    if (full.is_pending()) {
        pushers_.push_back(w);
        return false;
    }
    if (full.is_granted())
        enter_and_drop(w, ready);
    else
        w.fail(full.code());
    return true;
}

template <class Threading, class Store>
void queue_state<Threading, Store>::enter_and_drop(queue_waiter& w, ready_list& ready) noexcept
{
    if (drops_newest()) {
        w.grant();
        w.progress = push_progress::left;
        count_drop();
        w.items.push_back(*w.item);
        return;
    }
    grant_entry(w);
    w.progress = push_progress::committed; // the drop cannot be undone
    if (!this->queue_.empty())
        grant_waiters(ready);
    drop_one(w.items);
}

// A reservation drops nothing: it waits where a push would drop an item.
template <class Threading, class Store>
wait_decision queue_state<Threading, Store>::reserve_locked(std::size_t places) noexcept
{
    // A rendezvous has room for one item at a time. A number above PTRDIFF_MAX is most likely a
    // negative one.
    const std::size_t most = capacity_ == unbounded ? unbounded / 2 : capacity_;
    if (places == 0)
        return wait_decision::refused(errc::invalid_argument);
    if (places > most && places != 1)
        return wait_decision::refused(errc::too_large);
    fast_limit_ = 0;
    if (pushers_.empty() && has_room_for(places) && !closed_) {
        reserved_ += places;
        return wait_decision::granted();
    }
    const wait_decision full = overflow_decision();
    return full.is_granted() ? wait_decision::pending() : full;
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::admit_reserve(queue_waiter& w) noexcept
{
    w.decide(reserve_locked(w.max_items));
    if (w.is_pending())
        pushers_.push_back(w);
    return !w.is_pending();
}

template <class Threading, class Store>
wait_decision queue_state<Threading, Store>::overflow_decision() const noexcept
{
    if (closed_)
        return closed_decision();
    switch (on_full_) {
    case overflow::wait:
        return wait_decision::pending();
    case overflow::reject:
        return wait_decision::refused(errc::rejected);
    case overflow::drop_oldest:
    case overflow::drop_newest:
    case overflow::drop_worst:
        break;
    }
    return wait_decision::granted();
}

// ----------------------------------------------------------------------- granting ----

template <class Threading, class Store>
void queue_state<Threading, Store>::grant_entry(queue_waiter& w) noexcept
{
    w.grant();
    if (w.operation == queue_operation::reserve) {
        reserved_ += w.max_items;
        return;
    }
    insert(*w.item);
    w.item->pusher = &w;
    w.sequence = Store::sequence_of(*w.item);
    w.progress = push_progress::entered;
}

template <class Threading, class Store>
void queue_state<Threading, Store>::grant_entries(ready_list& ready) noexcept
{
    while (!pushers_.empty() && has_room()) {
        auto& w = static_cast<queue_waiter&>(pushers_.front());
        if (w.operation == queue_operation::reserve && !has_room_for(w.max_items))
            return;
        pushers_.pop_front();
        grant_entry(w);
        ready.push_back(w);
    }
}

template <class Threading, class Store>
void queue_state<Threading, Store>::grant_waiters(ready_list& ready) noexcept
{
    grant_entries(ready);
    while (!this->queue_.empty() && size_ != 0) {
        auto& w = static_cast<queue_waiter&>(take_front(this->queue_));
        --demand_;
        w.promised = promise(w.max_items);
        w.grant();
        ready.push_back(w);
        grant_entries(ready);
    }
    settle_ended(ready);
}

template <class Threading, class Store>
void queue_state<Threading, Store>::settle_ended(ready_list& ready) noexcept
{
    const auto fail = [](waiter& w) { w.fail(errc::closed); };
    if (unfinished_locked() == 0) {
        joins_ = 0;
        this->decide_each(joiners_, ready, [](waiter& w) { w.grant(); });
    }
    if (closed_ && !finishing_)
        this->decide_each(pushers_, ready, fail);
    if (is_drained()) {
        demand_ = 0;
        this->decide_each(this->queue_, ready, fail);
    }
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::pull_from_pusher(ready_list& ready) noexcept
{
    if (!this->queue_.empty() || pushers_.empty() ||
        static_cast<queue_waiter&>(pushers_.front()).operation != queue_operation::push)
        return false;
    ++demand_;
    grant_entries(ready);
    --demand_;
    return size_ != 0;
}

// ------------------------------------------------------ cancellation and destruction ----

template <class Threading, class Store>
void queue_state<Threading, Store>::remove(waiter& any) noexcept
{
    auto& w = static_cast<queue_waiter&>(any);
    if (w.operation == queue_operation::pop)
        --demand_;
    else if (w.operation == queue_operation::join)
        --joins_;
    w.waiter_hook::unlink();
}

template <class Threading, class Store>
void queue_state<Threading, Store>::take_all(waiter_list& out) noexcept
{
    demand_ = 0;
    joins_ = 0;
    out.splice(out.end(), this->queue_);
    out.splice(out.end(), pushers_);
    out.splice(out.end(), joiners_);
}

template <class Threading, class Store>
void queue_state<Threading, Store>::take_back(waiter& any, ready_list& ready) noexcept
{
    auto& w = static_cast<queue_waiter&>(any);
    switch (w.operation) {
    case queue_operation::pop:
        if (!this->is_alive()) // the destructor of the queue has broken the promise
            return;
        return_promise(std::exchange(w.promised, 0), w.items);
        break;
    case queue_operation::push:
        if (w.progress == push_progress::destroyed)
            return;
        // Too late to cancel: the item has left, the push has dropped one, or all are promised.
        if (w.progress != push_progress::entered || size_ == 0) {
            w.grant();
            return;
        }
        remove_item(*w.item);
        --size_;
        w.progress = push_progress::not_entered;
        break;
    case queue_operation::reserve:
        reserved_ -= w.max_items;
        break;
    case queue_operation::join:
        return;
    }
    grant_waiters(ready);
}

// A granted push succeeds although the queue is destroyed, unless its item was destroyed as well.
template <class Threading, class Store>
bool queue_state<Threading, Store>::outlives_object(const waiter& any) const noexcept
{
    const auto& w = static_cast<const queue_waiter&>(any);
    return w.operation == queue_operation::push && w.progress != push_progress::destroyed;
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::release_item(queue_waiter& w) noexcept
{
    return this->guarded([&] {
        if (w.progress == push_progress::entered || w.progress == push_progress::committed)
            detach_push(*w.item, push_progress::left);
        return w.progress == push_progress::not_entered;
    });
}

// ------------------------------------------------------------------- reservations ----

template <class Threading, class Store>
wait_decision queue_state<Threading, Store>::reserve_for_push() noexcept
{
    return this->guarded([&] {
        const wait_decision decision = can_enter() ? wait_decision::granted() : overflow_decision();
        if (decision.is_granted()) {
            fast_limit_ = 0;
            ++reserved_;
        }
        return decision;
    });
}

template <class Threading, class Store>
void queue_state<Threading, Store>::release_reservation(std::size_t places) noexcept
{
    this->update([&](ready_list& ready) {
        reserved_ -= places;
        grant_waiters(ready);
    });
}

} // namespace turnstile::inline v0_1::detail
