// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/channel/detail/value_node.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace turnstile::inline v0_1::detail {

// A receiver's place in the stream of values; guarded by the lock. Values are numbered from
// 0 in the order in which they were sent.
struct broadcast_seat : waiter_hook {
    std::uint64_t next = 0;    // the first value it has not been given
    std::uint64_t granted = 0; // receives on their way, each of which will take one
    bool gone = false;         // the receiver is; those on their way are the last to know
    waiter_list waiting;
};

struct receive_waiter : waiter {
    using waiter::waiter;
    broadcast_seat* seat = nullptr;
};

// A ring of the latest values, and the receivers' places in it.
//
// A granted receive has reserved a value, but which one it gets is seen when it is
// delivered: the oldest that its receiver has not had and that is still there. So whoever is
// cancelled on the way has moved nothing. A receiver has reserved at most as many as there
// are for it in the ring, so those that are displaced meanwhile leave enough.
template <class Threading>
class TURNSTILE_EXPORT broadcast_state final : public wait_state<Threading> {
public:
    using threading_policy = Threading;
    using node = node_ptr<Threading>;

    // A value, and how many the receiver has missed before it.
    struct received {
        node value;
        std::uint64_t missed = 0;
    };

    // Throws if the capacity is 0.
    template <class Executor>
    broadcast_state(const Executor& executor, std::size_t capacity)
        : wait_state<Threading>(executor), ring_(checked(capacity))
    {
    }

    std::size_t capacity() const noexcept { return ring_.size(); }
    std::size_t receivers() const noexcept { return receivers_.load(std::memory_order_acquire); }
    bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }

    // The sending side. The value comes in `n`, which takes the one that it displaces;
    // false, with no change, if it is closed.
    bool send(node& n, std::size_t& reached) noexcept;
    void close() noexcept;
    // The sending object is being destroyed.
    void abandon_stream() noexcept;

    // A receiver comes, with a place it has brought along, and goes.
    void join(broadcast_seat& seat) noexcept;
    void leave(broadcast_seat* seat) noexcept;

    // How many values are there for a receiver, not counting what is reserved.
    std::uint64_t available(broadcast_seat& seat) noexcept;
    // Reserves a value.
    wait_decision reserve(broadcast_seat& seat) noexcept;
    // Undoes that.
    void give_back(broadcast_seat& seat) noexcept;
    // Takes what was reserved; false if there is nobody to take it any more.
    bool take_reserved(broadcast_seat& seat, received& out) noexcept;

private:
    static std::size_t checked(std::size_t capacity);

    std::uint64_t unreserved(const broadcast_seat& seat) const noexcept;
    // Grants in order to the waiting receives of one receiver what is there for them.
    void serve(broadcast_seat& seat, ready_list& ready) noexcept;
    wait_decision reserve_locked(broadcast_seat& seat) noexcept;
    void unreserve(broadcast_seat& seat, ready_list& ready) noexcept;
    // Whether nothing is left for a receiver, and nothing can be given back.
    bool is_drained(const broadcast_seat& seat) const noexcept
    {
        return is_closed() && (abandoned_ || (seat.granted == 0 && unreserved(seat) == 0));
    }
    void end_if_drained(broadcast_seat& seat, ready_list& ready) noexcept;
    // f may unlink the seat.
    template <class F>
    void for_each_waiting(F f) noexcept
    {
        for (auto it = waiting_.begin(); it != waiting_.end();)
            f(*it++);
    }
    template <class Decide>
    void decide_waiting(broadcast_seat& seat, ready_list& ready, Decide decide) noexcept;

    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list&) noexcept override {}
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;

    using seat_list =
        boost::intrusive::list<broadcast_seat, boost::intrusive::constant_time_size<false>>;

    std::vector<node> ring_; // value i is at i % capacity
    std::uint64_t sent_ = 0;
    seat_list waiting_; // those with a receive that waits
    bool abandoned_ = false;
    policy_atomic<Threading, std::size_t> receivers_{0};
    policy_atomic<Threading, bool> closed_{false};
};

extern template class broadcast_state<thread_safe>;
extern template class broadcast_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
