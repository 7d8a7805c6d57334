#pragma once

#include <turnstile/core/detail/waiter.hpp>

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>

namespace turnstile::detail {

struct item_waiter;

using item_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

// An item on its way through a queue. Items change hands as nodes: from the push into the
// store, and to whoever pops. So nothing of the user's is moved on the way, and nothing has to be
// allocated to put back what a cancelled push had displaced.
struct item_node : item_hook {
    std::uint64_t turn = 0; // its place among all that were pushed
    union {
        item_waiter* pusher = nullptr; // whose handler has not run yet: it may be withdrawn
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
enum class whereabouts : unsigned char { here, in_store, taken };

struct item_waiter : waiter {
    using waiter::waiter;

    role what = role::pop;
    whereabouts where = whereabouts::here; // of the item of a push
    std::size_t most = 1;                  // items that a pop takes
    std::size_t promised = 0;              // of these, to a granted pop
    std::uint64_t turn = 0;                // of the item that has entered
    item_node* item = nullptr;             // of a push
    item_list items; // that a pop has taken; or a push has displaced, until its handler runs
};

} // namespace turnstile::detail
