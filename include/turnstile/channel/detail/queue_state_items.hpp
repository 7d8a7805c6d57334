// SPDX-License-Identifier: BSL-1.0
// Definitions of the members of queue_state that promise, take, drop and destroy items. They are
// compiled into the library for `queue`, and included by priority_queue.hpp. The members that grant
// waiters are in queue_state_waiters.hpp; the invariants are in queue_state.hpp.
//
// No item is destroyed here. Items that are to be destroyed go to a list that the caller frees
// without the lock.
#pragma once

#include <turnstile/channel/detail/queue_state.hpp>

#include <utility>

namespace turnstile::inline v0_1::detail {

// ----------------------------------------------------------------------- promises ----

template <class Threading, class Store>
std::size_t queue_state<Threading, Store>::promise_now(std::size_t max_items,
                                                       ready_list& ready) noexcept
{
    std::size_t n = 0;
    while (n != max_items && (size_ != 0 || pull_from_pusher(ready))) {
        n += promise(max_items - n);
        grant_entries(ready);
    }
    return n;
}

template <class Threading, class Store>
void queue_state<Threading, Store>::return_promise(std::size_t n,
                                                   queue_node_list& discarded) noexcept
{
    promised_ -= n;
    if (discarded_)
        remove_some(n, discarded);
    else
        size_ += n;
}

template <class Threading, class Store>
void queue_state<Threading, Store>::take_promised(std::size_t n, queue_node_list& out) noexcept
{
    promised_ -= n;
    in_progress_ += n;
    remove_some(n, out);
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::take_items(queue_waiter& w) noexcept
{
    return this->update([&](ready_list& ready) {
        if (!this->is_alive()) [[unlikely]]
            return false;
        if (w.promised != w.max_items) // more items may have come
            w.promised += promise_now(w.max_items - w.promised, ready);
        take_promised(std::exchange(w.promised, 0), w.items);
        if (closed_)
            settle_ended(ready);
        return true;
    });
}

template <class Threading, class Store>
wait_decision queue_state<Threading, Store>::promise_batch(std::size_t max_items,
                                                           std::size_t& n) noexcept
{
    return this->update([&](ready_list& ready) {
        n = promise_now(max_items, ready);
        promised_to_calls_ += n;
        return n != 0 ? wait_decision::granted() : empty_decision();
    });
}

template <class Threading, class Store>
void queue_state<Threading, Store>::take_batch(std::size_t n, queue_node_list& out) noexcept
{
    this->update([&](ready_list& ready) {
        promised_to_calls_ -= n;
        take_promised(n, out);
        if (closed_)
            settle_ended(ready);
    });
}

template <class Threading, class Store>
void queue_state<Threading, Store>::give_back_batch(std::size_t n,
                                                    queue_node_list& discarded) noexcept
{
    this->update([&](ready_list& ready) {
        promised_to_calls_ -= n;
        return_promise(n, discarded);
        grant_waiters(ready);
    });
}

// --------------------------------------------------------- entering, dropping, erasing ----

template <class Threading, class Store>
void queue_state<Threading, Store>::fill(queue_node& n, ready_list& ready,
                                         queue_node_list& dropped) noexcept
{
    --reserved_;
    if (discarded_) {
        dropped.push_back(n);
        return;
    }
    const bool is_full = !has_room() && on_full_ != overflow::wait && on_full_ != overflow::reject;
    if (is_full && drops_newest()) {
        count_drop();
        dropped.push_back(n);
        return;
    }
    enter(n, ready);
    if (is_full)
        drop_one(dropped);
}

template <class Threading, class Store>
void queue_state<Threading, Store>::drop_one(queue_node_list& dropped) noexcept
{
    if (size_ == 0)
        return;
    queue_node& n = store_.drop_candidate();
    remove_item(n);
    --size_;
    count_drop();
    dropped.push_back(n);
}

template <class Threading, class Store>
queue_node* queue_state<Threading, Store>::erase(queue_node& n, ready_list& ready) noexcept
{
    if (size_ == 0)
        return nullptr;
    remove_item(n);
    --size_;
    grant_waiters(ready);
    return &n;
}

template <class Threading, class Store>
bool queue_state<Threading, Store>::task_done() noexcept
{
    return this->update([&](ready_list& ready) {
        if (in_progress_ == 0)
            return false;
        --in_progress_;
        settle_ended(ready);
        return true;
    });
}

// -------------------------------------------------------------- closing, destruction ----

template <class Threading, class Store>
void queue_state<Threading, Store>::remove_unpromised(queue_node_list& out,
                                                      push_progress progress) noexcept
{
    store_.take_all_but(promised_, out);
    for (queue_node& n : out) {
        if (n.pusher)
            detach_push(n, progress);
    }
    size_ = 0;
}

template <class Threading, class Store>
void queue_state<Threading, Store>::close(close_mode mode, queue_node_list& discarded) noexcept
{
    this->update([&](ready_list& ready) { close_locked(mode, discarded, ready); });
}

template <class Threading, class Store>
void queue_state<Threading, Store>::close_locked(close_mode mode, queue_node_list& discarded,
                                                 ready_list& ready) noexcept
{
    closed_ = true;
    finishing_ = false;
    fast_limit_ = 0;
    if (mode == close_mode::discard) {
        discarded_ = true;
        remove_unpromised(discarded, push_progress::left);
    }
    settle_ended(ready);
}

template <class Threading, class Store>
void queue_state<Threading, Store>::remove_sender() noexcept
{
    this->update([&](ready_list& ready) {
        if (--senders_ != 0 || closed_)
            return;
        closed_ = true;
        finishing_ = true;
        fast_limit_ = 0;
        settle_ended(ready);
    });
}

template <class Threading, class Store>
void queue_state<Threading, Store>::remove_receiver(queue_node_list& discarded) noexcept
{
    this->update([&](ready_list& ready) {
        if (--receivers_ == 0 && !discarded_)
            close_locked(close_mode::discard, discarded, ready);
    });
}

template <class Threading, class Store>
void queue_state<Threading, Store>::retire_queue(queue_node_list& discarded) noexcept
{
    this->update([&](ready_list& ready) {
        this->retire_locked(ready);
        closed_ = true;
        discarded_ = true;
        fast_limit_ = 0;
        promised_ = promised_to_calls_;
        remove_unpromised(discarded, push_progress::destroyed);
    });
}

} // namespace turnstile::inline v0_1::detail
