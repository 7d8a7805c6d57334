// SPDX-License-Identifier: BSL-1.0
// The delay of a hedge as a state machine without I/O or clock: the durations of calls go in, the
// delay comes out. hedge.hpp has the I/O object.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/resilience/hedge_options.hpp>
#include <turnstile/resilience/latency_estimator.hpp>

namespace turnstile::inline v0_1 {

/// Determines after which delay a call is hedged, from the durations of earlier calls.
///
/// @par Thread safety
/// None: calls must not overlap.
class hedge_machine {
public:
    /// A machine that has learned nothing.
    ///
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if an option breaks its rule.
    TURNSTILE_EXPORT explicit hedge_machine(const hedge_options& options);

    /// Learns from a successful call.
    ///
    /// @param latency The duration of the call, from its start to its first success. The duration
    /// of the winning attempt alone would count slow calls as fast, because they are hedged.
    void learn(nanoseconds latency) noexcept { latencies_.add(latency); }

    /// The delay after which the next attempt begins.
    [[nodiscard]] TURNSTILE_EXPORT nanoseconds delay() const noexcept;

    /// The options given at construction.
    [[nodiscard]] const hedge_options& options() const noexcept { return options_; }

private:
    hedge_options options_;
    latency_estimator latencies_;
};

} // namespace turnstile::inline v0_1
