// SPDX-License-Identifier: BSL-1.0
// The eviction of a cache, as a machine without I/O, clock or lock: the cache reports what happens
// to its entries, and asks for victims. It knows the hash and the weight of an entry, and neither
// its key nor its value. A cache has one machine for each shard, and calls it under the shard's
// lock.
//
// W-TinyLFU divides the entries into a window, in which new entries begin, and a main space, of
// which a part is protected. All are LRU lists. While the cache is full, the oldest entry of the
// window moves on to the main space only if it is used more often than the oldest entry there;
// otherwise it is evicted. The size of the window adapts to the workload (window_climber). LRU is
// the same machine with a window that is the whole cache. doc/work_cache_eviction.md has the
// reasons and the measurements.
//
// Invariants: each tracked entry is in exactly one list, the one that its segment names. A call
// moves a bounded number of entries, so it takes constant time; only a call of insert() that lets
// the sketch or the history grow copies that table, as a growing vector does. Nothing else is
// allocated, and a table that cannot grow does no harm. The sum of the weights never exceeds 2^62.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/random.hpp>
#include <turnstile/work/detail/eviction_history.hpp>
#include <turnstile/work/detail/frequency_sketch.hpp>
#include <turnstile/work/detail/window_climber.hpp>
#include <turnstile/work/eviction_policy.hpp>

#include <boost/intrusive/list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace turnstile::inline v0_1::detail {

using eviction_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

// The part of a cache's entry that cache_eviction uses: 32 bytes.
class eviction_entry : public eviction_hook {
public:
    // Heavier entries count as if they had this weight, half a petabyte.
    static constexpr std::uint64_t max_weight = (std::uint64_t(1) << 49) - 1;

    eviction_entry(std::uint64_t hash, std::uint64_t weight) noexcept : hash_(hash), state_{}
    {
        set_weight(weight);
    }
    eviction_entry(const eviction_entry&) = delete;
    eviction_entry& operator=(const eviction_entry&) = delete;

    std::uint64_t hash() const noexcept { return hash_; }
    std::uint64_t weight() const noexcept { return state_.weight; }
    // Changes the weight of an entry that is not tracked.
    void set_weight(std::uint64_t weight) noexcept
    {
        state_.weight = (weight < max_weight ? weight : max_weight) & max_weight;
    }
    // Whether it is in a cache_eviction.
    bool is_tracked() const noexcept { return state_.segment != untracked; }

private:
    friend class cache_eviction;

    enum segment : unsigned {
        untracked,
        window,     // new entries, and those that were used while they were in it
        probation,  // of the main space: entries that were not used since they entered it
        eldest,     // of the main space: those that will be evicted first
        protect,    // of the main space: entries that were used
        weightless, // weight 0: never evicted
        condemned,  // too heavy for the cache: the first victims
    };
    struct state {
        std::uint64_t weight : 49;
        std::uint64_t segment : 3;
        std::uint64_t frequency : 4; // as of `age`
        std::uint64_t age : 8;       // the low bits of cache_eviction::age_
    };

    std::uint64_t hash_;
    state state_;
};

// Not thread-safe. Does not own its entries.
class TURNSTILE_EXPORT cache_eviction {
public:
    // Equal seeds, and equal calls, give equal victims.
    cache_eviction(eviction_policy policy, std::uint64_t max_weight, std::uint64_t seed) noexcept;
    cache_eviction(const cache_eviction&) = delete;
    cache_eviction& operator=(const cache_eviction&) = delete;
    ~cache_eviction()
    {
        clear([](eviction_entry&) noexcept {});
    }

    // A new entry, which is not tracked. Counts as one use of its key. Afterwards the cache asks
    // for victims; the new entry may be one of them.
    void insert(eviction_entry& e) noexcept;
    // A hit of a tracked entry.
    void touch(eviction_entry& e) noexcept;
    // Loads into the processor's cache what touch() changes.
    static void prefetch(const eviction_entry& e) noexcept
    {
#if defined(__GNUC__)
        const auto* const node = entry_list::value_traits::to_node_ptr(e);
        __builtin_prefetch(node->next_, 1);
        __builtin_prefetch(node->prev_, 1);
#endif
    }
    // A use of a key that is not in the cache, and that no insert follows: a lookup that does not
    // load, a load that failed, or a caller that joined another one's load.
    void record_miss(std::uint64_t hash) noexcept;
    // Changes the weight of a tracked entry, which is not a use of it.
    void reweigh(eviction_entry& e, std::uint64_t weight) noexcept;
    // Removes a tracked entry. Its key keeps its frequency.
    void erase(eviction_entry& e) noexcept;

    // Removes and returns the next entry to evict; null if none must be.
    eviction_entry* next_victim() noexcept;

    // Changes the maximum. If it shrinks, there are victims afterwards.
    void resize(std::uint64_t max_weight) noexcept;

    // Removes all entries, and passes each to f(eviction_entry&) noexcept.
    template <class F>
    void clear(F f) noexcept;
    // Calls f(const eviction_entry&) noexcept for each entry. It must not change the machine.
    template <class F>
    void for_each(F f) const noexcept;

    // Without the weight of entries that are heavier than the maximum, which are only counted by
    // size() until they are evicted.
    std::uint64_t weight() const noexcept { return in(entry::window).weight + main_weight(); }
    std::uint64_t max_weight() const noexcept { return max_weight_; }
    std::size_t size() const noexcept
    {
        return counted() + in(entry::weightless).entries.size() +
               in(entry::condemned).entries.size();
    }
    eviction_policy policy() const noexcept { return policy_; }
    // The part of the maximum that is reserved for new entries.
    std::uint64_t max_window() const noexcept { return max_window_; }

private:
    using entry = eviction_entry;
    using entry_list = boost::intrusive::list<eviction_entry>;

    struct segment_list {
        entry_list entries; // the most recently used one is the first
        std::uint64_t weight = 0;
    };

    segment_list& list_of(const eviction_entry& e) noexcept { return segments_[e.state_.segment]; }
    const segment_list& in(eviction_entry::segment s) const noexcept { return segments_[s]; }
    segment_list& in(eviction_entry::segment s) noexcept { return segments_[s]; }
    std::uint64_t main_weight() const noexcept
    {
        return in(entry::eldest).weight + in(entry::probation).weight + in(entry::protect).weight;
    }
    std::uint64_t max_main() const noexcept { return max_weight_ - max_window_; }
    std::size_t counted() const noexcept
    {
        return in(entry::window).entries.size() + in(entry::eldest).entries.size() +
               in(entry::probation).entries.size() + in(entry::protect).entries.size();
    }

    void link(eviction_entry& e, unsigned segment) noexcept;
    void unlink(eviction_entry& e) noexcept;
    void move(eviction_entry& e, unsigned segment) noexcept;
    void place(eviction_entry& e) noexcept;
    void settle_window() noexcept;
    void settle_main() noexcept;
    eviction_entry* remove(eviction_entry& e) noexcept;
    eviction_entry* oldest_of_main() noexcept;
    bool admits(const eviction_entry& candidate, const eviction_entry& victim) noexcept;

    unsigned frequency(const eviction_entry& e) const noexcept;
    void set_frequency(eviction_entry& e, unsigned frequency) noexcept;
    std::uint64_t mixed(std::uint64_t hash) const noexcept;
    void reserve() noexcept;
    void count_access() noexcept
    {
        sketch_.continue_halving();
        if (--accesses_left_ == 0)
            end_sample();
    }
    void end_sample() noexcept;
    void divide() noexcept;

    std::array<segment_list, eviction_entry::condemned + 1> segments_; // by segment; 0 is unused

    std::uint64_t max_weight_ = 0;
    std::uint64_t max_window_ = 0;
    std::uint64_t max_protected_ = 0;
    std::uint64_t depth_ = 0; // the weight of the eldest entries, and of the history

    frequency_sketch sketch_;  // of keys that are not in the cache
    eviction_history history_; // of the window
    window_climber climber_;
    random_source random_;
    std::uint64_t seed_;
    std::uint64_t accesses_left_ = 1; // in this sample
    std::size_t sample_size_ = 0;     // counted() at the beginning of this sample
    unsigned samples_ = 0;            // since the frequencies were halved
    std::uint8_t age_ = 0;            // how often the frequencies were halved
    eviction_policy policy_;
};

template <class F>
void cache_eviction::clear(F f) noexcept
{
    for (segment_list& s : segments_) {
        s.weight = 0;
        s.entries.clear_and_dispose([&](eviction_entry* e) noexcept {
            e->state_.segment = eviction_entry::untracked;
            f(*e);
        });
    }
}

template <class F>
void cache_eviction::for_each(F f) const noexcept
{
    for (const segment_list& s : segments_) {
        for (const eviction_entry& e : s.entries)
            f(e);
    }
}

} // namespace turnstile::inline v0_1::detail
