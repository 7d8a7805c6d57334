// SPDX-License-Identifier: BSL-1.0
// The options, statistics and events of a circuit breaker, and the states of its circuit.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/resilience/call_outcome.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <variant>

namespace turnstile::inline v0_1 {

/// The state of a circuit.
enum class circuit_state : unsigned char {
    closed,    ///< Calls pass.
    open,      ///< Calls are refused.
    half_open, ///< A few calls pass, as probes; the others are refused.
};

template <>
inline constexpr auto detail::enum_names<circuit_state> =
    std::to_array<std::string_view>({"closed", "open", "half_open"});

/// The circuit opens after a number of consecutive failures. A slow call counts as a failure.
struct consecutive_failures {
    /// Consecutive failures that open the circuit. Must not be 0.
    std::uint32_t threshold = 5;
};

/// The circuit opens by the rates of failed and slow calls among the most recent calls.
struct count_window {
    /// Number of calls that the rates are computed from. Must not be 0.
    std::uint32_t size = 100;
};

/// The circuit opens by the rates of failed and slow calls in the most recent stretch of time.
struct time_window {
    /// The stretch of time. Must be at least 1 ns for each bucket.
    nanoseconds length = std::chrono::seconds(10);
    /// Number of parts that `length` is divided into. Calls are forgotten one part at a time, so
    /// the window covers between `length` less one part and `length`. Must not be 0.
    std::uint32_t buckets = 10;
};

/// The argument of `circuit_breaker_options::break_duration`. A break is a period in which the
/// circuit is open.
struct break_info {
    std::uint32_t attempt = 1; ///< Number of breaks since the circuit was last closed, this one
                               ///< included.
    nanoseconds proposed{};    ///< The duration that `open_for`, growth and jitter yield.
    /// The calls that opened the circuit: the calls in the window; or, if the circuit was
    /// half-open, the probes that have reported, among which a slow or overdue probe has failed.
    call_tally calls;
};

/// Options of a circuit breaker. The constructor checks them, and throws `system_error` with
/// `errc::invalid_argument` and a text that names the member.
struct circuit_breaker_options {
    /// The rule by which the circuit opens. The rules of its members are checked, too.
    std::variant<consecutive_failures, count_window, time_window> window = consecutive_failures{};
    /// Share of failed calls in the window that opens the circuit. Must be in (0, 1].
    double failure_rate = 0.5;
    /// Share of slow calls in the window that opens the circuit. Must be in (0, 1].
    double slow_rate = 1.0;
    /// A window with fewer calls does not open the circuit. Must not be 0. With a `count_window`
    /// at most its size counts.
    std::uint32_t minimum_calls = 10;
    /// A call that takes this long or longer is slow; a slow probe has failed. Must not be
    /// negative.
    nanoseconds slow_after = nanoseconds::max();

    /// Number of probes that may be outstanding while the circuit is half-open. Must not be 0.
    std::uint32_t probes = 1;
    /// Number of probes that must succeed to close the circuit; one failed probe opens it again.
    /// Must not be 0.
    std::uint32_t success_threshold = 1;
    /// A probe without an outcome after this time has failed; `nanoseconds::max()`: never. Must be
    /// positive.
    nanoseconds probe_deadline = std::chrono::seconds(30);

    /// How long the circuit stays open the first time. Must not be negative.
    nanoseconds open_for = std::chrono::seconds(5);
    /// Factor by which the open time grows each time the circuit opens again without having
    /// closed. Must be 1 or more.
    double open_growth = 1.0;
    /// Maximum of the open time; `open_for`, if that is longer. Must not be negative.
    nanoseconds longest_open = std::chrono::minutes(5);
    /// Random share of the open time: it lasts between `1 - jitter` and 1 times as long. Must be in
    /// [0, 1].
    double jitter = 0.0;
    /// Seed of the jitter. By default each breaker has a random one.
    std::optional<std::uint64_t> seed = std::nullopt;
    /// Determines the open time instead of the members above. It is called without a lock. If it
    /// throws, the proposed duration is used; a negative duration counts as zero.
    std::function<nanoseconds(const break_info&)> break_duration = nullptr;

    /// Classifies failed calls; successful calls are not passed to it. By default cancelled calls
    /// and calls that another stage refused (`is_refusal`) are ignored, and all others have failed.
    std::function<call_outcome(const failure&)> classify = nullptr;
};

/// A change of the state of a circuit.
struct circuit_breaker_event {
    circuit_state from; ///< The state before the change.
    circuit_state to;   ///< The state after the change.
};

/// The figures of a circuit breaker at one time. Totals count from its construction. Each reported
/// call is counted in exactly one of `successes`, `failures`, `ignored` and `late`.
struct circuit_breaker_stats {
    circuit_state state = circuit_state::closed; ///< The state of the circuit.
    bool forced = false;          ///< Whether `force_open` or `force_closed` is in effect.
    std::uint64_t successes = 0;  ///< Total of calls reported as successful.
    std::uint64_t failures = 0;   ///< Total of calls reported as failed.
    std::uint64_t ignored = 0;    ///< Total of calls reported as ignored.
    std::uint64_t late = 0;       ///< Total of calls reported after the state that admitted them
                                  ///< had ended.
    std::uint64_t rejected = 0;   ///< Total of calls that were refused.
    std::uint64_t opened = 0;     ///< Number of times the circuit has opened.
    call_tally window;            ///< The calls in the window.
    std::uint32_t probes_out = 0; ///< Outstanding probes.
    nanoseconds retry_after{};    ///< As `basic_circuit_breaker::retry_after`.
};

} // namespace turnstile::inline v0_1
