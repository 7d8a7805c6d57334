// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/channel/detail/queue_node.hpp>
#include <turnstile/channel/policy.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1::detail {

// Who may push and pop, and when; all that does not depend on the items' type. The Store says
// which item is next.
//
// While there are items nobody waits to pop, and while there is room nobody waits to push.
//
// A granted pop has been promised an item, but which one it gets is seen when it is delivered:
// whichever is next. Until then all items stay in the store, in order, so whoever is cancelled
// on the way has moved nothing. A promise may be given back, and a reservation filled: until
// they have settled, a closed queue is not known to be empty.
template <class Threading, class Store>
class TURNSTILE_EXPORT queue_state : public wait_state<Threading> {
public:
    // All of these take the lock.
    std::size_t size() noexcept { return read(size_); }
    std::size_t unfinished() noexcept
    {
        return this->guarded([&] { return unfinished_locked(); });
    }
    std::uint64_t dropped() noexcept { return read(dropped_); }
    bool is_closed() noexcept { return read(closed_); }
    std::size_t capacity() const noexcept { return capacity_; }

    wait_decision try_reserve() noexcept
    {
        return this->guarded([&] { return reserve_locked(); });
    }
    // A reservation for a push that is certain to follow: under some policies there always is room.
    wait_decision enter() noexcept;
    void cancel_reservation() noexcept;
    // Whether a reservation may be used: not after a discarding close.
    bool can_fill() noexcept { return !read(discarded_); }

    bool task_done() noexcept;
    wait_decision try_join() noexcept
    {
        return unfinished() == 0 ? wait_decision::granted() : wait_decision::pending();
    }

    // `discarded` gets what is to be destroyed.
    void close(closing how, item_list& discarded) noexcept;

    // A waiter is going away: whether its item is still its own, and to be freed.
    bool part_from(item_waiter& w) noexcept;

    // A granted pop has arrived; it takes what is first now, and if it may more than it was
    // promised. Returns false if the queue was destroyed first, which breaks the promise.
    [[nodiscard]] bool deliver(item_waiter& w) noexcept;

    // A batch without waiting, in two steps, since there has to be memory for it in between.
    wait_decision promise_batch(std::size_t most, std::size_t& n) noexcept;
    void take_batch(std::size_t n, item_list& out) noexcept;
    // Or it is not taken; `discarded` gets what is to be destroyed.
    void give_back_batch(std::size_t n, item_list& discarded) noexcept;

protected:
    template <class Executor, class... Args>
    queue_state(const Executor& executor, std::size_t capacity, overflow on_full, Args... args)
        : wait_state<Threading>(executor), store_(args...), capacity_(capacity), on_full_(on_full)
    {
        this->arrivals_grant_others_ = true;
    }
    ~queue_state() override = default;

    // The rest is called under the lock.

    // Nobody is before a push, and there is room for its item.
    bool has_room() const noexcept
    {
        const std::size_t used = size_ + reserved_;
        return used < capacity_ || used - capacity_ < demand_;
    }
    bool may_enter() const noexcept { return pushers_.empty() && has_room() && !closed_; }
    // What becomes of a push that may not enter; if granted, it enters all the same, and
    // something is dropped.
    wait_decision refuse_entry() const noexcept;
    // Whether that something is the new item itself.
    bool drops_newest() const noexcept { return on_full_ == overflow::drop_newest; }
    void count_drop() noexcept { ++dropped_; }

    // Whether nobody waits, so that neither does this let anybody go.
    bool may_enter_quietly() const noexcept { return size_ < quiet_limit_; }
    void enter_quietly(item_node& n) noexcept { insert(n); }
    // To be called after anything else.
    void look_for_quiet() noexcept
    {
        const bool quiet = this->queue_.empty() && pushers_.empty() && !closed_;
        quiet_limit_ = quiet && reserved_ < capacity_ ? capacity_ - reserved_ : 0;
    }
    void enter(item_node& n, ready_list& ready) noexcept
    {
        insert(n);
        if (!this->queue_.empty())
            serve(ready);
    }
    // After an item has entered a full queue: drops one, to be destroyed later, unless somebody
    // was waiting for it.
    void drop_one(item_list& dropped) noexcept;
    // Puts an item where a reservation was. What has to go for it, or itself after a discarding
    // close, is to be destroyed later.
    bool accepts_fill() const noexcept { return !discarded_; }
    void fill(item_node& n, ready_list& ready, item_list& dropped) noexcept;

    // Takes the next item, for good.
    item_node* take(ready_list& ready) noexcept
    {
        if (size_ == 0 && !draw_from_pusher(ready))
            return nullptr;
        item_node* n = take_quietly();
        if (!pushers_.empty())
            serve(ready);
        return n;
    }
    // The same where it lets nobody go.
    bool may_take_quietly() const noexcept { return size_ != 0 && quiet_limit_ != 0; }
    item_node* take_quietly() noexcept
    {
        ++handed_out_;
        --size_;
        return remove_next();
    }
    // Takes an item out of the line, which is done with it; null if all that there are have been
    // promised.
    item_node* take_out(item_node& n, ready_list& ready) noexcept;
    // Why there was none.
    wait_decision explain_empty() const noexcept
    {
        return is_drained() ? wait_decision::refused(errc::closed) : wait_decision::pending();
    }

    // Takes out all that is promised to nobody, to be destroyed. `where` is what becomes of those
    // whose push is still on its way.
    void clear(item_list& out, whereabouts where) noexcept;
    // The queue is being destroyed: every waiter is aborted, and so is every granted pop that has
    // not taken its items, and every push on its way whose item goes to `discarded`.
    void end(item_list& discarded) noexcept;

    Store& store() noexcept { return store_; }

    std::size_t size_ = 0; // of the store, without what is promised

private:
    template <class T>
    T read(const T& value) noexcept
    {
        return this->guarded([&] { return value; });
    }

    bool admit(waiter& w) noexcept override;
    bool admit_and_grant(waiter& w, ready_list& ready) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override { serve(ready); }
    void take_back(waiter& w, ready_list& ready) noexcept override;
    bool outlives_object(const waiter& w) const noexcept override;
    void take_all(waiter_list& out) noexcept override;

    bool admit_pop(item_waiter& w, ready_list& ready) noexcept;
    bool admit_push(item_waiter& w, ready_list& ready) noexcept;
    bool admit_reserve(item_waiter& w) noexcept;
    wait_decision reserve_locked() noexcept;

    bool is_drained() const noexcept
    {
        return closed_ && size_ == 0 && (discarded_ || (promised_ == 0 && reserved_ == 0));
    }
    // The following leave it to the caller to count.
    item_node* remove_next() noexcept
    {
        item_node& n = store_.next();
        withdraw(n);
        return &n;
    }
    void remove_some(std::size_t n, item_list& out) noexcept
    {
        for (; n != 0; --n)
            out.push_back(*remove_next());
    }
    // Takes n out of the store, from which its push, if it is still on its way, cannot withdraw
    // it any more.
    void withdraw(item_node& n) noexcept
    {
        store_.erase(n);
        if (n.pusher) [[unlikely]]
            part(n);
    }
    static void part(item_node& n, whereabouts where = whereabouts::gone) noexcept
    {
        n.pusher->where = where;
        n.pusher = nullptr;
    }
    void insert(item_node& n) noexcept
    {
        store_.insert(n);
        ++size_;
    }
    std::size_t unfinished_locked() const noexcept { return size_ + promised_ + handed_out_; }
    // Promises up to `most` items, and says how many.
    std::size_t promise(std::size_t most) noexcept
    {
        const std::size_t n = most < size_ ? most : size_;
        size_ -= n;
        promised_ += n;
        return n;
    }
    // The same for somebody who need not wait, and who lets those go who wait to push.
    std::size_t promise_at_once(std::size_t most, ready_list& ready) noexcept;
    // `discarded` gets what is to be destroyed.
    void take_back_promise(std::size_t n, item_list& discarded) noexcept;
    void take_promised(std::size_t n, item_list& out) noexcept;
    void enter_and_drop(item_waiter& w, ready_list& ready) noexcept;
    // Items that are pushed where there is no room for any change hands directly: whether one
    // is there now.
    bool draw_from_pusher(ready_list& ready) noexcept;
    void let_in(item_waiter& w) noexcept;
    void let_pushers_in(ready_list& ready) noexcept;
    // Lets go whoever may go, on either side, and those who wait for an end.
    void serve(ready_list& ready) noexcept;
    void after_change(ready_list& ready) noexcept;

    // What every push and pop touches is side by side.
    std::size_t quiet_limit_ = 0; // the room while nobody waits, and no more than that; else 0
    std::size_t handed_out_ = 0;  // delivered, and not done
    Store store_;
    waiter_list pushers_; // and those who wait for a reservation; queue_ has those who pop
    waiter_list joiners_;
    std::size_t capacity_;
    std::size_t reserved_ = 0;
    std::size_t demand_ = 0;   // those who wait to pop, and take one at least
    std::size_t promised_ = 0; // items that are in the store for granted pops and for calls
    std::size_t promised_to_calls_ = 0; // of these, for batches that are being taken now
    std::uint64_t dropped_ = 0;
    overflow on_full_;
    bool closed_ = false;
    bool discarded_ = false;
};

} // namespace turnstile::inline v0_1::detail
