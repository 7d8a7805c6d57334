// SPDX-License-Identifier: BSL-1.0
// The decisions of a retry as a state machine without I/O or clock: times and failures go in,
// decisions come out. retry.hpp has the I/O object.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/resilience/backoff.hpp>
#include <turnstile/resilience/retry_budget.hpp>
#include <turnstile/resilience/retry_options.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace turnstile::inline v0_1 {

/// The attempts of one call. The caller evaluates `retry_if` and `retry_after`, and passes their
/// results to `failed`.
///
/// @par Thread safety
/// None: calls must not overlap.
class retry_machine {
public:
    /// The decision after a failed attempt.
    struct decision {
        retry_stop_reason stop; ///< `none` if there is another attempt.
        nanoseconds delay;      ///< The delay until that attempt.
    };

    /// A call that begins at `now`, with its first attempt.
    ///
    /// @param seed Seed of the jitter; `options.seed` is not used.
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if an option breaks its rule.
    TURNSTILE_EXPORT retry_machine(const retry_options& options, nanoseconds now,
                                   std::uint64_t seed);

    /// The number of the current attempt; the first is 1.
    std::uint32_t attempt() const noexcept { return attempt_; }

    /// The maximum duration of an attempt that begins at `now`: its own, or the rest of the total.
    TURNSTILE_EXPORT nanoseconds limit(nanoseconds now) const noexcept;

    /// Decides whether another attempt follows a failed one. If the decision is another attempt, it
    /// is the current one from then on.
    ///
    /// @param hint The delay that the service requests; it replaces the delay of the backoff.
    TURNSTILE_EXPORT decision failed(nanoseconds now, bool retryable,
                                     std::optional<nanoseconds> hint) noexcept;

    /// Undoes the decision for another attempt that does not take place: the attempt before it is
    /// the last one, and the budget gets its token back.
    TURNSTILE_EXPORT void take_back() noexcept;

private:
    std::uint32_t max_attempts_;
    std::uint32_t attempt_ = 1;
    nanoseconds attempt_timeout_;
    nanoseconds deadline_;
    std::shared_ptr<retry_budget> budget_;
    backoff_machine delays_;
};

} // namespace turnstile::inline v0_1
