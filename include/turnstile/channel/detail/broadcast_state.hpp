// SPDX-License-Identifier: BSL-1.0
// The state of a broadcast: a ring of the latest values, and a subscription for each receiver.
// basic_broadcast and its receivers share it.
//
// Values are numbered from 0 in the order in which they were sent; value i is in slot
// i % capacity of the ring. A granted receive has only reserved a value. Which value it gets is
// decided when it completes: the oldest one in the ring that its receiver has not received. A
// receive that is cancelled in between therefore changes nothing.
//
// Invariant: a subscription has reserved at most as many values as the ring holds for it, so the
// values that are displaced meanwhile leave enough.
#pragma once

#include <turnstile/channel/detail/shared_value_node.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace turnstile::inline v0_1::detail {

// The position of a receiver and its waiting receives; guarded by the lock.
struct broadcast_subscription : waiter_hook {
    std::uint64_t next = 0;     // the first value that the receiver has not received
    std::uint64_t reserved = 0; // granted receives that have not completed
    bool receiver_gone = false; // the last granted receive then deletes the subscription
    waiter_list receives;       // the waiting ones
    std::size_t waiting = 0;    // the size of `receives`
};

struct broadcast_waiter : waiter {
    using waiter::waiter;
    broadcast_subscription* subscription = nullptr;
};

template <class Threading>
class TURNSTILE_EXPORT broadcast_state final : public wait_state<Threading> {
public:
    using threading_policy = Threading;
    using node = node_ptr<Threading>;

    struct received {
        node value;
        std::uint64_t missed = 0; // values before this one that were displaced
    };

    template <class Executor>
    broadcast_state(const Executor& executor, std::size_t capacity)
        : wait_state<Threading>(executor), ring_(capacity)
    {
    }

    std::size_t capacity() const noexcept { return ring_.size(); }
    std::size_t receivers() const noexcept { return receivers_.load(std::memory_order_acquire); }
    bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }

    // Sends the value in n, and leaves the value that it displaces in n. Returns false, and changes
    // nothing, if the broadcast is closed.
    bool send(node& n, std::size_t& receivers_reached) noexcept;
    void close() noexcept;
    // The broadcast is being destroyed: if it is not closed, drops the values that are left, and
    // aborts the receives.
    void abandon_stream() noexcept;

    // A receiver is made, and destroyed. The state deletes the subscription.
    void add_subscription(broadcast_subscription& s) noexcept;
    void remove_subscription(broadcast_subscription* s) noexcept;

    // The number of values that can be reserved.
    std::uint64_t available(broadcast_subscription& s) noexcept;
    std::size_t waiting_receives(const broadcast_subscription& s) noexcept;
    wait_decision reserve(broadcast_subscription& s) noexcept;
    void give_back(broadcast_subscription& s) noexcept;
    // Takes a reserved value. Returns false if the broadcast or the receiver was destroyed.
    bool take_reserved(broadcast_subscription& s, received& out) noexcept;

private:
    // All of these are called under the lock.

    std::uint64_t unreserved(const broadcast_subscription& s) const noexcept;
    // Grants waiting receives of one receiver, in order, while values are available.
    void grant_receives(broadcast_subscription& s, ready_list& ready) noexcept;
    wait_decision reserve_locked(broadcast_subscription& s) noexcept;
    void unreserve(broadcast_subscription& s, ready_list& ready) noexcept;
    // Whether no value is left for a receiver, and none can be given back.
    bool is_drained(const broadcast_subscription& s) const noexcept
    {
        return is_closed() && (abandoned_ || (s.reserved == 0 && unreserved(s) == 0));
    }
    // Fails the waiting receives of a receiver for which no value is left.
    void end_if_drained(broadcast_subscription& s, ready_list& ready) noexcept;
    // f may unlink the subscription.
    template <class F>
    void for_each_waiting(F f) noexcept
    {
        for (auto it = waiting_subscriptions_.begin(); it != waiting_subscriptions_.end();)
            f(*it++);
    }
    template <class Decide>
    void decide_receives(broadcast_subscription& s, ready_list& ready, Decide decide) noexcept;

    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list&) noexcept override {}
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;

    using subscription_list =
        boost::intrusive::list<broadcast_subscription, boost::intrusive::constant_time_size<false>>;

    std::vector<node> ring_;
    std::uint64_t sent_ = 0;
    subscription_list waiting_subscriptions_; // subscriptions with a waiting receive
    bool abandoned_ = false;                  // the broadcast was destroyed before it was closed
    policy_atomic<Threading, std::size_t> receivers_{0};
    policy_atomic<Threading, bool> closed_{false};
};

extern template class broadcast_state<thread_safe>;
extern template class broadcast_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
