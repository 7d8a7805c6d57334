// SPDX-License-Identifier: BSL-1.0
// The options and the statistics of a task_group, and the names of its children.
#pragma once

#include <turnstile/core/enum_names.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace turnstile::inline v0_1 {

/// The effect of a child's end on its group.
enum class join_policy {
    fail_fast,     ///< The first failure closes the group and cancels the other children.
    wait_all,      ///< Every child runs to its end; the failures are reported together.
    first_success, ///< The first success closes the group and cancels the other children.
};

namespace detail {

template <>
inline constexpr std::array<std::string_view, 3> enum_names<join_policy>{"fail_fast", "wait_all",
                                                                         "first_success"};

} // namespace detail

/// The options of a `task_group`.
struct task_group_options {
    /// The value of `limit` for a group without a limit.
    static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

    /// Maximum number of places. A child has a place while it runs; in a `task_group<T>` until its
    /// result was taken. Must not be 0.
    std::size_t limit = unlimited;
    /// The effect of a child's end on the others.
    join_policy policy = join_policy::fail_fast;
};

/// The figures of a `task_group` at one time. Totals count from its construction.
struct task_group_stats {
    std::size_t running = 0;     ///< Children that run.
    std::size_t queued = 0;      ///< Children of `spawn_when_free` that wait for a place.
    std::size_t results = 0;     ///< Results that were not taken.
    std::size_t waiting = 0;     ///< Waiters of `async_join`, `async_spawn` and `async_next`.
    std::uint64_t spawned = 0;   ///< Total of children that were started.
    std::uint64_t succeeded = 0; ///< Total of children that ended without an error.
    std::uint64_t failed = 0;    ///< Total of children that ended with an error.
    std::uint64_t cancelled = 0; ///< Total of children that the group cancelled, or never started.
};

/// A running child of a `task_group`.
struct task_group_child {
    std::uint64_t id = 0; ///< 1 for the first child of the group.
    std::string name;     ///< The name that was passed to `spawn`; may be empty.
};

} // namespace turnstile::inline v0_1
