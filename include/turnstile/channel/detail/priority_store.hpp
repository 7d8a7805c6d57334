// SPDX-License-Identifier: BSL-1.0
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

struct item_ticket;

// The items of a priority_queue: a balanced tree of the nodes, by priority and, among equals,
// by turn. What it offers is described in list_store.hpp.
template <class Priority, class Compare, class Handle>
class priority_store {
    static_assert(std::is_nothrow_move_constructible_v<Priority> &&
                      std::is_nothrow_move_assignable_v<Priority> &&
                      std::is_nothrow_destructible_v<Priority>,
                  "a priority is moved under the lock, where nothing may throw");
    using tree_hook =
        boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

public:
    using label = Priority;
    using receipt = Handle;

    struct node : item_node, tree_hook {
        node() noexcept {}
        ~node() {} // forget() has been called
        void name(label&& l) noexcept { std::construct_at(&priority, std::move(l)); }
        void forget() noexcept { std::destroy_at(&priority); }

        const priority_store* home = nullptr; // while it is in the store
        std::uint64_t turn = 0;               // its place among all that were pushed
        union {
            Priority priority;
        };
    };
    // A handle may look at the node of an item that is gone.
    static constexpr bool keeps_nodes = true;

    explicit priority_store(Compare compare) : items_(before(std::move(compare))) {}

    bool empty() const noexcept { return items_.empty(); }
    void insert(item_node& any) noexcept
    {
        auto& n = static_cast<node&>(any);
        n.turn = turns_++;
        link(n);
    }
    void erase(item_node& any) noexcept
    {
        auto& n = static_cast<node&>(any);
        n.home = nullptr;
        items_.erase(tree::s_iterator_to(n));
    }
    item_node& next() noexcept { return *items_.begin(); }
    item_node& surplus() noexcept { return *items_.rbegin(); }
    void take_rest(std::size_t n, item_list& out) noexcept
    {
        const auto first = std::next(items_.begin(), static_cast<std::ptrdiff_t>(n));
        items_.erase_and_dispose(first, items_.end(), [&](node* gone) {
            gone->home = nullptr;
            out.push_back(*gone);
        });
    }

    static std::uint64_t turn_of(const item_node& any) noexcept
    {
        return static_cast<const node&>(any).turn;
    }
    // Whether the item that had this turn is still here.
    bool holds(const item_node& any, std::uint64_t turn) const noexcept
    {
        return static_cast<const node&>(any).home == this && turn_of(any) == turn;
    }
    // Gives an item another priority; `priority` has the old one then.
    void change(item_node& any, Priority& priority) noexcept
    {
        auto& n = static_cast<node&>(any);
        erase(n);
        std::swap(n.priority, priority);
        link(n); // with its old turn
    }

private:
    struct before {
        explicit before(Compare c) : compare(std::move(c)) {}
        bool operator()(const node& a, const node& b) const
        {
            if (compare(a.priority, b.priority))
                return true;
            return a.turn < b.turn && !compare(b.priority, a.priority);
        }
        [[no_unique_address]] Compare compare;
    };
    using tree = boost::intrusive::multiset<node, boost::intrusive::base_hook<tree_hook>,
                                            boost::intrusive::compare<before>,
                                            boost::intrusive::constant_time_size<false>>;

    void link(node& n) noexcept
    {
        n.home = this;
        items_.insert(n);
    }

    tree items_;
    std::uint64_t turns_ = 1; // 0 is the turn of an item that never entered
};

} // namespace turnstile::inline v0_1::detail
