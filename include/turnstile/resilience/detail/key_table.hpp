// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/resilience/detail/keyed_waiter.hpp>

#include <boost/intrusive/unordered_set.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

using key_hook = boost::intrusive::unordered_set_base_hook<
    boost::intrusive::link_mode<boost::intrusive::normal_link>>;

// A key with its bucket, as far as the table needs to know. It is shared between the table,
// operations and events; one that only the table refers to can be forgotten.
template <class Threading>
class key_node : public key_slot, public key_hook {
public:
    explicit key_node(std::size_t h) noexcept : hash(h) {}
    key_node(const key_node&) = delete;
    key_node& operator=(const key_node&) = delete;

    bool is_shared() const noexcept { return references_.load(std::memory_order_acquire) > 1; }

    friend void intrusive_ptr_add_ref(key_node* node) noexcept
    {
        node->references_.fetch_add(1, std::memory_order_relaxed);
    }
    friend void intrusive_ptr_release(key_node* node) noexcept
    {
        if (node->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete node;
    }

    const std::size_t hash;
    std::uint64_t number = 0; // in the order in which keys came to the table; 0 if it is not there

protected:
    virtual ~key_node() = default;

private:
    policy_atomic<Threading, std::size_t> references_{0};
};

// A hash table of such nodes that calls no code of the user's, and neither allocates nor frees:
// it can be used under a lock. Nodes with equal hashes are told apart by the caller.
template <class Threading>
class key_table {
public:
    using node = key_node<Threading>;
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
        node, boost::intrusive::base_hook<key_hook>, boost::intrusive::key_of_value<by_hash>,
        boost::intrusive::hash<no_hash>, boost::intrusive::equal<std::equal_to<std::size_t>>>;
    using bucket = typename set::bucket_type;
    using traits = typename set::bucket_traits;

public:
    // Room for more nodes, made without the lock.
    struct room {
        std::size_t size = 0;
        std::unique_ptr<bucket[]> buckets;
    };
    static room make_room(std::size_t size) { return {size, std::make_unique<bucket[]>(size)}; }

    key_table() : room_(make_room(7)), set_(traits(room_.buckets.get(), room_.size)) {}
    ~key_table()
    {
        set_.clear_and_dispose([](node* n) { intrusive_ptr_release(n); });
    }
    key_table(const key_table&) = delete;
    key_table& operator=(const key_table&) = delete;

    std::size_t size() const noexcept { return set_.size(); }
    std::size_t buckets() const noexcept { return room_.size; }

    // The first node with that hash that came after the given number; null if there is none.
    node_ptr next(std::size_t hash, std::uint64_t number) noexcept
    {
        node* first = nullptr;
        for (auto [it, last] = set_.equal_range(hash); it != last; ++it) {
            if (it->number > number && (!first || it->number < first->number))
                first = &*it;
        }
        return first;
    }

    // How much room it should have for one more node; 0 if it has enough.
    std::size_t room_needed() const noexcept
    {
        return set_.size() < room_.size ? 0 : 2 * room_.size + 1;
    }
    // Uses that room, and leaves the old one to be freed.
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

    // Takes out the nodes of one bucket that are idle, by is_idle(node), and passes them to
    // out(node_ptr&), which is false if it has no room for more.
    template <class Idle, class Out>
    bool forget(std::size_t position, Idle is_idle, Out out) noexcept
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
