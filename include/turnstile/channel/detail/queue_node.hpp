// SPDX-License-Identifier: BSL-1.0
// The node of an item in a queue, and the waiter of an operation at a queue.
//
// Each item lives in a queue_node. A push makes the node, the store links it, and a pop takes it
// out, so no value is moved in between. A queue_waiter is the waiter of a push, a pop, a
// reservation or a join. Until a push has completed, its waiter and the node of its item refer to
// each other: the waiter through `item`, the node through `pusher`. All of this is guarded by the
// lock of the queue.
#pragma once

#include <turnstile/detail/wait/waiter.hpp>

#include <boost/intrusive/list.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1::detail {

struct queue_waiter;

using queue_node_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

struct queue_node : queue_node_hook {
    union {
        queue_waiter* pusher = nullptr; // the push that made the item, until it completes
        queue_node* next_spare;         // of a node in spare_queue_nodes
    };
};

using queue_node_list =
    boost::intrusive::list<queue_node, boost::intrusive::constant_time_size<false>>;

inline queue_node* take_front(queue_node_list& list) noexcept
{
    queue_node* n = &list.front();
    list.pop_front();
    return n;
}

// Refers to one item of a queue whose nodes are never freed. A node is reused for later items, so
// the sequence number shows whether it still holds the item.
struct queue_item_ref {
    queue_node* node = nullptr;
    std::uint64_t sequence = 0;
};

// A stack of unused nodes. Nodes are taken under the lock; they are added without the lock if
// Pointer is atomic.
template <class Pointer>
class spare_queue_nodes {
public:
    void put(queue_node& n) noexcept
    {
        const auto put_first = [&n](queue_node*& first) noexcept {
            n.next_spare = std::exchange(first, &n);
            return true;
        };
        first_.update(put_first, std::memory_order_release);
    }
    // The lock admits one taker at a time, so the first node cannot be taken and put back between
    // the load and the exchange.
    queue_node* take() noexcept
    {
        queue_node* n = nullptr;
        const auto take_first = [&n](queue_node*& first) noexcept {
            n = first;
            if (n)
                first = n->next_spare;
            return n != nullptr;
        };
        if (first_.update(take_first, std::memory_order_acquire))
            n->pusher = nullptr;
        return n;
    }

private:
    Pointer first_{nullptr};
};

enum class queue_operation : unsigned char { pop, push, reserve, join };

// How far the item of a push has come.
enum class push_progress : unsigned char {
    not_entered, // the push holds the item
    entered,     // the item is in the store; cancelling the push removes it
    committed,   // the item is in the store; the push has dropped another item, so it cannot be
                 // cancelled
    left,        // the item was popped, erased, dropped or discarded: the push has succeeded
    destroyed,   // the destructor of the queue destroyed the item: the push is aborted
};

struct queue_waiter : waiter {
    using waiter::waiter;

    queue_operation operation = queue_operation::pop;
    push_progress progress = push_progress::not_entered;
    std::size_t max_items = 1;  // that a pop takes, or that a reservation has places for
    std::size_t promised = 0;   // items that a granted pop will take
    std::uint64_t sequence = 0; // of the item that a push has entered
    queue_node* item = nullptr; // of a push
    queue_node_list items;      // taken by a pop, or dropped by a push
};

} // namespace turnstile::inline v0_1::detail
