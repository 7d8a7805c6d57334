// SPDX-License-Identifier: BSL-1.0
// The rules of a circuit breaker: time and outcomes go in, decisions come out. No I/O, no
// clock, no lock; circuit_breaker.hpp has the object that lives with an executor.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/util/random.hpp>
#include <turnstile/resilience/call_outcome.hpp>
#include <turnstile/resilience/detail/call_window.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

namespace turnstile::inline v0_1 {

/// Closed: calls pass. Open: calls are rejected. Half-open: a few calls pass, as probes.
enum class circuit_state : unsigned char { closed, open, half_open };

template <>
inline constexpr auto detail::enum_names<circuit_state> =
    std::to_array<std::string_view>({"closed", "open", "half_open"});

/// Opens after so many failures in a row. A slow call counts as a failure.
struct consecutive_failures {
    std::uint32_t threshold = 5;
};

/// Judges the rates of failed and of slow calls over the last `size` calls.
struct count_window {
    std::uint32_t size = 100;
};

/// Judges the rates over the last `length` of time, kept in so many `buckets`: what is
/// older than `length` less one bucket is forgotten bucket by bucket.
struct time_window {
    nanoseconds length = std::chrono::seconds(10);
    std::uint32_t buckets = 10;
};

/// What a break duration generator is told.
struct break_info {
    std::uint32_t attempt = 1; ///< How often it has opened without closing in between.
    nanoseconds proposed{};    ///< What `open_for`, growth and jitter have come to.
    /// What it has opened for: the calls in the window, or if it was half-open the probes that
    /// have reported, of which a slow or overdue one has failed.
    call_tally calls;
};

/// How a circuit breaker decides. Checked when one is made: `errc::invalid_argument` for a
/// zero threshold, window, bucket, minimum or probe, a rate outside (0, 1], a negative
/// duration, a probe deadline of zero, a growth under 1 or a jitter outside [0, 1].
struct breaker_options {
    std::variant<consecutive_failures, count_window, time_window> window = consecutive_failures{};
    /// The share of failed calls in the window at which it opens.
    double failure_rate = 0.5;
    /// The share of slow calls in the window at which it opens.
    double slow_rate = 1.0;
    /// With fewer calls than these in the window it does not open (at most a count window's size).
    std::uint32_t minimum_calls = 10;
    /// A call that takes this long or longer is slow; as a probe it has failed.
    nanoseconds slow_after = nanoseconds::max();

    /// How many probes may be out at a time while half-open.
    std::uint32_t probes = 1;
    /// How many of them must succeed for it to close; one failure opens it again.
    std::uint32_t success_threshold = 1;
    /// A probe that has not reported after this time has failed; `nanoseconds::max()`: never.
    nanoseconds probe_deadline = std::chrono::seconds(30);

    /// How long it stays open the first time.
    nanoseconds open_for = std::chrono::seconds(5);
    /// By how much longer each time it opens again without having closed.
    double open_growth = 1.0;
    /// The longest it grows to; `open_for` if that is longer.
    nanoseconds longest_open = std::chrono::minutes(5);
    /// The share of the open time that is random: it lasts from 1 - jitter to 1 times as long.
    double jitter = 0.0;
    /// What the random numbers start from; by default they differ from breaker to breaker.
    std::optional<std::uint64_t> seed = std::nullopt;
    /// Decides how long it stays open instead of the above. Called without a lock; if it
    /// throws, the proposed duration holds. Less than zero is zero.
    std::function<nanoseconds(const break_info&)> break_duration = nullptr;

    /// What a failed call says; not asked about others. By default a cancelled call and one
    /// that another stage refused (`is_refusal`) are ignored, and any other failure is one.
    std::function<call_outcome(const failure&)> classify = nullptr;
};

/// One admitted call: when, and under which generation of the breaker's state.
struct breaker_ticket {
    static constexpr std::uint32_t no_slot = std::numeric_limits<std::uint32_t>::max();

    std::uint64_t generation = 0;
    nanoseconds started{};
    std::uint32_t slot = no_slot; // of a probe
};

/// The state machine. Each state has a generation, and a report of an earlier one changes
/// nothing. Times are what the clock has counted since some start; one that goes back
/// counts as one that stands still.
///
/// Every function makes at most one change of state; `changed_from` says what it was before.
/// Call `advance` until it is false before anything else at a new time.
class TURNSTILE_EXPORT breaker_policy {
public:
    /// Throws `system_error` with `errc::invalid_argument` if an option is out of its range.
    explicit breaker_policy(const breaker_options& options);

    /// Whether the options can be used.
    [[nodiscard]] static bool valid(const breaker_options& options) noexcept;

    /// Does what time alone brings: the end of the open time, or of a probe's. True if that
    /// has changed the state: then there may be more.
    bool advance(nanoseconds now) noexcept;

    /// Lets a call pass, or not. Never changes the state.
    std::optional<breaker_ticket> admit(nanoseconds now) noexcept;

    /// The end of an admitted call; true if that has changed the state.
    bool report(const breaker_ticket& ticket, call_outcome outcome, nanoseconds now) noexcept;

    /// How long it is open, if `wants_break_duration` is true and this is still its generation.
    void set_break_duration(std::uint64_t generation, nanoseconds duration) noexcept;

    /// Opens it until `reset` or `force_closed`; true if it was not open.
    bool force_open(nanoseconds now) noexcept;
    /// Closes it, and keeps it so whatever is reported; true if it was not closed.
    bool force_closed(nanoseconds now) noexcept;
    /// Closes it, with nothing counted; true if it was not closed.
    bool reset(nanoseconds now) noexcept;

    [[nodiscard]] circuit_state state() const noexcept { return state_; }
    /// The state before the last change.
    [[nodiscard]] circuit_state changed_from() const noexcept { return previous_; }
    [[nodiscard]] bool is_forced() const noexcept { return forced_; }
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
    /// Whether it has just opened and a generator is to say for how long.
    [[nodiscard]] bool wants_break_duration() const noexcept { return pending_; }
    [[nodiscard]] const break_info& last_break() const noexcept { return break_; }

    /// When time alone changes the state; never: `nanoseconds::max()`.
    [[nodiscard]] nanoseconds next_change() const noexcept;
    /// How long until a call may be admitted again; zero if one would be now, and
    /// `nanoseconds::max()` if time alone does not lead to it.
    [[nodiscard]] nanoseconds retry_after(nanoseconds now) const noexcept;

    /// What is counted in the window.
    [[nodiscard]] call_tally window(nanoseconds now) noexcept;
    [[nodiscard]] std::uint32_t probes_out() const noexcept { return probes_out_; }

    /// Whether calls are timed. If not, nobody needs to read a clock to start one.
    [[nodiscard]] bool times_calls() const noexcept { return slow_after_ != nanoseconds::max(); }
    /// Whether a report of this outcome may need to know the time.
    [[nodiscard]] bool needs_time_for(call_outcome outcome) const noexcept;
    /// Whether successes leave no trace while closed with no failure counted.
    [[nodiscard]] bool forgets_successes() const noexcept
    {
        return !times_calls() && std::holds_alternative<detail::failure_run>(window_);
    }
    /// Whether there is a failure that a success would make it forget.
    [[nodiscard]] bool remembers_failures() const noexcept;

private:
    void enter(circuit_state state) noexcept;
    bool close(bool forced) noexcept;
    bool trip(nanoseconds at, const call_tally& counted) noexcept;
    bool trip_again(nanoseconds at, bool slow) noexcept;
    nanoseconds propose_break() noexcept;
    bool should_trip(const call_tally& tally) const noexcept;
    bool record(bool failed, bool slow, nanoseconds now) noexcept;
    bool report_probe(const breaker_ticket& ticket, call_outcome outcome, nanoseconds now) noexcept;
    bool find_overdue(nanoseconds now) noexcept;
    nanoseconds seen(nanoseconds now) noexcept;

    std::variant<detail::failure_run, detail::count_ring, detail::time_ring> window_;
    std::uint64_t failure_share_; // in millionths, as all shares
    std::uint64_t slow_share_;
    std::uint32_t minimum_calls_;
    nanoseconds slow_after_;

    std::uint32_t success_threshold_;
    nanoseconds probe_deadline_;
    std::vector<nanoseconds> slots_; // deadlines of the probes, max() for a free one
    std::uint32_t probes_out_ = 0;
    std::uint32_t probe_successes_ = 0;
    nanoseconds earliest_deadline_ = nanoseconds::max(); // or earlier

    nanoseconds open_for_;
    nanoseconds longest_open_;
    double open_growth_;
    double jitter_;
    bool has_generator_;
    detail::random_fraction random_;

    nanoseconds next_open_for_;
    break_info break_;
    nanoseconds opened_at_{};
    nanoseconds open_until_{};
    nanoseconds latest_ = nanoseconds::min();
    std::uint64_t generation_ = 1;
    circuit_state state_ = circuit_state::closed;
    circuit_state previous_ = circuit_state::closed;
    bool forced_ = false;
    bool pending_ = false;
};

} // namespace turnstile::inline v0_1
