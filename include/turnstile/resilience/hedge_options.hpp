// SPDX-License-Identifier: BSL-1.0
// The options, statistics and events of a hedge.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace turnstile::inline v0_1 {

class retry_budget;

/// Options of a hedge. Constructors and `async_hedge` check them, and throw `system_error` with
/// `errc::invalid_argument` and a text that names the member.
struct hedge_options {
    /// The number of successful calls from which on `percentile` is used.
    static constexpr std::uint64_t samples_needed = 20;

    /// The next attempt begins when the previous one has taken this long. Must not be negative.
    nanoseconds delay = std::chrono::milliseconds(100);
    /// If set, the delay is this quantile of the duration of earlier successful calls, as soon as
    /// there are `samples_needed` of them. Must be in (0, 1].
    std::optional<double> percentile = std::nullopt;
    /// Maximum number of attempts, the first included. Must be in [1, 16].
    std::uint32_t max_attempts = 2;
    /// If set, each further attempt takes a token of this budget, and each call adds its part, as
    /// the calls and attempts of a retry do. Without a token no further attempt begins.
    std::shared_ptr<retry_budget> budget = nullptr;
};

/// An event of an attempt other than the first.
struct hedge_event {
    /// The kind of an event.
    enum kind_type : unsigned char {
        started, ///< The attempt begins.
        won,     ///< The attempt has succeeded before all others.
    };

    kind_type kind;        ///< The kind of the event.
    std::uint32_t attempt; ///< The number of the attempt; the first one is 1.
    nanoseconds elapsed;   ///< The time since the call began.
};

template <>
inline constexpr auto detail::enum_names<hedge_event::kind_type> =
    std::to_array<std::string_view>({"started", "won"});

/// The figures of a hedge at one time. Totals count from its construction.
struct hedge_stats {
    std::uint64_t calls;     ///< Total of calls.
    std::uint64_t attempts;  ///< Total of attempts.
    std::uint64_t hedged;    ///< Calls with more than one attempt.
    std::uint64_t hedge_won; ///< Calls in which another attempt than the first succeeded first.
    nanoseconds delay;       ///< The delay of a call that begins at this time.
};

} // namespace turnstile::inline v0_1
