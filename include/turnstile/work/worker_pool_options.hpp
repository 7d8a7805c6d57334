// SPDX-License-Identifier: BSL-1.0
// The options and the statistics of a worker_pool, and the ways to shut it down.
#pragma once

#include <turnstile/channel/queue_policy.hpp>
#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>

namespace turnstile::inline v0_1 {

/// The effect of `worker_pool::async_shutdown` on the jobs that are queued.
enum class shutdown_mode {
    drain,   ///< They run.
    discard, ///< They do not run; `on_discard` receives them.
};

namespace detail {

template <>
inline constexpr std::array<std::string_view, 2> enum_names<shutdown_mode>{"drain", "discard"};

} // namespace detail

/// The options of a `worker_pool`. The functions are never called under a lock; they may use the
/// pool, but not destroy it. Exceptions of `on_error` and `on_discard` are ignored.
template <class Job>
struct worker_pool_options {
    /// Number of jobs that can run at the same time. Must not be 0.
    std::size_t workers = 1;
    /// Number of jobs that can be queued, not counting those that run. Must not be 0.
    std::size_t capacity = unbounded;
    /// Maximum running time of a job. A job that runs longer is cancelled, and fails with
    /// `errc::timed_out` if it then ends with `operation_aborted`. A handler that is a plain
    /// function is not cancelled. The maximum of the type sets no limit. Must be positive.
    nanoseconds job_timeout = nanoseconds::max();
    /// Receives each submitted job that has failed, and its exception, before the job is destroyed.
    /// It runs where the job has run. The failures of `async_run` go to its caller instead.
    std::function<void(Job&, std::exception_ptr)> on_error = {};
    /// Receives each submitted job that will not run because of a shutdown, once. It runs on the
    /// thread that discards the job: in the call of `async_shutdown` or in the destructor of the
    /// pool, or on a thread of the execution context after the deadline.
    std::function<void(Job&&)> on_discard = {};
    /// The priority of a job; without it, jobs run in the order in which they were submitted. The
    /// lowest runs first, and of equal ones the oldest. It is called once, when the job is
    /// submitted; its exceptions reach the caller.
    std::function<int(const Job&)> priority = {};
};

/// The figures of a `worker_pool` at one time. Totals count from its construction.
struct worker_pool_stats {
    std::size_t workers = 0;     ///< Number of jobs that can run at the same time.
    std::size_t queued = 0;      ///< Jobs that have not started.
    std::size_t running = 0;     ///< Jobs that run.
    std::size_t waiting = 0;     ///< Waiters of all operations.
    std::uint64_t done = 0;      ///< Total of jobs that ended without an error.
    std::uint64_t failed = 0;    ///< Total of jobs that ended with an error.
    std::uint64_t timed_out = 0; ///< Total of jobs that ran longer than `job_timeout`.
    std::uint64_t discarded = 0; ///< Total of queued jobs that were cancelled or discarded.
    nanoseconds wait_time{};     ///< Total time from submission to start, of jobs that started.
    nanoseconds run_time{};      ///< Total time from start to end, of jobs that ended.
};

} // namespace turnstile::inline v0_1
