// SPDX-License-Identifier: BSL-1.0
// The hash table in which a keyed rate limiter keeps its keys. It is used under the lock of the
// state: it calls no user code, and neither allocates nor frees. It therefore knows only the hash
// of a key; the caller compares keys with equal hashes, without the lock.
#pragma once

#include <turnstile/detail/util/synchronization.hpp>
#include <turnstile/resilience/detail/keyed_rate_limiter_waiter.hpp>

#include <boost/intrusive/unordered_set.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

using keyed_rate_limiter_table_hook = boost::intrusive::unordered_set_base_hook<
    boost::intrusive::link_mode<boost::intrusive::normal_link>>;

// A key with its bucket, as the table sees it. The table, operations and events share it; a node
// that only the table refers to may be removed.
template <class Threading>
class keyed_rate_limiter_node : public keyed_rate_limiter_slot,
                                public keyed_rate_limiter_table_hook {
public:
    explicit keyed_rate_limiter_node(std::size_t h) noexcept : hash(h) {}
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

    const std::size_t hash;
    std::uint64_t number = 0; // in the order of insertion; 0 if it was never inserted

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

private:
    struct by_hash {
        using type = std::size_t;
        const std::size_t& operator()(const node& n) const noexcept { return n.hash; }
    };
    struct no_hash {
        std::size_t operator()(std::size_t h) const noexcept { return h; }
    };
    using set = boost::intrusive::unordered_multiset<
        node, boost::intrusive::base_hook<keyed_rate_limiter_table_hook>,
        boost::intrusive::key_of_value<by_hash>, boost::intrusive::hash<no_hash>,
        boost::intrusive::equal<std::equal_to<std::size_t>>>;
    using bucket = typename set::bucket_type;
    using traits = typename set::bucket_traits;

public:
    // The memory of the table, allocated and freed without the lock.
    struct room {
        std::size_t size = 0;
        std::unique_ptr<bucket[]> buckets;
    };
    static room make_room(std::size_t size) { return {size, std::make_unique<bucket[]>(size)}; }

    keyed_rate_limiter_table() : room_(make_room(7)), set_(traits(room_.buckets.get(), room_.size))
    {
    }
    ~keyed_rate_limiter_table()
    {
        set_.clear_and_dispose([](node* n) { intrusive_ptr_release(n); });
    }
    keyed_rate_limiter_table(const keyed_rate_limiter_table&) = delete;
    keyed_rate_limiter_table& operator=(const keyed_rate_limiter_table&) = delete;

    std::size_t size() const noexcept { return set_.size(); }
    std::size_t places() const noexcept { return room_.size; }

    // The first node with that hash and a larger number than the given one; null if there is none.
    node_ptr next(std::size_t hash, std::uint64_t number) noexcept
    {
        node* first = nullptr;
        for (auto [it, last] = set_.equal_range(hash); it != last; ++it) {
            if (it->number > number && (!first || it->number < first->number))
                first = &*it;
        }
        return first;
    }

    // The size of the room that one more node requires; 0 if the present room suffices.
    std::size_t room_needed() const noexcept
    {
        return set_.size() < room_.size ? 0 : 2 * room_.size + 1;
    }
    // Moves into `other`, and leaves the old room there, to be freed.
    void grow(room& other) noexcept
    {
        set_.rehash(traits(other.buckets.get(), other.size));
        std::swap(room_, other);
    }

    void insert(node_ptr n) noexcept
    {
        n->number = ++newest_;
        set_.insert(*n.detach());
    }

    // Removes the nodes in one place of the table that nothing else refers to and for which
    // is_idle(node) is true. Passes each to out(node_ptr&); stops and returns false when that
    // returns false.
    template <class Idle, class Out>
    bool remove_idle(std::size_t position, Idle is_idle, Out out) noexcept
    {
        for (auto it = set_.begin(position); it != set_.end(position);) {
            node& n = *it++;
            if (n.is_shared() || !is_idle(n))
                continue;
            node_ptr taken(&n);
            if (!out(taken))
                return false;
            set_.erase(set_.iterator_to(n));
            intrusive_ptr_release(&n);
        }
        return true;
    }
    template <class F>
    void for_each(F f) noexcept
    {
        for (node& n : set_)
            f(n);
    }

private:
    room room_;
    set set_;
    std::uint64_t newest_ = 0;
};

} // namespace turnstile::inline v0_1::detail
