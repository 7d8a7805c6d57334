// SPDX-License-Identifier: BSL-1.0
// The options, statistics and events of a cache.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/work/eviction_policy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>

namespace turnstile::inline v0_1 {

/// The times after which an entry of a `cache` expires. `nanoseconds::max()`: never.
struct cache_lifetime {
    nanoseconds ttl = nanoseconds::max();      ///< Since the value was stored.
    nanoseconds idle_ttl = nanoseconds::max(); ///< Since the entry was last used.
};

/// The options of a `cache`. The constructor checks them, and throws `system_error` with
/// `errc::invalid_argument` and a text that names the member. Durations must not be negative.
///
/// The functions are called without a lock, by several threads at the same time, and may use the
/// cache. If one throws, the value is not stored: `put` throws the exception, and a load fails with
/// it.
template <class Key, class Value>
struct cache_options {
    static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

    /// Maximum number of entries. Must not be 0.
    std::size_t max_entries = unlimited;
    /// Maximum sum of the weights, instead of `max_entries`: one of the two must be unlimited. Must
    /// not be 0. Each shard has an equal part, and does not store an entry heavier than that.
    std::uint64_t max_weight = std::numeric_limits<std::uint64_t>::max();
    /// The weight of an entry. Required if `max_weight` is set, and only then. An entry of weight 0
    /// is never evicted.
    std::function<std::uint64_t(const Key&, const Value&)> weigher = nullptr;
    /// The rule by which a full cache chooses the entries that it evicts.
    eviction_policy policy = eviction_policy::w_tiny_lfu;

    /// An entry expires this time after its value was stored, exactly at the boundary.
    nanoseconds ttl = nanoseconds::max();
    /// An entry expires if it was not used for this time. `peek` and `contains` are no uses.
    nanoseconds idle_ttl = nanoseconds::max();
    /// The lifetime of one entry, instead of `ttl` and `idle_ttl`.
    std::function<cache_lifetime(const Key&, const Value&)> lifetime_of = nullptr;
    /// Each `ttl` is shortened by a random part of up to this, so that entries that were stored
    /// together do not expire together. Must be in [0, 1).
    double jitter = 0;

    /// An entry that is used this time before it expires, or later, is loaded again in the
    /// background.
    nanoseconds refresh_ahead = nanoseconds::zero();
    /// An expired value is handed out for this time, while it is loaded again in the background.
    nanoseconds stale_while_revalidate = nanoseconds::zero();
    /// An expired value is handed out for this time if the load fails.
    nanoseconds stale_if_error = nanoseconds::zero();
    /// A failure of a load is kept for this time, during which callers receive it without a load.
    /// It is not kept while there is a value that may be handed out.
    nanoseconds negative_ttl = nanoseconds::zero();
    /// Whether a failure is kept; by default each one that is no cancellation.
    std::function<bool(const failure&)> is_negative = nullptr;

    /// A load is cancelled after this time, and fails with `errc::timed_out`. Must not be 0.
    nanoseconds load_timeout = nanoseconds::max();
    /// Maximum number of loads that run at a time; further ones wait. A load must then not wait for
    /// another key of the same cache, whose load may need its place. Must not be 0.
    std::size_t max_loads = unlimited;

    /// The number of independent parts. 0: chosen by the cache, 1 for a small cache, at most 16.
    /// Must be 0 or a power of two, at most 256, and not exceed the maximum number or weight of the
    /// entries. A `local::cache` has one.
    std::size_t shards = 0;
};

/// The figures of a `cache` at one time. Totals count from its construction.
struct cache_stats {
    std::size_t entries = 0;        ///< Entries, also those that have expired and were not removed.
    std::uint64_t weight = 0;       ///< The sum of their weights; their number without a `weigher`.
    std::size_t loading = 0;        ///< Loads that run or wait for `max_loads`.
    std::size_t waiting = 0;        ///< Callers that wait for a load.
    std::uint64_t hits = 0;         ///< Total of calls that were answered without a wait.
    std::uint64_t stale_hits = 0;   ///< Those of them that received an expired value.
    std::uint64_t misses = 0;       ///< Total of calls that waited for a load.
    std::uint64_t loads = 0;        ///< Total of loads that were started.
    std::uint64_t loaded = 0;       ///< Total of loads that have produced a value.
    std::uint64_t failed = 0;       ///< Total of loads that have failed.
    std::uint64_t cancelled = 0;    ///< Total of loads that were cancelled.
    std::uint64_t stale_errors = 0; ///< Total of failed loads that a stale value has replaced.
    std::uint64_t evicted = 0;      ///< Total of entries that were evicted.
    std::uint64_t expired = 0;      ///< Total of expired entries that were removed.
};

/// The reason for which an entry was removed from a `cache`.
enum class removal_cause : unsigned char {
    evicted,     ///< The cache was full.
    expired,     ///< Its time was over.
    replaced,    ///< A newer value was stored.
    invalidated, ///< `invalidate`, `invalidate_if` or `clear` was called.
};

template <>
inline constexpr auto detail::enum_names<removal_cause> =
    std::to_array<std::string_view>({"evicted", "expired", "replaced", "invalidated"});

/// An event of a `cache`: an entry was removed. The removal of a failure (`negative_ttl`) is no
/// event.
template <class Key, class Value>
struct cache_event {
    const Key& key; ///< Valid during the call of the listener.
    std::shared_ptr<const Value> value;
    removal_cause cause{};
};

} // namespace turnstile::inline v0_1
