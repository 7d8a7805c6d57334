// SPDX-License-Identifier: BSL-1.0
// A key_table that shares the ownership of its nodes, for objects that forget their idle keys:
// keyed_rate_limiter and keyed_circuit_breaker. It is used under the lock of a state. search() and
// purge() take that lock themselves, for a short time each; in between they copy, compare and
// destroy keys, so that code of the user may throw, and may use the object.
//
// Invariant: a node that something besides the table refers to is not removed.
#pragma once

#include <turnstile/detail/util/key_table.hpp>
#include <turnstile/detail/util/synchronization.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A node with a reference count. The table has one reference.
template <class Threading>
class shared_key_node : public key_table_node {
public:
    using key_table_node::key_table_node;
    shared_key_node(const shared_key_node&) = delete;
    shared_key_node& operator=(const shared_key_node&) = delete;

    bool is_shared() const noexcept { return references_.load(std::memory_order_acquire) > 1; }

    friend void intrusive_ptr_add_ref(shared_key_node* node) noexcept
    {
        node->references_.fetch_add(1, std::memory_order_relaxed);
    }
    friend void intrusive_ptr_release(shared_key_node* node) noexcept
    {
        if (node->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete node;
    }

protected:
    virtual ~shared_key_node() = default;

private:
    policy_atomic<Threading, std::size_t> references_{0};
};

// Node derives from shared_key_node.
template <class Node>
class shared_key_table {
public:
    using node_ptr = boost::intrusive_ptr<Node>;

    // Nodes that were removed from the table, to be destroyed without the lock.
    struct removed_nodes {
        std::array<node_ptr, 32> nodes;
        std::size_t size = 0;
    };

    shared_key_table() = default;
    ~shared_key_table() { clear(); }
    shared_key_table(const shared_key_table&) = delete;
    shared_key_table& operator=(const shared_key_table&) = delete;

    std::size_t size() const noexcept { return nodes_.size(); }

    template <class F>
    void for_each(F f) noexcept
    {
        nodes_.for_each(f);
    }
    // Removes all nodes. Without the lock, because keys are destroyed.
    void clear() noexcept
    {
        nodes_.clear([](Node* n) { intrusive_ptr_release(n); });
    }

    // Without the lock: returns the node of a key. If there is none, adds the node that make()
    // returns, or returns null if that is null. guarded(f) returns f(), called under the lock.
    // is_key(node) compares the key; a reference keeps the node meanwhile. Under the lock,
    // prepare(node) is called for the new node, and a few places of the table are examined for idle
    // nodes; see remove_some().
    template <class Guarded, class IsKey, class Make, class Prepare, class IsIdle>
    node_ptr search(Guarded guarded, std::size_t hash, IsKey is_key, Make make, Prepare prepare,
                    IsIdle is_idle)
    {
        removed_nodes removed;
        typename key_table<Node>::storage storage;
        node_ptr made;
        for (std::uint64_t seen = 0;;) {
            std::size_t storage_needed = 0;
            const node_ptr found = guarded([&]() -> node_ptr {
                if (node_ptr next = nodes_.next(hash, seen); next || !made)
                    return next;
                if (nodes_.storage_needed() > storage.size) {
                    storage_needed = nodes_.storage_needed();
                    return nullptr;
                }
                if (nodes_.storage_needed() != 0)
                    nodes_.grow(storage);
                prepare(*made);
                nodes_.insert(*node_ptr(made).detach());
                remove_some(is_idle, removed);
                return made;
            });
            if (found && (found == made || is_key(*found)))
                return found;
            if (found)
                seen = found->number;
            else if (made)
                storage = key_table<Node>::make_storage(storage_needed);
            else if (made = make(); !made)
                return nullptr;
        }
    }

    // Without the lock: removes all idle nodes; returns their number. The lock is released from
    // time to time.
    template <class Guarded, class IsIdle>
    std::size_t purge(Guarded guarded, IsIdle is_idle) noexcept
    {
        std::size_t removed = 0;
        std::size_t position = 0;
        bool more = true;
        while (more) {
            removed_nodes some;
            guarded([&] {
                for (int i = 0; i != 256 && position < nodes_.places(); ++i, ++position) {
                    if (!remove_idle_at(position, is_idle, some))
                        break;
                }
                more = position < nodes_.places();
            });
            removed += some.size;
        }
        return removed;
    }

private:
    // Examines the next places of the table: more than one for each new key, so that all places are
    // examined before the table has doubled.
    template <class IsIdle>
    void remove_some(IsIdle& is_idle, removed_nodes& out) noexcept
    {
        for (int i = 0; i != 3; ++i, ++cursor_) {
            if (cursor_ >= nodes_.places())
                cursor_ = 0;
            if (!remove_idle_at(cursor_, is_idle, out))
                return;
        }
    }

    // Removes the nodes in one place of the table that nothing else refers to and for which
    // is_idle(node) is true. Returns false if `out` is full.
    template <class IsIdle>
    bool remove_idle_at(std::size_t position, IsIdle& is_idle, removed_nodes& out) noexcept
    {
        return nodes_.for_each_at(position, [&](Node& n) {
            if (n.is_shared())
                return true;
            if (out.size == out.nodes.size())
                return false;
            if (!is_idle(n))
                return true;
            nodes_.erase(n);
            out.nodes[out.size++] = node_ptr(&n, false);
            return true;
        });
    }

    key_table<Node> nodes_;
    std::size_t cursor_ = 0;
};

} // namespace turnstile::inline v0_1::detail
