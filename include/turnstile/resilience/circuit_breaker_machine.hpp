// SPDX-License-Identifier: BSL-1.0
// The rules of a circuit breaker as a state machine without I/O, clock or lock: times and outcomes
// go in, decisions come out. circuit_breaker.hpp has the I/O object.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/random.hpp>
#include <turnstile/resilience/call_outcome.hpp>
#include <turnstile/resilience/circuit_breaker_options.hpp>
#include <turnstile/resilience/detail/circuit_breaker_window.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

namespace turnstile::inline v0_1 {

/// A call that a machine has admitted.
struct circuit_breaker_ticket {
    /// The value of `probe` for a call that is no probe.
    static constexpr std::uint32_t no_probe = std::numeric_limits<std::uint32_t>::max();

    std::uint64_t generation = 0;   ///< The generation of the state that admitted the call.
    nanoseconds started{};          ///< When it was admitted; zero if calls are not timed.
    std::uint32_t probe = no_probe; ///< The number of a probe.
};

/// The state machine of a circuit breaker.
///
/// Each state has a generation; a report for an earlier generation changes nothing. Times are
/// counted from an arbitrary origin. A time before the latest one counts as the latest one.
///
/// Each function changes the state at most once. Before any other call at a new time, call
/// `advance` until it returns false.
///
/// @par Thread safety
/// None: calls must not overlap.
class TURNSTILE_EXPORT circuit_breaker_machine {
public:
    /// A closed circuit.
    ///
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if an option breaks its rule; the text
    /// names the member.
    explicit circuit_breaker_machine(const circuit_breaker_options& options);

    /// Returns whether all options keep their rules.
    [[nodiscard]] static bool valid(const circuit_breaker_options& options) noexcept;

    /// Makes the changes that are due at `now`: the end of the open time, or the deadline of a
    /// probe. Returns whether the state has changed; if so, another change may be due.
    bool advance(nanoseconds now) noexcept;

    /// Admits a call, or returns nothing to refuse it. Never changes the state.
    std::optional<circuit_breaker_ticket> admit(nanoseconds now) noexcept;

    /// Reports the outcome of an admitted call. Returns whether the state has changed.
    bool report(const circuit_breaker_ticket& ticket, call_outcome outcome,
                nanoseconds now) noexcept;

    /// Sets the duration of the current break, if `wants_break_duration` is true and `generation`
    /// is the current one.
    void set_break_duration(std::uint64_t generation, nanoseconds duration) noexcept;

    /// Opens the circuit until `reset` or `force_closed`. Returns whether the state has changed.
    bool force_open(nanoseconds now) noexcept;
    /// Closes the circuit until `reset` or `force_open`, regardless of reports. Returns whether the
    /// state has changed.
    bool force_closed(nanoseconds now) noexcept;
    /// Closes the circuit and clears the window. Returns whether the state has changed.
    bool reset(nanoseconds now) noexcept;

    /// The state of the circuit.
    [[nodiscard]] circuit_state state() const noexcept { return state_; }
    /// The state before the most recent change.
    [[nodiscard]] circuit_state changed_from() const noexcept { return previous_; }
    /// Whether `force_open` or `force_closed` is in effect.
    [[nodiscard]] bool is_forced() const noexcept { return forced_; }
    /// The generation of the current state.
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
    /// Whether the circuit has opened, and `options.break_duration` has yet to be called for it.
    [[nodiscard]] bool wants_break_duration() const noexcept { return pending_; }
    /// The argument for `options.break_duration`.
    [[nodiscard]] const break_info& last_break() const noexcept { return break_; }

    /// The time at which `advance` will change the state; `nanoseconds::max()` if time alone does
    /// not change it.
    [[nodiscard]] nanoseconds next_change() const noexcept;
    /// The time until a call may be admitted: zero if one would be admitted at `now`, and
    /// `nanoseconds::max()` if that does not depend on time alone.
    [[nodiscard]] nanoseconds retry_after(nanoseconds now) const noexcept;

    /// The calls in the window.
    [[nodiscard]] call_tally window(nanoseconds now) noexcept;
    /// The number of outstanding probes.
    [[nodiscard]] std::uint32_t probes_out() const noexcept { return probes_out_; }

    /// Whether calls are timed. If not, the time passed to `admit` is not used while closed.
    [[nodiscard]] bool times_calls() const noexcept { return slow_after_ != nanoseconds::max(); }
    /// Whether a report of this outcome uses the time.
    [[nodiscard]] bool needs_time_for(call_outcome outcome) const noexcept;
    /// Whether a success changes nothing while the circuit is closed and no failure is counted.
    [[nodiscard]] bool forgets_successes() const noexcept
    {
        return !times_calls() && std::holds_alternative<detail::failure_run>(window_);
    }
    /// Whether a failure is counted that a success would clear.
    [[nodiscard]] bool remembers_failures() const noexcept;

private:
    void enter(circuit_state state) noexcept;
    bool close(bool forced) noexcept;
    bool trip(nanoseconds at, const call_tally& counted) noexcept;
    bool trip_again(nanoseconds at, bool slow) noexcept;
    nanoseconds propose_break() noexcept;
    bool should_trip(const call_tally& tally) const noexcept;
    bool record(bool failed, bool slow, nanoseconds now) noexcept;
    bool report_probe(const circuit_breaker_ticket& ticket, call_outcome outcome,
                      nanoseconds now) noexcept;
    bool find_overdue(nanoseconds now) noexcept;
    nanoseconds seen(nanoseconds now) noexcept;

    std::variant<detail::failure_run, detail::count_ring, detail::time_ring> window_;
    std::uint64_t failure_share_; // in millionths
    std::uint64_t slow_share_;    // in millionths
    std::uint32_t minimum_calls_;
    nanoseconds slow_after_;

    std::uint32_t success_threshold_;
    nanoseconds probe_deadline_;
    std::vector<nanoseconds> probe_deadlines_; // by probe; max() for a probe that is not out
    std::uint32_t probes_out_ = 0;
    std::uint32_t probe_successes_ = 0;
    nanoseconds earliest_deadline_ = nanoseconds::max(); // of the probes; a lower bound

    nanoseconds open_for_;
    nanoseconds longest_open_;
    double open_growth_;
    double jitter_;
    bool has_generator_;
    detail::random_source random_;

    nanoseconds next_open_for_;
    break_info break_;
    nanoseconds opened_at_{};
    nanoseconds open_until_{};
    nanoseconds latest_ = nanoseconds::min();
    std::uint64_t generation_ = 1;
    circuit_state state_ = circuit_state::closed;
    circuit_state previous_ = circuit_state::closed;
    bool forced_ = false;
    bool pending_ = false; // see wants_break_duration()
};

} // namespace turnstile::inline v0_1
