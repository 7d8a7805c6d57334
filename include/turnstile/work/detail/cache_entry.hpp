// SPDX-License-Identifier: BSL-1.0
// An entry of a cache, the list of the entries that were removed, and the time rules that the
// shards of a cache share.
//
// Invariant: an entry in a table owns itself. The destructor of a key or a value never runs under a
// lock, because a removed entry is moved to a list that outlives the lock.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/config.hpp>
#include <turnstile/work/cache_options.hpp>
#include <turnstile/work/detail/cache_eviction.hpp>
#include <turnstile/work/detail/flight.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The links of an entry. They are its first members: with the reference count of the block they
// fill a cache line, so a search touches one line for each entry that it passes.
template <class Entry>
struct cache_links : eviction_entry {
    explicit cache_links(std::uint64_t h) noexcept : eviction_entry(h, 1) {}

    Entry* next_in_place = nullptr;
    std::uint64_t number = 0;
    std::shared_ptr<Entry> self; // while it is in the table; see also removed_entries
};

template <class Key, class Value>
struct cache_entry : cache_links<cache_entry<Key, Value>>, flight_cell<Key, Value> {
    template <class K>
    cache_entry(std::uint64_t h, K&& k)
        : cache_links<cache_entry>(h), flight_cell<Key, Value>(std::forward<K>(k))
    {
    }

    nanoseconds expires_at = nanoseconds::max();
    nanoseconds idle_ttl = nanoseconds::max();
    std::atomic<nanoseconds> idle_until = nanoseconds::max(); // several readers change it
};

// The stripe of the calling thread, as a number without an upper limit.
class thread_stripe {
public:
    static std::size_t current() noexcept
    {
        if (number_ == 0) [[unlikely]]
            number_ = ++last_;
        return number_;
    }

private:
    static inline std::atomic<std::size_t> last_{0};
    static inline constinit thread_local std::size_t number_ = 0;
};

// Entries that were removed from a table, to be destroyed without the lock. The `self` of each owns
// the one that was removed before it.
template <class Entry>
class removed_entries {
public:
    removed_entries() noexcept = default;
    removed_entries(const removed_entries&) = delete;
    removed_entries& operator=(const removed_entries&) = delete;
    ~removed_entries() { clear(); }

    void add(Entry& e) noexcept { e.self.swap(last_); }
    void swap(removed_entries& other) noexcept { last_.swap(other.last_); }
    void clear() noexcept
    {
        // One after the other: the destructor of a long chain would recurse.
        while (last_) {
            std::shared_ptr<Entry> next;
            next.swap(last_->self);
            last_.swap(next);
        }
    }

private:
    std::shared_ptr<Entry> last_;
};

template <class Entry>
struct cache_removal {
    cache_removal(std::shared_ptr<Entry> e, removal_cause c) noexcept
        : entry(std::move(e)), cause(c)
    {
    }
    cache_removal(const cache_removal&) noexcept = default;
    cache_removal(cache_removal&&) noexcept = default;
    cache_removal& operator=(const cache_removal&) noexcept = default;
    cache_removal& operator=(cache_removal&&) noexcept = default;
    // Not inlined: GCC 12 would warn of an uninitialized std::optional in listener_list.
    TURNSTILE_NOINLINE ~cache_removal() {}

    std::shared_ptr<Entry> entry;
    removal_cause cause;
};

enum class cache_match : unsigned char {
    none,
    fresh,
    due,   // may be handed out, and must be loaded again
    stale, // must be loaded again, but replaces a failure
};

// The time rules of a cache.
struct cache_times {
    bool are_used = false; // entries can expire
    nanoseconds refresh_ahead{};
    nanoseconds stale_while_revalidate{};
    nanoseconds stale_if_error{};

    template <class Entry>
    cache_match match_of(const Entry& e, nanoseconds now) const noexcept
    {
        if (!are_used) // does not even read the times
            return cache_match::fresh;
        if (now >= e.idle_until.load(std::memory_order_relaxed))
            return cache_match::none;
        if (now < e.expires_at) {
            return !e.error && saturating_sub(e.expires_at, refresh_ahead) <= now
                       ? cache_match::due
                       : cache_match::fresh;
        }
        if (e.error)
            return cache_match::none;
        if (now < saturating_add(e.expires_at, stale_while_revalidate))
            return cache_match::due;
        return may_replace_failure(e, now) ? cache_match::stale : cache_match::none;
    }
    // Whether the value of the entry may be handed out because a load has failed.
    template <class Entry>
    bool may_replace_failure(const Entry& e, nanoseconds now) const noexcept
    {
        return now < saturating_add(e.expires_at, stale_if_error);
    }
};

} // namespace turnstile::inline v0_1::detail
