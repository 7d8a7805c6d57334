// SPDX-License-Identifier: BSL-1.0
// The options, the operations, the statistics and the events of a resource_pool.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/backoff.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/assert/source_location.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>

namespace turnstile::inline v0_1 {

/// The idle resource that the next caller receives.
enum class reuse_order {
    newest_first, ///< The one that was used last, so that a pool that is too large shrinks.
    oldest_first, ///< The one that is idle for the longest time, so that all are used equally.
};

/// The reason for which a resource left its pool.
enum class eviction_reason {
    idle_timeout, ///< It was idle for `idle_timeout`.
    max_lifetime, ///< Its lifetime is over.
    max_uses,     ///< It was used `max_uses` times.
    check_failed, ///< The check reported false, threw or timed out.
    reset_failed, ///< The reset threw or timed out.
    discarded,    ///< The holder called `discard()`.
    detached,     ///< The holder called `detach()`.
    requested,    ///< `evict_idle()` was called.
    resized,      ///< The pool had more than its new maximum.
    closed,       ///< The pool was closed or destroyed.
};

/// The kinds of events of a resource pool.
enum class resource_pool_event_kind {
    created,       ///< A resource was created.
    create_failed, ///< A creation threw or timed out; `error` has the cause.
    recovered,     ///< The first creation after failed ones has succeeded.
    evicted,       ///< A resource left the pool; see `reason`.
    lease_overdue, ///< A lease is held for `leak_threshold`; see `acquired_at`.
};

namespace detail {

template <>
inline constexpr std::array<std::string_view, 2> enum_names<reuse_order>{"newest_first",
                                                                         "oldest_first"};
template <>
inline constexpr std::array<std::string_view, 10> enum_names<eviction_reason>{
    "idle_timeout", "max_lifetime", "max_uses",  "check_failed", "reset_failed",
    "discarded",    "detached",     "requested", "resized",      "closed"};
template <>
inline constexpr std::array<std::string_view, 5> enum_names<resource_pool_event_kind>{
    "created", "create_failed", "recovered", "evicted", "lease_overdue"};

} // namespace detail

/// The options of a `resource_pool`. Durations must not be negative; `unlimited` is never reached.
struct resource_pool_options {
    /// The value of a duration that is never reached.
    static constexpr nanoseconds unlimited = nanoseconds::max();
    /// The value of a number without a limit.
    static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

    /// Number of resources that the pool keeps also without callers; it creates them at
    /// construction and in the place of those that leave. Must not exceed `max_size`.
    std::size_t min_size = 0;
    /// Maximum number of resources. Must not be 0.
    std::size_t max_size = 10;
    /// Number of resources that the pool creates at construction; `min_size` if that is larger.
    /// Must not exceed `max_size`.
    std::size_t initial_size = 0;
    /// A resource that is idle for this time is closed, unless `min_size` resources or fewer are
    /// left. Must not be 0.
    nanoseconds idle_timeout = unlimited;
    /// A resource is closed after this time: at once if it is idle, otherwise when it is returned.
    /// Must not be 0.
    nanoseconds max_lifetime = unlimited;
    /// Limit of one creation. Must not be 0.
    nanoseconds create_timeout = std::chrono::seconds(30);
    /// Limit of one check. Must not be 0.
    nanoseconds check_timeout = std::chrono::seconds(5);
    /// Limit of one reset. Must not be 0.
    nanoseconds reset_timeout = std::chrono::seconds(5);
    /// Limit of closing one resource. Must not be 0.
    nanoseconds close_timeout = std::chrono::seconds(5);
    /// Each resource lives up to this part of `max_lifetime` less, so that resources of the same
    /// age are not replaced at the same time. Must be in [0, 1).
    double lifetime_jitter = 0.1;
    /// Maximum number of leases of one resource. Must not be 0.
    std::uint64_t max_uses = std::numeric_limits<std::uint64_t>::max();
    /// A resource that was created, checked or returned within this time is leased without a check.
    /// With 0 every lease is checked; with `unlimited` none is.
    nanoseconds bypass_window = std::chrono::milliseconds(500);
    /// An idle resource is checked when this time has passed since it was created, checked or
    /// returned. Must not be 0.
    nanoseconds check_interval = unlimited;
    /// The order of reuse.
    reuse_order order = reuse_order::newest_first;
    /// Maximum number of callers that wait; further ones fail with `errc::rejected`.
    std::size_t max_waiters = no_limit;
    /// Maximum number of creations at a time. After a failure it is 1, until a creation succeeds.
    /// Must not be 0.
    std::size_t max_creating = no_limit;
    /// The delays between failed creations.
    backoff create_backoff =
        backoff::exponential(std::chrono::milliseconds(100)).capped(std::chrono::seconds(5));
    /// Whether, after a failed creation, all waiters and, until the next attempt, all new callers
    /// fail with its cause. Otherwise each failed creation fails the first waiter only.
    bool fail_fast = false;
    /// A lease that is held for this time is reported, once. Must not be 0.
    nanoseconds leak_threshold = unlimited;
};

/// The operations of a `resource_pool`. A null function is left out; `create` must not be null. The
/// pool copies the functions, and calls none of them under a lock or inside a call of the pool.
/// Two operations never run on the same resource at a time; on different resources they may run at
/// the same time.
template <class T>
struct resource_operations {
    /// Makes a resource. Fails by an exception.
    std::function<asio::awaitable<T>()> create{};
    /// Whether the resource can be used. An exception counts as false.
    std::function<asio::awaitable<bool>(T&)> check{};
    /// Prepares a returned resource for the next caller. If it throws, the resource is closed.
    std::function<asio::awaitable<void>(T&)> reset{};
    /// Ends a resource before it is destroyed. Exceptions are ignored.
    std::function<asio::awaitable<void>(T&)> close{};
};

/// The figures of a `resource_pool` at one time. Totals count from its construction.
struct resource_pool_stats {
    /// The number of values of `eviction_reason`.
    static constexpr std::size_t reasons = detail::enum_names<eviction_reason>.size();

    std::size_t size = 0;        ///< Resources, including those being created or closed.
    std::size_t idle = 0;        ///< Resources that can be leased.
    std::size_t in_use = 0;      ///< Resources that are leased.
    std::size_t creating = 0;    ///< Creations that run or are about to start.
    std::size_t waiting = 0;     ///< Callers that wait for a resource.
    std::uint64_t acquired = 0;  ///< Total of leases.
    std::uint64_t created = 0;   ///< Total of resources that were created.
    std::uint64_t failed = 0;    ///< Total of creations that failed.
    std::uint64_t timed_out = 0; ///< Total of callers whose limit has passed.
    std::uint64_t rejected = 0;  ///< Total of callers refused because of `max_waiters`.
    std::uint64_t overdue = 0;   ///< Total of leases that were reported as overdue.
    bool is_down = false;        ///< Whether the last creation has failed.
    nanoseconds wait_median{};   ///< Half of the callers waited for at most this time.
    nanoseconds wait_p90{};      ///< 90% of the callers waited for at most this time.
    nanoseconds wait_p99{};      ///< 99% of the callers waited for at most this time.
    std::array<std::uint64_t, reasons> evicted_by{}; ///< Totals by `eviction_reason`.

    /// Total of resources that left the pool for this reason.
    [[nodiscard]] std::uint64_t evicted(eviction_reason reason) const noexcept
    {
        return evicted_by[static_cast<std::size_t>(reason)];
    }
    /// Total of resources that left the pool.
    [[nodiscard]] std::uint64_t evicted() const noexcept
    {
        std::uint64_t sum = 0;
        for (const std::uint64_t n : evicted_by)
            sum += n;
        return sum;
    }
};

/// An event of a `resource_pool`, passed to its listeners.
struct resource_pool_event {
    resource_pool_event_kind kind{};      ///< What has happened.
    eviction_reason reason{};             ///< Of an eviction.
    error_code error{};                   ///< The cause of a failed creation.
    nanoseconds held{};                   ///< The age of an overdue lease.
    boost::source_location acquired_at{}; ///< Where an overdue lease was acquired.
};

} // namespace turnstile::inline v0_1
