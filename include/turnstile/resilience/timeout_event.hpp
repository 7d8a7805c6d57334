// SPDX-License-Identifier: BSL-1.0
// timeout_event and timeout_stats: the event that listeners of a timeout receive, and the figures
// that its stats() returns. timeout.hpp, which has the object, includes this header; so does the
// code that runs the calls.
#pragma once

#include <turnstile/core/clock.hpp>

#include <cstdint>

namespace turnstile::inline v0_1 {

/// A call that has timed out.
struct timeout_event {
    nanoseconds limit; ///< The time limit of the call.
};

/// The figures of a timeout at one time. Totals count from its construction.
struct timeout_stats {
    std::uint64_t calls;     ///< Total of calls.
    std::uint64_t timed_out; ///< Total of calls that completed with `errc::timed_out`.
};

} // namespace turnstile::inline v0_1
