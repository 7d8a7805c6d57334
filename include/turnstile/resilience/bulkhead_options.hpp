// SPDX-License-Identifier: BSL-1.0
// The options, statistics and events of a bulkhead.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/resilience/adaptive_limit.hpp>
#include <turnstile/resilience/call_outcome.hpp>

#include <cstdint>
#include <functional>

namespace turnstile::inline v0_1 {

/// Options of a bulkhead. The constructor checks them, and throws `system_error` with
/// `errc::invalid_argument` and a text that names the member.
struct bulkhead_options {
    /// Maximum number of calls inside the bulkhead; the first value of an adaptive limit. Must be
    /// in [1, `limit_bound`).
    std::uint64_t limit = 10;
    /// Maximum number of waiters. Further calls fail with `errc::rejected`. 0: no call waits.
    std::uint64_t max_waiters = 100;
    /// Maximum time of a wait; after it the call fails with `errc::timed_out`. Must not be
    /// negative; `nanoseconds::max()`: no limit.
    nanoseconds max_wait = nanoseconds::max();
    /// `aimd_options` or `gradient_options` for a limit that adapts to the service. Their rules are
    /// checked, too.
    limit_options adaptive = fixed_limit{};
    /// Classifies failed calls for an adaptive limit; successful calls are not passed to it. A
    /// failure counts as dropped, and an ignored call has no effect. By default cancelled calls and
    /// calls that another stage refused (`is_refusal`) are ignored, and all others have failed.
    std::function<call_outcome(const failure&)> classify = nullptr;
};

/// A change of the limit of a bulkhead.
struct bulkhead_event {
    std::uint64_t from; ///< The limit before the change.
    std::uint64_t to;   ///< The limit after the change.
};

/// The figures of a bulkhead at one time. Totals count from its construction.
struct bulkhead_stats {
    std::uint64_t limit = 0;     ///< Maximum number of calls inside.
    std::uint64_t in_flight = 0; ///< Calls inside; above the limit for a while after it has shrunk.
    std::uint64_t waiting = 0;   ///< Waiters.
    std::uint64_t rejected = 0;  ///< Total of calls refused because the queue was full.
    std::uint64_t timed_out = 0; ///< Total of calls that waited for `max_wait`.
    std::uint64_t failures = 0;  ///< Total of calls reported as failed to an adaptive limit.
};

} // namespace turnstile::inline v0_1
