// SPDX-License-Identifier: BSL-1.0
// A hash table of nodes, for objects that keep something for each key of a user's type:
// keyed_rate_limiter and keyed_mutex. It is used under the lock of a state: it calls no user code,
// and neither allocates nor frees. It therefore knows only the hash of a key; the caller compares
// keys with equal hashes, and allocates the storage of the table, without the lock.
//
// Invariant: each node in the table has a number, larger than that of every node that was inserted
// before. A search that was interrupted to compare a key continues after the number it has seen.
#pragma once

#include <boost/intrusive/unordered_set.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

using key_table_hook = boost::intrusive::unordered_set_base_hook<
    boost::intrusive::link_mode<boost::intrusive::normal_link>>;

// The part of a node that the table uses.
struct key_table_node : key_table_hook {
    explicit key_table_node(std::size_t h) noexcept : hash(h) {}

    const std::size_t hash;
    std::uint64_t number = 0; // in the order of insertion; 0 if it was never inserted
};

// The table does not own its nodes. Node derives from key_table_node.
template <class Node>
class key_table {
    struct by_hash {
        using type = std::size_t;
        const std::size_t& operator()(const Node& n) const noexcept { return n.hash; }
    };
    struct no_hash {
        std::size_t operator()(std::size_t h) const noexcept { return h; }
    };
    using set = boost::intrusive::unordered_multiset<
        Node, boost::intrusive::base_hook<key_table_hook>, boost::intrusive::key_of_value<by_hash>,
        boost::intrusive::hash<no_hash>, boost::intrusive::equal<std::equal_to<std::size_t>>>;
    using bucket = typename set::bucket_type;
    using traits = typename set::bucket_traits;

public:
    // The memory of the table, allocated and freed without the lock.
    struct storage {
        std::size_t size = 0;
        std::unique_ptr<bucket[]> buckets;
    };
    static storage make_storage(std::size_t size)
    {
        return {size, std::make_unique<bucket[]>(size)};
    }

    key_table() : storage_(make_storage(7)), set_(traits(storage_.buckets.get(), storage_.size)) {}
    key_table(const key_table&) = delete;
    key_table& operator=(const key_table&) = delete;

    std::size_t size() const noexcept { return set_.size(); }
    std::size_t places() const noexcept { return storage_.size; }

    // The first node with that hash and a larger number than the given one; null if there is none.
    Node* next(std::size_t hash, std::uint64_t number) noexcept
    {
        Node* first = nullptr;
        for (auto [it, last] = set_.equal_range(hash); it != last; ++it) {
            if (it->number > number && (!first || it->number < first->number))
                first = &*it;
        }
        return first;
    }

    // The size of the storage that one more node requires; 0 if the present storage suffices.
    std::size_t storage_needed() const noexcept
    {
        return set_.size() < storage_.size ? 0 : 2 * storage_.size + 1;
    }
    // Moves into `other`, and leaves the old storage there, to be freed.
    void grow(storage& other) noexcept
    {
        set_.rehash(traits(other.buckets.get(), other.size));
        std::swap(storage_, other);
    }

    void insert(Node& n) noexcept
    {
        n.number = ++newest_;
        set_.insert(n);
    }
    void erase(Node& n) noexcept { set_.erase(set_.iterator_to(n)); }

    // Calls f(node) for each node in one place of the table, until it returns false; f may erase
    // the node. Returns whether f has returned true for all of them.
    template <class F>
    bool for_each_at(std::size_t position, F f) noexcept
    {
        for (auto it = set_.begin(position); it != set_.end(position);) {
            Node& n = *it++;
            if (!f(n))
                return false;
        }
        return true;
    }
    template <class F>
    void for_each(F f) noexcept
    {
        for (Node& n : set_)
            f(n);
    }
    // Removes all nodes, and passes each to dispose(Node*).
    template <class Dispose>
    void clear(Dispose dispose) noexcept
    {
        set_.clear_and_dispose(dispose);
    }

private:
    storage storage_;
    set set_;
    std::uint64_t newest_ = 0;
};

} // namespace turnstile::inline v0_1::detail
