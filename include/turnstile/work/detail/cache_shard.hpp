// SPDX-License-Identifier: BSL-1.0
// A shard of a cache: a table of entries, their eviction, and a lock. The hash of a key chooses its
// shard, so that threads that use different keys seldom meet.
//
// An entry is in one block with its key and its value. A reader takes a reference to the entry
// under the lock, which keeps the value for as long as the reader needs it; then it compares the
// key without the lock. Since hashes have 64 bits, a second entry with the same hash is rare, and a
// search is one section under the lock.
//
// Readers do not exclude each other: the lock has several stripes, and a reader locks the one of
// its thread, a writer all of them. A hit changes nothing but its stripe, where it is recorded. The
// eviction learns of the recorded hits when a record is full, and before each change of the shard,
// so that it knows of all of them when it chooses a victim.
//
// Invariants: an entry in the table owns itself (`self`). A recorded entry is in the table. No key
// or value is copied, compared or destroyed under the lock: removed entries are collected in a
// list, which is destroyed without it.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/util/listener_list.hpp>
#include <turnstile/work/cache_options.hpp>
#include <turnstile/work/detail/cache_entry.hpp>
#include <turnstile/work/detail/cache_eviction.hpp>
#include <turnstile/work/detail/entry_table.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Key, class Value, class Threading>
class cache_shard {
public:
    using entry = cache_entry<Key, Value>;
    using entry_ptr = std::shared_ptr<entry>;
    using removed_list = removed_entries<entry>;
    using table = entry_table<entry>;
    using listeners_type = listener_list<cache_removal<entry>, Threading>;

    static constexpr std::uint64_t any_number = std::numeric_limits<std::uint64_t>::max();

    struct figures {
        std::uint64_t misses = 0;
        std::uint64_t evicted = 0;
        std::uint64_t expired = 0;
        std::uint64_t stale_errors = 0;
    };
    struct found {
        entry_ptr e;
        cache_match match = cache_match::none;
        bool is_expired = false;
    };

    cache_shard(eviction_policy policy, std::uint64_t max_weight, std::uint64_t seed,
                const cache_times& times, listeners_type& listeners)
        : eviction_(policy, max_weight, seed), times_(times), listeners_(listeners)
    {
    }
    cache_shard(const cache_shard&) = delete;
    cache_shard& operator=(const cache_shard&) = delete;
    ~cache_shard()
    {
        removed_list removed;
        take_all(removed, nullptr);
    }

    // The newest entry with the hash and a number below `below` that is not past all use. `uses`:
    // it is a hit if it can be handed out.
    found find(std::uint64_t hash, std::uint64_t below, nanoseconds now, bool uses,
               removed_list& removed) noexcept
    {
        for (;;) {
            stripe& own = stripes_[thread_stripe::current() % stripe_count];
            found f;
            {
                const std::scoped_lock lock(own.mutex);
                entry* const e = table_.find(hash, below);
                if (!e)
                    return f;
                f = {e->self, match_of(*e, now), times_.are_used && now >= e->expires_at};
                if (uses && (f.match == cache_match::fresh || f.match == cache_match::due))
                    record(own, *e, now, f.is_expired);
            }
            if (f.match != cache_match::none) [[likely]]
                return f;
            const exclusive_lock lock(*this);
            if (f.e->is_tracked() && match_of(*f.e, now) == cache_match::none) {
                ++figures_.expired;
                remove(*f.e, removal_cause::expired, removed);
            }
        }
    }
    // The same without times: the newest entry with the hash, which is a hit.
    TURNSTILE_HOT entry_ptr hit(std::uint64_t hash) noexcept
    {
        stripe& own = stripes_[thread_stripe::current() % stripe_count];
        const std::scoped_lock lock(own.mutex);
        entry* const e = table_.find(hash);
        if (!e)
            return nullptr;
        ++own.hits;
        add_to_record(own, *e);
        return e->self;
    }
    // The hit was one of another key with the same hash.
    void take_back_hit(bool was_expired) noexcept
    {
        stripe& own = stripes_[thread_stripe::current() % stripe_count];
        const std::scoped_lock lock(own.mutex);
        --own.hits;
        own.stale_hits -= was_expired ? 1 : 0;
    }
    // A caller waits for a load. `loads`: it has started it.
    void count_miss(std::uint64_t hash, bool loads) noexcept
    {
        const exclusive_lock lock(*this);
        ++figures_.misses;
        if (!loads)
            eviction_.record_miss(hash);
    }
    void count_failure(std::uint64_t hash, bool serves_stale) noexcept
    {
        const exclusive_lock lock(*this);
        eviction_.record_miss(hash);
        figures_.stale_errors += serves_stale ? 1 : 0;
    }

    // The newest entry with the hash and a number below `below`, expired or not.
    entry_ptr find(std::uint64_t hash, std::uint64_t below) noexcept
    {
        const std::scoped_lock lock(stripes_[0].mutex);
        entry* const e = table_.find(hash, below);
        return e ? e->self : nullptr;
    }
    // The number that the next entry will have.
    std::uint64_t next_number() noexcept
    {
        const std::scoped_lock lock(stripes_[0].mutex);
        return table_.next_number();
    }
    // Removes an entry if it is in the table.
    bool remove(const entry_ptr& e, removal_cause cause, removed_list& removed) noexcept
    {
        const exclusive_lock lock(*this);
        if (!e->is_tracked())
            return false;
        remove(*e, cause, removed);
        return true;
    }
    // Inserts an entry, and removes the one with the same key, if there is one. Returns false, and
    // changes nothing, if there is an entry with the same hash whose number is not below `below`.
    bool replace(const entry_ptr& made, const entry_ptr& old, std::uint64_t below, nanoseconds now,
                 removed_list& removed) noexcept
    {
        const exclusive_lock lock(*this);
        entry& e = *made;
        const entry* const newest = table_.find(e.hash(), any_number);
        if (newest && newest->number >= below)
            return false;
        if (old && old->is_tracked())
            remove(*old, now < old->expires_at ? removal_cause::replaced : removal_cause::expired,
                   removed);
        use(e, now);
        e.self = made;
        table_.insert(e);
        eviction_.insert(e);
        evict(removed);
        sweep(now, removed);
        return true;
    }
    // Lets the table grow if it is crowded. Without memory it stays crowded.
    void grow() noexcept
    {
        typename table::storage storage;
        for (;;) {
            std::size_t needed = 0;
            {
                const exclusive_lock lock(*this);
                needed = table_.storage_needed();
                if (needed != 0 && storage.size >= needed) {
                    table_.grow(storage);
                    needed = 0;
                }
            }
            if (needed == 0)
                return;
            try {
                storage = table::make_storage(needed);
            } catch (const std::bad_alloc&) {
                return;
            }
        }
    }

    void take_all(removed_list& removed, const removal_cause* cause) noexcept
    {
        const exclusive_lock lock(*this);
        table_.clear();
        eviction_.clear([&](eviction_entry& tracked) noexcept {
            auto& e = static_cast<entry&>(tracked);
            if (cause)
                publish(e, *cause);
            removed.add(e);
        });
    }
    // Removes the entries that are past all use. Returns their number.
    std::size_t purge(nanoseconds now, removed_list& removed) noexcept
    {
        const exclusive_lock lock(*this);
        std::size_t n = 0;
        for (std::size_t i = 0; i != table_.places(); ++i)
            n += sweep_place(i, now, removed);
        return n;
    }
    // All entries, for a caller that examines them without the lock.
    std::vector<entry_ptr> entries()
    {
        std::vector<entry_ptr> all;
        for (;;) {
            all.reserve(size() + size() / 8 + 8);
            const exclusive_lock lock(*this);
            if (table_.size() > all.capacity())
                continue;
            table_.for_each([&](entry& e) { all.push_back(e.self); });
            return all;
        }
    }

    std::size_t size() noexcept
    {
        const exclusive_lock lock(*this);
        return table_.size();
    }
    void add_to(cache_stats& s) noexcept
    {
        const exclusive_lock lock(*this);
        s.entries += table_.size();
        s.weight += eviction_.weight();
        for (const stripe& part : stripes_) {
            s.hits += part.hits;
            s.stale_hits += part.stale_hits;
        }
        s.misses += figures_.misses;
        s.evicted += figures_.evicted;
        s.expired += figures_.expired;
        s.stale_errors += figures_.stale_errors;
    }

    cache_match match_of(const entry& e, nanoseconds now) const noexcept
    {
        return times_.match_of(e, now);
    }
    bool may_replace_failure(const entry& e, nanoseconds now) const noexcept
    {
        return times_.may_replace_failure(e, now);
    }

private:
    // How many places of the table an insertion examines for entries that have expired.
    static constexpr std::size_t sweep_length = 2;

    // A stripe of the lock, with the hits of its threads.
    static constexpr std::size_t stripe_count = Threading::is_confined ? 1 : 4;
    static constexpr std::size_t record_size = 60;
    struct alignas(64) stripe {
        typename Threading::mutex_type mutex;
        std::uint32_t recorded_size = 0;
        std::uint64_t hits = 0;
        std::uint64_t stale_hits = 0;
        std::array<entry*, record_size> recorded;
    };
    // The lock of a writer.
    class exclusive_lock {
    public:
        explicit exclusive_lock(cache_shard& s) noexcept : stripes_(s.stripes_)
        {
            for (stripe& part : stripes_)
                part.mutex.lock();
            for (stripe& part : stripes_)
                s.report(part);
        }
        exclusive_lock(const exclusive_lock&) = delete;
        exclusive_lock& operator=(const exclusive_lock&) = delete;
        ~exclusive_lock()
        {
            for (stripe& part : stripes_)
                part.mutex.unlock();
        }

    private:
        std::array<stripe, stripe_count>& stripes_;
    };

    // Under the lock of the stripe: records a hit.
    void record(stripe& own, entry& e, nanoseconds now, bool is_expired) noexcept
    {
        ++own.hits;
        own.stale_hits += is_expired ? 1 : 0;
        if (times_.are_used && e.idle_ttl != nanoseconds::max())
            use(e, now);
        add_to_record(own, e);
    }
    TURNSTILE_HOT void add_to_record(stripe& own, entry& e) noexcept
    {
        if (own.recorded_size == record_size && !report_full(own)) [[unlikely]]
            return;
        own.recorded[own.recorded_size++] = &e;
    }
    // Returns false if another reader is reporting its own record.
    TURNSTILE_NOINLINE bool report_full(stripe& own) noexcept
    {
        if (!is_reporting_.update([](unsigned& busy) { return std::exchange(busy, 1U) == 0; },
                                  std::memory_order_acq_rel))
            return false;
        report(own);
        is_reporting_.store(0, std::memory_order_release);
        return true;
    }
    // Under the lock of a writer, or of the stripe while is_reporting_ is set.
    void report(stripe& part) noexcept
    {
        // The misses of all touches at the same time, instead of one after the other.
        for (std::size_t i = 0; i != part.recorded_size; ++i)
            eviction_.prefetch(*part.recorded[i]);
        for (std::size_t i = 0; i != part.recorded_size; ++i)
            eviction_.touch(*part.recorded[i]);
        part.recorded_size = 0;
    }
    static void use(entry& e, nanoseconds now) noexcept
    {
        e.idle_until.store(saturating_add(now, e.idle_ttl), std::memory_order_relaxed);
    }

    // Under the lock of a writer.
    void publish(entry& e, removal_cause cause) noexcept
    {
        if (!e.error && listeners_.has_listeners()) [[unlikely]]
            listeners_.publish({e.self, cause});
    }
    void remove(entry& e, removal_cause cause, removed_list& removed) noexcept
    {
        eviction_.erase(e);
        remove_untracked(e, cause, removed);
    }
    void remove_untracked(entry& e, removal_cause cause, removed_list& removed) noexcept
    {
        table_.erase(e);
        publish(e, cause);
        removed.add(e);
    }
    void evict(removed_list& removed) noexcept
    {
        while (eviction_entry* const victim = eviction_.next_victim()) {
            ++figures_.evicted;
            remove_untracked(static_cast<entry&>(*victim), removal_cause::evicted, removed);
        }
    }
    std::size_t sweep_place(std::size_t place, nanoseconds now, removed_list& removed) noexcept
    {
        std::size_t n = 0;
        table_.for_each_at(place, [&](entry& e) {
            if (match_of(e, now) == cache_match::none) {
                ++n;
                ++figures_.expired;
                remove(e, removal_cause::expired, removed);
            }
        });
        return n;
    }
    void sweep(nanoseconds now, removed_list& removed) noexcept
    {
        for (std::size_t i = 0; i != sweep_length; ++i) {
            swept_ = (swept_ + 1) % table_.places();
            sweep_place(swept_, now, removed);
        }
    }

    std::array<stripe, stripe_count> stripes_;
    policy_atomic<Threading, unsigned> is_reporting_{0}; // 1 while a reader uses eviction_
    table table_;
    cache_eviction eviction_;
    figures figures_;
    std::size_t swept_ = 0;
    const cache_times times_;
    listeners_type& listeners_;
};

} // namespace turnstile::inline v0_1::detail
