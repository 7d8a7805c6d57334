// SPDX-License-Identifier: BSL-1.0
// The rules of a queue: which operation waits, which one is granted, and how many items are
// promised or unfinished. Everything here is independent of the type of the items;
// typed_queue_state.hpp adds the values. The Store (queue_store, priority_queue_store) decides
// which item is next. The member functions are defined in queue_state_waiters.hpp and
// queue_state_items.hpp.
//
// A granted pop is promised an item, but takes it only when it completes: the item that is next
// at that moment. Until then all items stay in the store, in order, so a pop that is cancelled in
// between has moved nothing. The destructor of the queue breaks all promises.
//
// Invariants, whenever the lock is free:
// - No pop waits while unpromised items exist, and the first push or reservation that waits does
// not
//   fit into the room there is.
// - The store holds size_ + promised_ items.
// - fast_limit_ is 0 unless the queue is open and only joins wait. While size_ is below it, a push
//   enters at once and grants no waiter.
// - A closed queue is drained only when no promise and no reservation is outstanding, because a
//   promise may be returned and a reservation may be filled. A queue whose last sender is gone is
//   closed, but pushes and reservations that waited then are still granted (finishing_).
#pragma once

#include <turnstile/channel/detail/queue_node.hpp>
#include <turnstile/channel/queue_policy.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading, class Store>
class TURNSTILE_EXPORT queue_state : public wait_state<Threading> {
public:
    using threading_policy = Threading;

    // The public functions take the lock, except capacity().

    std::size_t size() noexcept { return read(size_); }
    std::size_t unfinished() noexcept
    {
        return this->guarded([&] { return unfinished_locked(); });
    }
    std::uint64_t dropped() noexcept { return read(dropped_); }
    bool is_closed() noexcept { return read(closed_); }
    std::size_t capacity() const noexcept { return capacity_; }
    std::size_t waiting_pops() noexcept { return read(demand_); }
    // Including reservations.
    std::size_t waiting_pushes() noexcept
    {
        return this->guarded([&] { return this->waiters() - demand_ - joins_; });
    }

    // The capacity less the items and the reserved places.
    std::size_t free_places() noexcept
    {
        return this->guarded([&] {
            const std::size_t used = size_ + reserved_;
            if (capacity_ == unbounded)
                return unbounded;
            return used < capacity_ ? capacity_ - used : 0;
        });
    }

    wait_decision try_reserve(std::size_t places) noexcept
    {
        return this->guarded([&] { return reserve_locked(places); });
    }
    // Reserves a place for a push that is certain to follow. A policy that drops items always
    // grants it.
    wait_decision reserve_for_push() noexcept;
    void release_reservation(std::size_t places) noexcept;
    // False after a discarding close.
    bool can_fill_reservation() noexcept { return !read(discarded_); }

    // False if every popped item is already done.
    bool task_done() noexcept;
    wait_decision try_join() noexcept
    {
        return unfinished() == 0 ? wait_decision::granted() : wait_decision::pending();
    }

    // The caller destroys the items in `discarded` after the call.
    void close(close_mode mode, queue_node_list& discarded) noexcept;

    // The counted ends. An end is refused if the queue has no use for it: a sender of a closed
    // queue, a receiver after a discarding close. A copy of an end is never refused.
    bool add_sender() noexcept
    {
        return this->guarded([&] { return add_end(senders_, !closed_); });
    }
    bool add_receiver() noexcept
    {
        return this->guarded([&] { return add_end(receivers_, !discarded_); });
    }
    void copy_sender() noexcept
    {
        this->guarded([&] { ++senders_; });
    }
    void copy_receiver() noexcept
    {
        this->guarded([&] { ++receivers_; });
    }
    void remove_sender() noexcept;
    // The caller destroys the items in `discarded` after the call.
    void remove_receiver(queue_node_list& discarded) noexcept;

    // The waiter of a push is being destroyed. Returns whether the push still holds its item.
    bool release_item(queue_waiter& w) noexcept;

    // A granted pop completes: it takes the items that are next, and up to max_items if more have
    // come than it was promised. Returns false if the queue was destroyed before.
    [[nodiscard]] bool take_items(queue_waiter& w) noexcept;

    // A batch without waiting. It takes two steps, because the caller allocates memory between
    // them; if that fails, the promise is given back.
    wait_decision promise_batch(std::size_t max_items, std::size_t& n) noexcept;
    void take_batch(std::size_t n, queue_node_list& out) noexcept;
    void give_back_batch(std::size_t n, queue_node_list& discarded) noexcept;

protected:
    template <class Executor, class... Args>
    queue_state(const Executor& executor, std::size_t capacity, overflow on_full, Args... args)
        : wait_state<Threading>(executor), store_(args...), capacity_(capacity), on_full_(on_full)
    {
        this->arrivals_grant_others_ = true;
    }
    ~queue_state() override = default;

    // All functions below are called under the lock.

    bool has_room() const noexcept
    {
        const std::size_t used = size_ + reserved_;
        return used < capacity_ || used - capacity_ < demand_;
    }
    bool has_room_for(std::size_t places) const noexcept
    {
        const std::size_t used = size_ + reserved_;
        if (used >= capacity_)
            return demand_ > used - capacity_ && demand_ - (used - capacity_) >= places;
        const std::size_t left = capacity_ - used;
        return places <= left || places - left <= demand_;
    }
    bool can_enter() const noexcept { return pushers_.empty() && has_room() && !closed_; }
    // The decision for a push that cannot enter. If it is granted, the item enters all the same,
    // and one item is dropped.
    wait_decision overflow_decision() const noexcept;
    bool drops_newest() const noexcept { return on_full_ == overflow::drop_newest; }
    void count_drop() noexcept { ++dropped_; }

    // The fast path: no push and no pop waits, so none can be granted.
    bool can_push_fast() const noexcept { return size_ < fast_limit_; }
    void push_fast(queue_node& n) noexcept { insert(n); }
    bool can_pop_fast() const noexcept { return size_ != 0 && fast_limit_ != 0; }
    queue_node* pop_fast() noexcept
    {
        ++in_progress_;
        --size_;
        return remove_next();
    }
    // Allows the fast path again after an operation that took the slow one.
    void update_fast_limit() noexcept
    {
        const bool is_idle = this->queue_.empty() && pushers_.empty() && !closed_;
        fast_limit_ = is_idle && reserved_ < capacity_ ? capacity_ - reserved_ : 0;
    }

    void enter(queue_node& n, ready_list& ready) noexcept
    {
        insert(n);
        if (!this->queue_.empty())
            grant_waiters(ready);
    }
    // Drops one item of a queue that is too full. Nothing is dropped if all items are promised.
    void drop_one(queue_node_list& dropped) noexcept;
    // Enters an item in place of a reservation. `dropped` receives the item that makes room, or
    // the new item itself after a discarding close.
    void fill(queue_node& n, ready_list& ready, queue_node_list& dropped) noexcept;
    bool accepts_fill() const noexcept { return !discarded_; }

    // Takes the next item; null if there is none.
    queue_node* pop(ready_list& ready) noexcept
    {
        if (size_ == 0 && !pull_from_pusher(ready))
            return nullptr;
        queue_node* n = pop_fast();
        if (!pushers_.empty())
            grant_waiters(ready);
        return n;
    }
    // Takes `n` out of the middle; null if all items are promised.
    queue_node* erase(queue_node& n, ready_list& ready) noexcept;
    // The decision for a pop that finds no item.
    wait_decision empty_decision() const noexcept
    {
        return is_drained() ? closed_decision() : wait_decision::pending();
    }

    // Moves all items that are not promised to `out`. Their pushes that have not completed end
    // with `progress`.
    void remove_unpromised(queue_node_list& out, push_progress progress) noexcept;
    // The queue is being destroyed: aborts every waiter, every granted pop that has not taken its
    // items, and every uncompleted push whose item goes to `discarded`. Takes the lock itself.
    void retire_queue(queue_node_list& discarded) noexcept;

    Store& store() noexcept { return store_; }

    std::size_t size_ = 0; // unpromised items

private:
    template <class T>
    T read(const T& value) noexcept
    {
        return this->guarded([&] { return value; });
    }

    bool admit(waiter& w) noexcept override;
    bool admit_and_grant(waiter& w, ready_list& ready) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override { grant_waiters(ready); }
    void take_back(waiter& w, ready_list& ready) noexcept override;
    bool outlives_object(const waiter& w) const noexcept override;
    void take_all(waiter_list& out) noexcept override;

    bool admit_pop(queue_waiter& w, ready_list& ready) noexcept;
    bool admit_push(queue_waiter& w, ready_list& ready) noexcept;
    bool admit_reserve(queue_waiter& w) noexcept;
    wait_decision reserve_locked(std::size_t places) noexcept;
    // The decision for an operation at a closed queue. Only an end of a queue, which may outlive
    // it, can reach a queue that was destroyed.
    wait_decision closed_decision() const noexcept
    {
        return this->is_alive() ? wait_decision::refused(errc::closed) : wait_decision::aborted();
    }
    static bool add_end(std::size_t& count, bool accepted) noexcept
    {
        count += accepted ? 1 : 0;
        return accepted;
    }
    void close_locked(close_mode mode, queue_node_list& discarded, ready_list& ready) noexcept;
    // Grants every waiter that can proceed, of pushes and pops, then settle_ended().
    void grant_waiters(ready_list& ready) noexcept;
    // Grants joins if nothing is unfinished, and fails the operations that a closed queue can no
    // longer grant.
    void settle_ended(ready_list& ready) noexcept;
    // Grants the waiter of a push or a reservation.
    void grant_entry(queue_waiter& w) noexcept;
    void grant_entries(ready_list& ready) noexcept;
    // A push enters a full queue that drops items.
    void enter_and_drop(queue_waiter& w, ready_list& ready) noexcept;
    // Without room for an item, a waiting push hands its item directly to a pop. Returns whether
    // an item is there.
    bool pull_from_pusher(ready_list& ready) noexcept;

    bool is_drained() const noexcept
    {
        return closed_ && size_ == 0 &&
               (discarded_ || (promised_ == 0 && reserved_ == 0 && pushers_.empty()));
    }
    std::size_t unfinished_locked() const noexcept { return size_ + promised_ + in_progress_; }

    void insert(queue_node& n) noexcept
    {
        store_.insert(n);
        ++size_;
    }
    // The functions that remove items leave the counters to their callers.
    queue_node* remove_next() noexcept
    {
        queue_node& n = store_.next();
        remove_item(n);
        return &n;
    }
    void remove_some(std::size_t n, queue_node_list& out) noexcept
    {
        for (; n != 0; --n)
            out.push_back(*remove_next());
    }
    void remove_item(queue_node& n) noexcept
    {
        store_.erase(n);
        if (n.pusher) [[unlikely]]
            detach_push(n, push_progress::left);
    }
    static void detach_push(queue_node& n, push_progress progress) noexcept
    {
        n.pusher->progress = progress;
        n.pusher = nullptr;
    }

    // Promises up to max_items items and returns their number.
    std::size_t promise(std::size_t max_items) noexcept
    {
        const std::size_t n = max_items < size_ ? max_items : size_;
        size_ -= n;
        promised_ += n;
        return n;
    }
    // The same for a pop that need not wait; pushes that wait are granted.
    std::size_t promise_now(std::size_t max_items, ready_list& ready) noexcept;
    void return_promise(std::size_t n, queue_node_list& discarded) noexcept;
    void take_promised(std::size_t n, queue_node_list& out) noexcept;

    // The members that every push and pop uses are adjacent.
    std::size_t fast_limit_ = 0;  // the room for pushes on the fast path; 0 if it is not allowed
    std::size_t in_progress_ = 0; // items that were popped and are not done
    Store store_;
    waiter_list pushers_; // pushes and reservations; pops are in queue_
    waiter_list joiners_;
    std::size_t capacity_;
    std::size_t reserved_ = 0;
    std::size_t demand_ = 0; // pops that wait, each of which takes at least one item
    std::size_t joins_ = 0;  // the size of joiners_
    std::size_t promised_ = 0;
    std::size_t promised_to_calls_ = 0; // the part of promised_ that batches without waiter hold
    std::uint64_t dropped_ = 0;
    overflow on_full_;
    bool closed_ = false;
    bool discarded_ = false;
    bool finishing_ = false; // closed by its last sender: waiting pushes are not refused
    std::size_t senders_ = 0;
    std::size_t receivers_ = 0;
};

} // namespace turnstile::inline v0_1::detail
