// SPDX-License-Identifier: BSL-1.0
// The statistics of single_flight. They are a header of their own because the state of the flights,
// which the cache shares, counts them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace turnstile::inline v0_1 {

/// The figures of a `single_flight` at one time. Totals count from its construction.
struct single_flight_stats {
    std::size_t loading = 0;     ///< Loads that run.
    std::size_t waiting = 0;     ///< Callers that wait for a load.
    std::uint64_t started = 0;   ///< Total of loads that were started.
    std::uint64_t joined = 0;    ///< Total of callers that joined a load of another caller.
    std::uint64_t succeeded = 0; ///< Total of loads that have produced a value.
    std::uint64_t failed = 0;    ///< Total of loads that have failed.
    std::uint64_t cancelled = 0; ///< Total of loads that were cancelled, and have not succeeded.
};

} // namespace turnstile::inline v0_1
