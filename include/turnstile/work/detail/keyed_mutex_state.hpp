// SPDX-License-Identifier: BSL-1.0
// The state of keyed_mutex, as far as it does not depend on the type of the key: a table with a
// node for each key that is in use, and in each node a FIFO of the operations that wait for its
// lock. One lock guards all of them.
//
// A node is in the table while it is pinned: by an operation that has found it, or by a handle.
// So the two of them always refer to the same node for the same key, and the last one that unpins
// the node removes it. Keys are compared and destroyed without the lock, because that is user code.
//
// An operation may lock several keys. It locks their nodes one after the other, in the order of
// their numbers. All of them are pinned before the first is locked, so two operations with common
// keys agree on the order, and cannot wait for each other.
//
// Invariants: a node that is not locked has no waiters. A waiter is queued at the first of its
// nodes that it has not locked. `locked_` is the number of locked nodes; each of them is locked by
// a handle or by a waiter.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/util/key_table.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace turnstile::inline v0_1::detail {

// The lock of one key. All members are guarded by the lock of the state, except `hash`.
class keyed_mutex_node : public key_table_node {
public:
    using key_table_node::key_table_node;
    keyed_mutex_node(const keyed_mutex_node&) = delete;
    keyed_mutex_node& operator=(const keyed_mutex_node&) = delete;
    virtual ~keyed_mutex_node() = default;

    bool is_locked = false;
    std::size_t pins = 0;
    std::size_t waiting = 0;
    waiter_list queue;
    keyed_mutex_node* next_removed = nullptr;
};

// Nodes that were removed from the table, to be destroyed without the lock.
class removed_keys {
public:
    removed_keys() noexcept = default;
    removed_keys(const removed_keys&) = delete;
    removed_keys& operator=(const removed_keys&) = delete;
    ~removed_keys()
    {
        while (keyed_mutex_node* const n = first_) {
            first_ = n->next_removed;
            delete n;
        }
    }
    void add(keyed_mutex_node& n) noexcept
    {
        n.next_removed = first_;
        first_ = &n;
    }

private:
    keyed_mutex_node* first_ = nullptr;
};

using keyed_mutex_nodes = std::span<keyed_mutex_node* const>;

// Waits to lock all of its nodes, the first `held` of which it has locked.
struct keyed_mutex_waiter : waiter {
    using waiter::waiter;
    keyed_mutex_nodes nodes;
    std::size_t held = 0;
};

template <class Threading>
class TURNSTILE_EXPORT keyed_mutex_state final : public wait_state<Threading> {
public:
    using table = key_table<keyed_mutex_node>;

    template <class Executor>
    explicit keyed_mutex_state(const Executor& executor) : wait_state<Threading>(executor)
    {
    }

    // The next node with the hash, after the number `seen`, pinned. If there is none and `made` is
    // not null, inserts, pins and locks `made`, provided that the table has storage for it: it may
    // use `storage`. Returns null if there is no such node and none was inserted; `storage_needed`
    // is then the size of the storage that is required, or 0.
    keyed_mutex_node* find(std::size_t hash, std::uint64_t seen, keyed_mutex_node* made,
                           table::storage& storage, std::size_t& storage_needed) noexcept;
    void unpin(keyed_mutex_nodes nodes) noexcept;

    // Locks all of the pinned nodes, or none.
    bool try_lock(keyed_mutex_nodes nodes) noexcept;
    // Unlocks all of the nodes, which stay pinned.
    void unlock(keyed_mutex_nodes nodes) noexcept;
    // Unlocks and unpins the nodes of a handle. This may destroy the state.
    void unlock_and_unpin(keyed_mutex_nodes nodes) noexcept;

    // The number of locked keys.
    std::size_t size() noexcept
    {
        return this->guarded([&] { return locked_; });
    }
    // Queries of a pinned node.
    bool is_locked(const keyed_mutex_node& n) noexcept
    {
        return this->guarded([&] { return n.is_locked; });
    }
    std::size_t waiting_for(const keyed_mutex_node& n) noexcept
    {
        return this->guarded([&] { return n.waiting; });
    }

private:
    // All of these are called under the lock.
    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void return_handle(waiter& w, ready_list& ready) noexcept override { take_back(w, ready); }
    bool keep_for_handles() noexcept override;
    void take_all(waiter_list& out) noexcept override;

    bool advance(keyed_mutex_waiter& w) noexcept;
    void unlock_node(keyed_mutex_node& n, ready_list& ready) noexcept;
    void unlock_nodes(keyed_mutex_nodes nodes, ready_list& ready) noexcept;
    void unpin_nodes(keyed_mutex_nodes nodes, removed_keys& removed) noexcept;

    table table_;
    std::size_t locked_ = 0;
    bool is_orphaned_ = false; // the object was destroyed
    // The waiter that remove() has taken out of its queue, for reconsider().
    keyed_mutex_waiter* leaving_ = nullptr;
};

extern template class keyed_mutex_state<thread_safe>;
extern template class keyed_mutex_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
