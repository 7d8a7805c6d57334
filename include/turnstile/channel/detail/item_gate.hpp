#pragma once

#include <turnstile/channel/detail/item_node.hpp>
#include <turnstile/channel/policy.hpp>
#include <turnstile/core/detail/verdict.hpp>
#include <turnstile/core/detail/wait_state.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace turnstile::detail {

// Who may push and pop, and when; all that does not depend on the items' type. The Store says
// which item is next.
//
// While there are items nobody waits to pop, and while there is room nobody waits to push. An
// item granted to a waiter, and a reservation, may both still (re)appear: until they have
// settled, a closed queue is not known to be empty.
template <class Threading, class Store>
class TURNSTILE_EXPORT item_gate : public wait_state<Threading> {
public:
    static constexpr std::size_t unbounded = std::numeric_limits<std::size_t>::max();

    // All of these take the lock.
    std::size_t size() noexcept;
    std::size_t unfinished() noexcept;
    std::uint64_t dropped() noexcept;
    bool is_closed() noexcept;
    std::size_t capacity() const noexcept { return capacity_; }

    verdict try_reserve() noexcept;
    // A reservation for a push that is certain to follow: under some policies there always is room.
    bool claim() noexcept;
    void cancel_reservation() noexcept;
    // Whether a reservation may be used: not after a discarding close.
    bool can_fill() noexcept;

    bool task_done() noexcept;
    verdict try_join() noexcept;

    // `discarded` gets what is to be destroyed.
    void close(closing how, item_list& discarded) noexcept;
    void take_items(item_list& out) noexcept;

    // A waiter is going away: whether its item is still its own, and to be freed.
    bool part_from(item_waiter& w) noexcept;

    // A granted pop has arrived; it takes what is first now, and if it may more than it was
    // granted.
    void deliver(item_waiter& w) noexcept;

    // A batch without waiting, in two steps, since there has to be memory for it in between.
    verdict take_batch(std::size_t most, item_list& out) noexcept;
    void keep_batch(std::size_t n) noexcept;
    // Leaves those that nobody wants any more.
    void give_back_batch(item_list& items) noexcept;

protected:
    template <class Executor, class... Args>
    item_gate(const Executor& executor, std::size_t capacity, overflow on_full, Args... args)
        : wait_state<Threading>(executor), store_(args...), capacity_(capacity), on_full_(on_full)
    {
        this->newcomers_serve_ = true;
    }
    ~item_gate() override = default;

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
    verdict refuse_entry() const noexcept;
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
    // Drops one item, to be destroyed later.
    void drop_one(item_list& dropped) noexcept;
    // Puts an item where a reservation was; not after a discarding close. What has to go for
    // it is to be destroyed later.
    bool accepts_fill() const noexcept { return !discarded_; }
    void fill(item_node& n, ready_list& ready, item_list& dropped) noexcept;

    // Takes the next item, for good.
    item_node* take(ready_list& ready) noexcept
    {
        if (size_ == 0)
            return take_from_pusher(ready);
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
        return remove_next();
    }
    // The same for up to `most` items.
    void take_some(std::size_t most, item_list& out, ready_list& ready) noexcept;
    // Why there was none.
    verdict explain_empty() const noexcept
    {
        return is_drained() ? verdict::refused(errc::closed) : verdict::wait();
    }

    Store& store() noexcept { return store_; }

    std::size_t size_ = 0;

private:
    bool admit(waiter& w) noexcept override;
    bool admit_among(waiter& w, ready_list& ready) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override { serve(ready); }
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;

    bool admit_pop(item_waiter& w, ready_list& ready) noexcept;
    bool admit_push(item_waiter& w, ready_list& ready) noexcept;
    bool admit_reserve(item_waiter& w) noexcept;

    bool is_drained() const noexcept
    {
        return closed_ && size_ == 0 && in_flight_ == 0 && reserved_ == 0;
    }
    item_node* remove_next() noexcept
    {
        item_node& n = store_.next();
        withdraw(n);
        return &n;
    }
    // Takes n out of the store; its push, if it is still on its way, can no longer do so.
    void withdraw(item_node& n) noexcept
    {
        store_.erase(n);
        --size_;
        if (n.pusher) [[unlikely]]
            part(n);
    }
    static void part(item_node& n) noexcept
    {
        n.pusher->where = whereabouts::taken;
        n.pusher = nullptr;
    }
    void insert(item_node& n) noexcept
    {
        n.turn = turns_++;
        store_.insert(n);
        ++size_;
        ++unfinished_;
    }
    void put_back(item_list& items) noexcept;
    void clear(item_list& out) noexcept;
    item_node* take_from_pusher(ready_list& ready) noexcept;
    void let_in(item_waiter& w) noexcept;
    void let_pushers_in(ready_list& ready) noexcept;
    // Lets go whoever may go, on either side, and those who wait for an end.
    void serve(ready_list& ready) noexcept;
    void finish(ready_list& ready) noexcept;

    Store store_;
    waiter_list pushers_; // and those who wait for a reservation; queue_ has those who pop
    waiter_list joiners_;
    std::size_t capacity_;
    std::size_t quiet_limit_ = 0; // the room while nobody waits, and no more than that; else 0
    std::size_t reserved_ = 0;
    std::size_t demand_ = 0;    // what those who wait to pop would take
    std::size_t in_flight_ = 0; // granted, and not yet delivered
    std::size_t unfinished_ = 0;
    std::size_t handed_out_ = 0; // of these, delivered
    std::uint64_t turns_ = 1;    // 0 is the turn of what never entered
    std::uint64_t dropped_ = 0;
    overflow on_full_;
    bool closed_ = false;
    bool discarded_ = false;
};

} // namespace turnstile::detail
