// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/waiter.hpp>

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>

namespace turnstile::inline v0_1::detail {

struct item_waiter;

using item_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

// An item on its way through a queue. Items change hands as nodes: from the push into the
// store, and from the store to the pop. So nothing of the user's is moved on the way.
struct item_node : item_hook {
    union {
        item_waiter* pusher = nullptr; // that has not completed, and is told what becomes of it
        item_node* next_spare;         // of one that is not in use
    };
};

using item_list = boost::intrusive::list<item_node, boost::intrusive::constant_time_size<false>>;

inline item_node* take_front(item_list& list) noexcept
{
    item_node* n = &list.front();
    list.pop_front();
    return n;
}

// Who waits for what; of all the operations of a queue.
enum class role : unsigned char { pop, push, reserve, join };

// Where the item of a push is.
enum class whereabouts : unsigned char {
    here,              // with the push
    in_store,          // in the queue, from which a cancelled push withdraws it
    in_store_for_good, // the same, but the push has dropped another item and cannot be cancelled
    gone,              // popped, dropped or discarded: the push has succeeded
    destroyed,         // the destructor of the queue destroyed it: the push is aborted
};

struct item_waiter : waiter {
    using waiter::waiter;

    role what = role::pop;
    whereabouts where = whereabouts::here; // of the item of a push
    std::size_t most = 1;                  // items that a pop takes
    std::size_t promised = 0;              // of these, to a granted pop
    std::uint64_t turn = 0;                // of the item that has entered
    item_node* item = nullptr;             // of a push
    item_list items;                       // taken by a pop, or dropped by a push
};

} // namespace turnstile::inline v0_1::detail
