// SPDX-License-Identifier: BSL-1.0
// The store of `priority_queue`: a balanced tree of the items, ordered by priority and, among
// equal priorities, by the order in which they were pushed. queue_store.hpp lists the members
// of a store.
//
// Each item has a sequence number, unique among all items that were ever pushed. It orders equal
// priorities, and a queue_item_id recognises its item by it. An id may look at the node of an item
// that has left the queue, so nodes are kept until the queue is destroyed.
#pragma once

#include <turnstile/channel/detail/queue_node.hpp>

#include <boost/intrusive/set.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Priority, class Compare, class ItemId>
class priority_queue_store {
    static_assert(std::is_nothrow_move_constructible_v<Priority> &&
                      std::is_nothrow_move_assignable_v<Priority> &&
                      std::is_nothrow_destructible_v<Priority>,
                  "priority_queue: Priority must be movable and destructible without throwing, "
                  "because priorities are moved under the lock");
    using tree_hook =
        boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

public:
    using priority_type = Priority;
    using push_result_type = ItemId;

    struct node : queue_node, tree_hook {
        node() noexcept {}
        ~node() {} // destroy_priority() has been called
        void set_priority(Priority&& p) noexcept { std::construct_at(&priority, std::move(p)); }
        void destroy_priority() noexcept { std::destroy_at(&priority); }

        const priority_queue_store* owner = nullptr; // set while the item is in a store
        std::uint64_t sequence = 0;
        union {
            Priority priority;
        };
    };
    static constexpr bool keeps_nodes = true;

    explicit priority_queue_store(Compare compare) : items_(before(std::move(compare))) {}

    bool empty() const noexcept { return items_.empty(); }
    void insert(queue_node& any) noexcept
    {
        auto& n = static_cast<node&>(any);
        n.sequence = next_sequence_++;
        link(n);
    }
    void erase(queue_node& any) noexcept
    {
        auto& n = static_cast<node&>(any);
        n.owner = nullptr;
        items_.erase(tree::s_iterator_to(n));
    }
    queue_node& next() noexcept { return *items_.begin(); }
    queue_node& drop_candidate() noexcept { return *items_.rbegin(); }
    void take_all_but(std::size_t kept, queue_node_list& out) noexcept
    {
        const auto first = std::next(items_.begin(), static_cast<std::ptrdiff_t>(kept));
        items_.erase_and_dispose(first, items_.end(), [&](node* removed) {
            removed->owner = nullptr;
            out.push_back(*removed);
        });
    }

    static std::uint64_t sequence_of(const queue_node& any) noexcept
    {
        return static_cast<const node&>(any).sequence;
    }
    // Whether the item is still in this store.
    bool holds(const queue_item_ref& item) const noexcept
    {
        return static_cast<const node&>(*item.node).owner == this &&
               sequence_of(*item.node) == item.sequence;
    }
    // Exchanges the priority of an item with `priority`. The item keeps its sequence number.
    void change_priority(queue_node& any, Priority& priority) noexcept
    {
        auto& n = static_cast<node&>(any);
        erase(n);
        std::swap(n.priority, priority);
        link(n);
    }

private:
    struct before {
        explicit before(Compare c) : compare(std::move(c)) {}
        bool operator()(const node& a, const node& b) const
        {
            if (compare(a.priority, b.priority))
                return true;
            return a.sequence < b.sequence && !compare(b.priority, a.priority);
        }
        [[no_unique_address]] Compare compare;
    };
    using tree = boost::intrusive::multiset<node, boost::intrusive::base_hook<tree_hook>,
                                            boost::intrusive::compare<before>,
                                            boost::intrusive::constant_time_size<false>>;

    void link(node& n) noexcept
    {
        n.owner = this;
        items_.insert(n);
    }

    tree items_;
    std::uint64_t next_sequence_ = 1; // 0 belongs to an item that never entered
};

} // namespace turnstile::inline v0_1::detail
