// SPDX-License-Identifier: BSL-1.0
// What queue_state.hpp leaves out: compiled into the library for the stores that do not depend
// on a user's type, and included where they do.
#pragma once

#include <turnstile/channel/detail/queue_state.hpp>

#include <algorithm>

namespace turnstile::inline v0_1::detail {

// ---------------------------------------------------------------------- the queue ----

template <class Threading, class Store>
bool queue_state<Threading, Store>::admit(waiter&) noexcept
{
    return false; // never called: a newcomer may let others go
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::admit_and_grant(waiter& any, ready_list& ready) noexcept
{
    quiet_limit_ = 0;
    auto& w = static_cast<item_waiter&>(any);
    switch (w.what) {
    case role::pop:
        return admit_pop(w, ready);
    case role::push:
        return admit_push(w, ready);
    case role::reserve:
        return admit_reserve(w);
    case role::join:
        break;
    }
    if (unfinished_locked() == 0)
        w.grant();
    else
        joiners_.push_back(w);
    return w.is_granted();
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::admit_pop(item_waiter& w, ready_list& ready) noexcept
{
    w.promised = promise_at_once(w.most, ready);
    if (w.promised != 0) {
        w.grant();
        return true;
    }
    if (w.most == 0 || is_drained()) {
        w.fail(w.most == 0 ? errc::invalid_argument : errc::closed);
        return true;
    }
    this->queue_.push_back(w);
    ++demand_;
    if (!pushers_.empty())
        serve(ready);
    return false;
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::admit_push(item_waiter& w, ready_list& ready) noexcept
{
    if (may_enter()) {
        let_in(w);
        if (!this->queue_.empty())
            serve(ready);
        return true;
    }
    const wait_decision full = refuse_entry();
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

// A push to a full queue that drops items. What it drops is gone, so it cannot be cancelled.
template <class Threading, class Store>
void queue_state<Threading, Store>::enter_and_drop(item_waiter& w, ready_list& ready) noexcept
{
    if (drops_newest()) {
        w.grant();
        w.where = whereabouts::gone;
        count_drop();
        w.items.push_back(*w.item);
        return;
    }
    let_in(w);
    w.where = whereabouts::in_store_for_good;
    if (!this->queue_.empty())
        serve(ready);
    drop_one(w.items);
}

// Nothing is dropped for a reservation: where a push need not wait, this does.
template <class Threading, class Store>
wait_decision queue_state<Threading, Store>::reserve_locked() noexcept
{
    quiet_limit_ = 0;
    if (may_enter()) {
        ++reserved_;
        return wait_decision::granted();
    }
    const wait_decision full = refuse_entry();
    return full.is_granted() ? wait_decision::pending() : full;
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::admit_reserve(item_waiter& w) noexcept
{
    w.decide(reserve_locked());
    if (w.is_pending())
        pushers_.push_back(w);
    return !w.is_pending();
}

template <class Threading, class Store>
void queue_state<Threading, Store>::remove(waiter& any) noexcept
{
    auto& w = static_cast<item_waiter&>(any);
    if (w.what == role::pop)
        --demand_;
    w.waiter_hook::unlink();
}

template <class Threading, class Store>
void queue_state<Threading, Store>::take_all(waiter_list& out) noexcept
{
    demand_ = 0;
    out.splice(out.end(), this->queue_);
    out.splice(out.end(), pushers_);
    out.splice(out.end(), joiners_);
}

// --------------------------------------------------------------- granting, and not ----

template <class Threading, class Store>
wait_decision queue_state<Threading, Store>::refuse_entry() const noexcept
{
    if (closed_)
        return wait_decision::refused(errc::closed);
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

template <class Threading, class Store>
void queue_state<Threading, Store>::let_in(item_waiter& w) noexcept
{
    w.grant();
    if (w.what == role::reserve) {
        ++reserved_;
        return;
    }
    insert(*w.item);
    w.item->pusher = &w;
    w.turn = Store::turn_of(*w.item);
    w.where = whereabouts::in_store;
}

template <class Threading, class Store>
void queue_state<Threading, Store>::let_pushers_in(ready_list& ready) noexcept
{
    while (!pushers_.empty() && has_room()) {
        auto& w = static_cast<item_waiter&>(take_front(pushers_));
        let_in(w);
        ready.push_back(w);
    }
}

template <class Threading, class Store>
void queue_state<Threading, Store>::serve(ready_list& ready) noexcept
{
    let_pushers_in(ready);
    while (!this->queue_.empty() && size_ != 0) {
        auto& w = static_cast<item_waiter&>(take_front(this->queue_));
        --demand_;
        w.promised = promise(w.most);
        w.grant();
        ready.push_back(w);
        let_pushers_in(ready);
    }
    after_change(ready);
}

template <class Threading, class Store>
void queue_state<Threading, Store>::after_change(ready_list& ready) noexcept
{
    const auto fail = [](waiter& w) { w.fail(errc::closed); };
    if (unfinished_locked() == 0)
        this->decide_each(joiners_, ready, [](waiter& w) { w.grant(); });
    if (closed_)
        this->decide_each(pushers_, ready, fail);
    if (is_drained()) {
        demand_ = 0;
        this->decide_each(this->queue_, ready, fail);
    }
}

template <class Threading, class Store>
void queue_state<Threading, Store>::take_back(waiter& any, ready_list& ready) noexcept
{
    auto& w = static_cast<item_waiter&>(any);
    switch (w.what) {
    case role::pop:
        if (!this->is_alive()) // the destructor has broken the promise
            return;
        take_back_promise(std::exchange(w.promised, 0), w.items);
        break;
    case role::push:
        if (w.where == whereabouts::destroyed)
            return;
        if (w.where != whereabouts::in_store || size_ == 0) {
            w.grant(); // the item is gone, or all items are promised to pops: too late
            return;
        }
        withdraw(*w.item);
        --size_;
        w.where = whereabouts::here;
        break;
    case role::reserve:
        --reserved_;
        break;
    case role::join:
        return;
    }
    serve(ready);
}

// A push on its way stands though the queue is destroyed, unless its item was destroyed with it: a
// pop has it.
template <class Threading, class Store>
bool queue_state<Threading, Store>::outlives_object(const waiter& any) const noexcept
{
    const auto& w = static_cast<const item_waiter&>(any);
    return w.what == role::push && w.where != whereabouts::destroyed;
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::draw_from_pusher(ready_list& ready) noexcept
{
    if (!this->queue_.empty() || pushers_.empty() ||
        static_cast<item_waiter&>(pushers_.front()).what != role::push)
        return false;
    ++demand_;
    let_pushers_in(ready);
    --demand_;
    return size_ != 0;
}

template <class Threading, class Store>
std::size_t queue_state<Threading, Store>::promise_at_once(std::size_t most,
                                                           ready_list& ready) noexcept
{
    std::size_t n = 0;
    while (n != most && (size_ != 0 || draw_from_pusher(ready))) {
        n += promise(most - n);
        let_pushers_in(ready);
    }
    return n;
}

template <class Threading, class Store>
void queue_state<Threading, Store>::take_back_promise(std::size_t n, item_list& discarded) noexcept
{
    promised_ -= n;
    if (discarded_) {
        remove_some(n, discarded);
    } else {
        size_ += n;
    }
}

template <class Threading, class Store>
void queue_state<Threading, Store>::take_promised(std::size_t n, item_list& out) noexcept
{
    promised_ -= n;
    handed_out_ += n;
    remove_some(n, out);
}

template <class Threading, class Store>
void queue_state<Threading, Store>::drop_one(item_list& dropped) noexcept
{
    if (size_ == 0)
        return;
    item_node& n = store_.surplus();
    withdraw(n);
    --size_;
    ++dropped_;
    dropped.push_back(n);
}

template <class Threading, class Store>
item_node* queue_state<Threading, Store>::take_out(item_node& n, ready_list& ready) noexcept
{
    if (size_ == 0)
        return nullptr;
    withdraw(n);
    --size_;
    serve(ready);
    return &n;
}

template <class Threading, class Store>
void queue_state<Threading, Store>::fill(item_node& n, ready_list& ready,
                                         item_list& dropped) noexcept
{
    --reserved_;
    if (discarded_) {
        dropped.push_back(n);
        return;
    }
    const bool full = !has_room() && on_full_ != overflow::wait && on_full_ != overflow::reject;
    if (full && drops_newest()) {
        count_drop();
        dropped.push_back(n);
        return;
    }
    enter(n, ready);
    if (full)
        drop_one(dropped);
}

// ------------------------------------------------------------- called without the lock ----

template <class Threading, class Store>
wait_decision queue_state<Threading, Store>::enter() noexcept
{
    return this->guarded([&] {
        const wait_decision decision = may_enter() ? wait_decision::granted() : refuse_entry();
        if (decision.is_granted()) {
            quiet_limit_ = 0;
            ++reserved_;
        }
        return decision;
    });
}

template <class Threading, class Store>
void queue_state<Threading, Store>::cancel_reservation() noexcept
{
    this->update([&](ready_list& ready) {
        --reserved_;
        serve(ready);
    });
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::task_done() noexcept
{
    return this->update([&](ready_list& ready) {
        if (handed_out_ == 0)
            return false;
        --handed_out_;
        after_change(ready);
        return true;
    });
}

template <class Threading, class Store>
void queue_state<Threading, Store>::clear(item_list& out, whereabouts where) noexcept
{
    store_.take_rest(promised_, out);
    for (item_node& n : out) {
        if (n.pusher)
            part(n, where);
    }
    size_ = 0;
}

template <class Threading, class Store>
void queue_state<Threading, Store>::end(item_list& discarded) noexcept
{
    this->update([&](ready_list& ready) {
        this->retire_locked(ready);
        closed_ = true;
        discarded_ = true;
        quiet_limit_ = 0;
        promised_ = promised_to_calls_;
        clear(discarded, whereabouts::destroyed);
    });
}

template <class Threading, class Store>
void queue_state<Threading, Store>::close(closing how, item_list& discarded) noexcept
{
    this->update([&](ready_list& ready) {
        closed_ = true;
        quiet_limit_ = 0;
        if (how == closing::discard) {
            discarded_ = true;
            clear(discarded, whereabouts::gone);
        }
        after_change(ready);
    });
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::part_from(item_waiter& w) noexcept
{
    return this->guarded([&] {
        if (w.where == whereabouts::in_store || w.where == whereabouts::in_store_for_good)
            part(*w.item);
        return w.where == whereabouts::here;
    });
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::deliver(item_waiter& w) noexcept
{
    return this->update([&](ready_list& ready) {
        if (!this->is_alive()) [[unlikely]]
            return false;
        if (w.promised != w.most) // others may have come
            w.promised += promise_at_once(w.most - w.promised, ready);
        take_promised(std::exchange(w.promised, 0), w.items);
        if (closed_)
            after_change(ready);
        return true;
    });
}

template <class Threading, class Store>
wait_decision queue_state<Threading, Store>::promise_batch(std::size_t most,
                                                           std::size_t& n) noexcept
{
    return this->update([&](ready_list& ready) {
        n = promise_at_once(most, ready);
        promised_to_calls_ += n;
        return n != 0 ? wait_decision::granted() : explain_empty();
    });
}

template <class Threading, class Store>
void queue_state<Threading, Store>::take_batch(std::size_t n, item_list& out) noexcept
{
    this->update([&](ready_list& ready) {
        promised_to_calls_ -= n;
        take_promised(n, out);
        if (closed_)
            after_change(ready);
    });
}

template <class Threading, class Store>
void queue_state<Threading, Store>::give_back_batch(std::size_t n, item_list& discarded) noexcept
{
    this->update([&](ready_list& ready) {
        promised_to_calls_ -= n;
        take_back_promise(n, discarded);
        serve(ready);
    });
}

} // namespace turnstile::inline v0_1::detail
