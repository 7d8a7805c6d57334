// SPDX-License-Identifier: BSL-1.0
// The store of `queue`: a list of the items in the order in which they entered.
//
// A store holds the items of a queue and decides which one is popped next. queue_state calls it
// under the lock. Every store has
// - priority_type: pushed with each value; an empty type if there are no priorities,
// - push_result_type: the result of a successful push, or void,
// - node: a queue_node with set_priority() and destroy_priority(),
// - keeps_nodes: whether no node may be freed before the queue is destroyed,
// and the member functions below. The other store is priority_queue_store.
#pragma once

#include <turnstile/channel/detail/queue_node.hpp>
#include <turnstile/channel/queue_policy.hpp>
#include <turnstile/core/export.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace turnstile::inline v0_1::detail {

class TURNSTILE_EXPORT queue_store {
public:
    struct priority_type {};
    using push_result_type = void;
    struct node : queue_node {
        void set_priority(priority_type&&) noexcept {}
        void destroy_priority() noexcept {}
    };
    static constexpr bool keeps_nodes = false;

    explicit queue_store(queue_order order) noexcept : newest_first_(order == queue_order::lifo) {}

    bool empty() const noexcept { return items_.empty(); }
    void insert(queue_node& n) noexcept { items_.push_back(n); }
    void erase(queue_node& n) noexcept { items_.erase(queue_node_list::s_iterator_to(n)); }
    // Distinguishes an item from later items in the same node, if a push returns an id.
    static std::uint64_t sequence_of(const queue_node&) noexcept { return 0; }

    // The item that is popped next.
    queue_node& next() noexcept { return newest_first_ ? items_.back() : items_.front(); }
    // The item that is dropped if the queue is too full.
    queue_node& drop_candidate() noexcept { return items_.front(); }

    // Moves all items to `out`, except the `kept` items that are popped next.
    void take_all_but(std::size_t kept, queue_node_list& out) noexcept
    {
        const auto n = static_cast<std::ptrdiff_t>(kept);
        if (newest_first_)
            out.splice(out.end(), items_, items_.begin(), std::prev(items_.end(), n));
        else
            out.splice(out.end(), items_, std::next(items_.begin(), n), items_.end());
    }

private:
    bool newest_first_;
    queue_node_list items_;
};

} // namespace turnstile::inline v0_1::detail
