// SPDX-License-Identifier: BSL-1.0
// The options, statistics and events of a keyed circuit breaker.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/resilience/circuit_breaker_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace turnstile::inline v0_1 {

/// The options of a keyed circuit breaker, besides those of the circuits. The constructor checks
/// them, and throws `system_error` with `errc::invalid_argument` and a text that names the member.
struct keyed_circuit_breaker_options {
    /// A circuit that has not been used for this time is forgotten, even if it remembers calls. An
    /// open circuit is kept until its open time is over. Must be positive.
    nanoseconds forget_after = std::chrono::minutes(10);
};

/// The figures of a keyed circuit breaker, for all keys together. Totals count from its
/// construction. Each reported call is counted in exactly one of `successes`, `failures`, `ignored`
/// and `late`.
struct keyed_circuit_breaker_stats {
    std::size_t keys = 0;        ///< As `basic_keyed_circuit_breaker::size`.
    std::uint64_t successes = 0; ///< Total of calls reported as successful.
    std::uint64_t failures = 0;  ///< Total of calls reported as failed.
    std::uint64_t ignored = 0;   ///< Total of calls reported as ignored.
    std::uint64_t late = 0;      ///< Total of calls reported after the state that admitted them had
                                 ///< ended.
    std::uint64_t rejected = 0;  ///< Total of calls that were refused.
    std::uint64_t opened = 0;    ///< Number of times a circuit has opened.
};

/// A change of the state of one circuit of a keyed circuit breaker.
template <class Key>
struct keyed_circuit_breaker_event {
    const Key& key;     ///< The key of the circuit; valid during the call of the listener.
    circuit_state from; ///< The state before the change.
    circuit_state to;   ///< The state after the change.
};

} // namespace turnstile::inline v0_1
