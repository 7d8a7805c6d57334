// SPDX-License-Identifier: BSL-1.0
// The hash table of a cache's shard. Like key_table it knows only the hashes of its entries, calls
// no user code, and neither allocates nor frees, so that it is used under a lock. It is made for
// hits: a place is found without a division, and a search ends at the first entry with the hash.
//
// Entry has the members `next_in_place`, an Entry*, and `number`, and a function hash().
//
// Invariants: the number of places is a power of two. Each entry has a number, larger than that of
// every entry that was inserted before. The entries of a place are in the order of their numbers,
// the newest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The table does not own its entries.
template <class Entry>
class entry_table {
public:
    // The memory of the table, allocated and freed without the lock.
    struct storage {
        std::size_t size = 0;
        std::unique_ptr<Entry*[]> places;
    };
    static storage make_storage(std::size_t size)
    {
        return {size, std::make_unique<Entry*[]>(size)};
    }

    entry_table() : storage_(make_storage(8)) {}

    std::size_t size() const noexcept { return size_; }
    std::size_t places() const noexcept { return storage_.size; }
    // The number that the next entry will have.
    std::uint64_t next_number() const noexcept { return newest_ + 1; }

    // The newest entry with that hash; null if there is none.
    Entry* find(std::uint64_t hash) const noexcept
    {
        Entry* e = *place_of(hash);
        while (e && e->hash() != hash)
            e = e->next_in_place;
        return e;
    }
    // The newest entry with that hash and a number below the given one; null if there is none.
    Entry* find(std::uint64_t hash, std::uint64_t below) const noexcept
    {
        Entry* e = *place_of(hash);
        while (e && (e->hash() != hash || e->number >= below))
            e = e->next_in_place;
        return e;
    }

    // The size of the storage that the table should have; 0 if the present storage suffices. With
    // two places for each entry most searches pass no other entry, each of which is a cache miss.
    std::size_t storage_needed() const noexcept
    {
        return size_ < storage_.size / 2 ? 0 : 2 * storage_.size;
    }
    // Moves into `other`, and leaves the old storage there, to be freed.
    void grow(storage& other) noexcept
    {
        std::swap(storage_, other);
        for (std::size_t i = 0; i != other.size; ++i) {
            // From the oldest to the newest, so that the new places have their order.
            Entry* reversed = nullptr;
            for (Entry* e = other.places[i]; e;) {
                Entry* const next = std::exchange(e->next_in_place, reversed);
                reversed = std::exchange(e, next);
            }
            while (reversed) {
                Entry* const next = reversed->next_in_place;
                link(*reversed);
                reversed = next;
            }
        }
    }

    void insert(Entry& e) noexcept
    {
        e.number = ++newest_;
        ++size_;
        link(e);
    }
    void erase(Entry& e) noexcept
    {
        Entry** link = place_of(e.hash());
        while (*link != &e)
            link = &(*link)->next_in_place;
        *link = e.next_in_place;
        --size_;
    }

    // Calls f(entry) for each entry in one place of the table; f may erase the entry.
    template <class F>
    void for_each_at(std::size_t position, F f) noexcept
    {
        for (Entry* e = storage_.places[position]; e;)
            f(*std::exchange(e, e->next_in_place));
    }
    template <class F>
    void for_each(F f) noexcept
    {
        for (std::size_t i = 0; i != storage_.size; ++i)
            for_each_at(i, f);
    }
    void clear() noexcept
    {
        for (std::size_t i = 0; i != storage_.size; ++i)
            storage_.places[i] = nullptr;
        size_ = 0;
    }

private:
    Entry** place_of(std::uint64_t hash) const noexcept
    {
        return &storage_.places[static_cast<std::size_t>(hash) & (storage_.size - 1)];
    }
    void link(Entry& e) noexcept
    {
        Entry** const place = place_of(e.hash());
        e.next_in_place = *place;
        *place = &e;
    }

    storage storage_;
    std::size_t size_ = 0;
    std::uint64_t newest_ = 0;
};

} // namespace turnstile::inline v0_1::detail
