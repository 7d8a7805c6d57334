// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/channel/detail/queue_node.hpp>
#include <turnstile/channel/policy.hpp>
#include <turnstile/core/export.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace turnstile::inline v0_1::detail {

// The items of a queue, in the order they came; served from either end.
//
// A store has a node type, a `label` that is pushed with each value, and the functions below,
// all called under the lock.
class TURNSTILE_EXPORT list_store {
public:
    struct label {};
    using receipt = void; // what a push gives
    struct node : item_node {
        void name(label&&) noexcept {}
        void forget() noexcept {}
    };
    // Whether nodes must stay where they are for as long as the queue lives.
    static constexpr bool keeps_nodes = false;

    explicit list_store(order o) noexcept : newest_first_(o == order::lifo) {}

    bool empty() const noexcept { return items_.empty(); }
    void insert(item_node& n) noexcept { items_.push_back(n); }
    void erase(item_node& n) noexcept { items_.erase(item_list::s_iterator_to(n)); }
    // Tells an item from later ones in the same node, where a push gives a handle.
    static std::uint64_t turn_of(const item_node&) noexcept { return 0; }

    // The next to be served; the one to be dropped when there are too many.
    item_node& next() noexcept { return newest_first_ ? items_.back() : items_.front(); }
    item_node& surplus() noexcept { return items_.front(); }

    // Takes all but the next n.
    void take_rest(std::size_t n, item_list& out) noexcept
    {
        const auto kept = static_cast<std::ptrdiff_t>(n);
        if (newest_first_)
            out.splice(out.end(), items_, items_.begin(), std::prev(items_.end(), kept));
        else
            out.splice(out.end(), items_, std::next(items_.begin(), kept), items_.end());
    }

private:
    bool newest_first_;
    item_list items_;
};

} // namespace turnstile::inline v0_1::detail
