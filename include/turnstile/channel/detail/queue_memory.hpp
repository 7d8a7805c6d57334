// SPDX-License-Identifier: BSL-1.0
// The values of a queue and the memory they are in. typed_queue_state derives from queue_memory and
// adds the operations.
//
// A value is stored in a node. Nodes are reused: an unused node goes to a stack, `spare_`. A queue
// that has many more nodes than items frees two nodes for each one that it reuses, so its memory
// shrinks gradually. No value is destroyed under the lock; a value is moved under the lock only if
// its move cannot throw, and is kept on the heap otherwise.
#pragma once

#include <turnstile/channel/detail/queue_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class T, class Threading, class Store>
class queue_memory : public queue_state<Threading, Store> {
public:
    // The form in which a value is moved under the lock, where nothing may throw.
    using stored_type = std::conditional_t<moves_safely<T>, T, std::unique_ptr<T>>;
    using priority_type = typename Store::priority_type;

    static stored_type to_stored(T&& value)
    {
        if constexpr (moves_safely<T>)
            return std::move(value);
        else
            return std::make_unique<T>(std::move(value));
    }

    // Makes the item of a push that waits. If this throws, `value` has not been moved from.
    queue_node* make_item(priority_type& priority, stored_type& value)
    {
        node* n = acquire_node();
        n->fill(priority, value);
        return n;
    }

    // Calls out(value) for each item, then frees the items. If a call throws, the remaining values
    // are destroyed.
    template <class Out>
    void move_values(queue_node_list& items, Out out)
    {
        struct guard {
            queue_memory& memory;
            queue_node_list& items;
            ~guard() { memory.free(items); }
        } frees{*this, items};
        for (queue_node& n : items)
            out(std::move(static_cast<node&>(n).value));
    }

    // Destroys the items and keeps their nodes, or some of them, for reuse.
    void free(queue_node_list& items) noexcept
    {
        if (items.empty())
            return;
        for (queue_node& n : items)
            static_cast<node&>(n).clear();
        std::size_t count = 0;
        const bool surplus = this->guarded([&] {
            for (; !items.empty(); ++count)
                spare_.put(*take_front(items));
            return has_surplus();
        });
        if (surplus)
            free_surplus(2 * count);
    }

protected:
    struct node : Store::node {
        node() noexcept {}
        ~node() {} // clear() has been called

        void fill(priority_type& p, stored_type& v) noexcept
        {
            this->set_priority(std::move(p));
            std::construct_at(&value, std::move(v));
        }
        void clear() noexcept
        {
            std::destroy_at(&value);
            this->destroy_priority();
        }

        union {
            stored_type value;
        };
    };

    using queue_state<Threading, Store>::queue_state;
    ~queue_memory() override
    {
        queue_node_list rest;
        this->remove_unpromised(rest, push_progress::left);
        free(rest);
        while (queue_node* n = spare_.take())
            delete static_cast<node*>(n);
    }

    // If destroying an item does nothing, its node is reused within the same critical section.
    static constexpr bool is_trivial = std::is_trivially_destructible_v<stored_type> &&
                                       std::is_trivially_destructible_v<priority_type>;

    node* acquire_node()
    {
        auto* n = static_cast<node*>(this->guarded([&] {
            queue_node* spare = spare_.take();
            nodes_ += spare ? 0 : 1;
            return spare;
        }));
        if (n)
            return n;
        try {
            return new node;
        } catch (...) {
            this->guarded([&] { --nodes_; });
            throw;
        }
    }
    // Under the lock: null if no unused node is left.
    node* take_spare() noexcept { return static_cast<node*>(spare_.take()); }
    // Keeps a node that has no value, or does nothing if n is null.
    void recycle_node(node* n) noexcept
    {
        if (n)
            this->guarded([&] { spare_.put(*n); });
    }
    struct node_guard {
        queue_memory& memory;
        node* n;
        ~node_guard() { memory.recycle_node(n); }
    };

    // Moves the value of a node to `out` and recycles the node: take_value_locked() under the lock,
    // then take_value() without it.
    void take_value_locked(node& n, std::optional<stored_type>& out) noexcept
    {
        if constexpr (is_trivial) {
            out.emplace(std::move(n.value));
            spare_.put(n);
        }
    }
    void take_value(node& n, std::optional<stored_type>& out, bool surplus) noexcept
    {
        if constexpr (!is_trivial) {
            out.emplace(std::move(n.value));
            n.clear();
            spare_.put(n);
        }
        if (surplus) [[unlikely]]
            free_surplus(2);
    }

    // Under the lock: whether there are many more nodes than items.
    bool has_surplus() const noexcept
    {
        return !Store::keeps_nodes && nodes_ > min_nodes && nodes_ / 2 > this->size_;
    }

private:
    using node_pointer = std::conditional_t<is_trivial, confined_atomic<queue_node*>,
                                            policy_atomic<Threading, queue_node*>>;
    static constexpr std::size_t min_nodes = 256; // that are not freed

    TURNSTILE_COLD void free_surplus(std::size_t max_nodes) noexcept
    {
        for (; max_nodes != 0; --max_nodes) {
            queue_node* spare = this->guarded([&] {
                queue_node* s = has_surplus() ? spare_.take() : nullptr;
                nodes_ -= s ? 1 : 0;
                return s;
            });
            if (!spare)
                return;
            delete static_cast<node*>(spare);
        }
    }

    spare_queue_nodes<node_pointer> spare_;
    std::size_t nodes_ = 0; // used and unused; guarded by the lock
};

} // namespace turnstile::inline v0_1::detail
