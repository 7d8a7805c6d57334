// SPDX-License-Identifier: BSL-1.0
// The hash table in which a keyed rate limiter keeps its keys: a key_table that shares the
// ownership of its nodes. It is used under the lock of the state.
#pragma once

#include <turnstile/detail/util/key_table.hpp>
#include <turnstile/detail/util/synchronization.hpp>
#include <turnstile/resilience/detail/keyed_rate_limiter_bucket.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <cstdint>

namespace turnstile::inline v0_1::detail {

// A key with its bucket, as the table sees it. The table, operations and events share it; a node
// that only the table refers to may be removed.
template <class Threading>
class keyed_rate_limiter_node : public keyed_rate_limiter_word, public key_table_node {
public:
    using key_table_node::key_table_node;
    keyed_rate_limiter_node(const keyed_rate_limiter_node&) = delete;
    keyed_rate_limiter_node& operator=(const keyed_rate_limiter_node&) = delete;

    bool is_shared() const noexcept { return references_.load(std::memory_order_acquire) > 1; }

    friend void intrusive_ptr_add_ref(keyed_rate_limiter_node* node) noexcept
    {
        node->references_.fetch_add(1, std::memory_order_relaxed);
    }
    friend void intrusive_ptr_release(keyed_rate_limiter_node* node) noexcept
    {
        if (node->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete node;
    }

protected:
    virtual ~keyed_rate_limiter_node() = default;

private:
    policy_atomic<Threading, std::size_t> references_{0};
};

template <class Threading>
class keyed_rate_limiter_table {
public:
    using node = keyed_rate_limiter_node<Threading>;
    using node_ptr = boost::intrusive_ptr<node>;
    using storage = typename key_table<node>::storage;

    static storage make_storage(std::size_t size) { return key_table<node>::make_storage(size); }

    keyed_rate_limiter_table() = default;
    ~keyed_rate_limiter_table()
    {
        nodes_.clear([](node* n) { intrusive_ptr_release(n); });
    }
    keyed_rate_limiter_table(const keyed_rate_limiter_table&) = delete;
    keyed_rate_limiter_table& operator=(const keyed_rate_limiter_table&) = delete;

    std::size_t size() const noexcept { return nodes_.size(); }
    std::size_t places() const noexcept { return nodes_.places(); }

    // The functions of key_table.
    node_ptr next(std::size_t hash, std::uint64_t number) noexcept
    {
        return nodes_.next(hash, number);
    }
    std::size_t storage_needed() const noexcept { return nodes_.storage_needed(); }
    void grow(storage& other) noexcept { nodes_.grow(other); }
    void insert(node_ptr n) noexcept { nodes_.insert(*n.detach()); }

    // Removes the nodes in one place of the table that nothing else refers to and for which
    // is_idle(node) is true. Passes each to out(node_ptr&); stops and returns false when that
    // returns false.
    template <class Idle, class Out>
    bool remove_idle(std::size_t position, Idle is_idle, Out out) noexcept
    {
        return nodes_.for_each_at(position, [&](node& n) {
            if (n.is_shared() || !is_idle(n))
                return true;
            node_ptr taken(&n);
            if (!out(taken))
                return false;
            nodes_.erase(n);
            intrusive_ptr_release(&n);
            return true;
        });
    }
    template <class F>
    void for_each(F f) noexcept
    {
        nodes_.for_each(f);
    }

private:
    key_table<node> nodes_;
};

} // namespace turnstile::inline v0_1::detail
