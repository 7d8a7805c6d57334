// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/circuit_breaker_machine.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace turnstile::inline v0_1 {
namespace {

constexpr std::uint64_t million = 1'000'000;

// Whole millionths keep the comparison exact: a rate of 0.1 is reached by 3 of 30 calls.
std::uint64_t millionths(double share) noexcept
{
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(share * million)));
}

bool reaches(std::uint64_t part, std::uint64_t whole, std::uint64_t share) noexcept
{
    return part * million >= whole * share;
}

// The deadline of a probe without one; max() is that of a probe that is not out.
constexpr nanoseconds no_deadline = nanoseconds::max() - nanoseconds(1);

// A random number in [0, 1).
double random_fraction(detail::random_source& source) noexcept
{
    return static_cast<double>(source.next() >> 11) * 0x1.0p-53;
}

bool is_rate(double rate) noexcept { return rate > 0 && rate <= 1; }

// Returns the rule that the window breaks, or null.
struct window_check {
    const char* operator()(const consecutive_failures& w) const noexcept
    {
        return w.threshold != 0 ? nullptr
                                : "circuit_breaker: consecutive_failures::threshold must not be 0";
    }
    const char* operator()(const count_window& w) const noexcept
    {
        return w.size != 0 ? nullptr : "circuit_breaker: count_window::size must not be 0";
    }
    const char* operator()(const time_window& w) const noexcept
    {
        if (w.buckets == 0)
            return "circuit_breaker: time_window::buckets must not be 0";
        return w.length.count() >= std::int64_t(w.buckets)
                   ? nullptr
                   : "circuit_breaker: time_window::length must be 1 ns or more for each bucket";
    }
};

// Returns the rule that the options break, or null.
const char* broken_rule(const circuit_breaker_options& o) noexcept
{
    if (const char* rule = std::visit(window_check(), o.window))
        return rule;
    if (!is_rate(o.failure_rate))
        return "circuit_breaker: failure_rate must be in (0, 1]";
    if (!is_rate(o.slow_rate))
        return "circuit_breaker: slow_rate must be in (0, 1]";
    if (o.minimum_calls == 0)
        return "circuit_breaker: minimum_calls must not be 0";
    if (o.slow_after < nanoseconds::zero())
        return "circuit_breaker: slow_after must not be negative";
    if (o.probes == 0)
        return "circuit_breaker: probes must not be 0";
    if (o.success_threshold == 0)
        return "circuit_breaker: success_threshold must not be 0";
    if (o.probe_deadline <= nanoseconds::zero())
        return "circuit_breaker: probe_deadline must be positive";
    if (o.open_for < nanoseconds::zero())
        return "circuit_breaker: open_for must not be negative";
    if (!(o.open_growth >= 1)) // also true for NaN
        return "circuit_breaker: open_growth must be 1 or more";
    if (o.longest_open < nanoseconds::zero())
        return "circuit_breaker: longest_open must not be negative";
    if (!(o.jitter >= 0 && o.jitter <= 1))
        return "circuit_breaker: jitter must be in [0, 1]";
    return nullptr;
}

using any_window = std::variant<detail::failure_run, detail::count_ring, detail::time_ring>;

struct window_maker {
    any_window operator()(const consecutive_failures& w) const
    {
        return detail::failure_run(w.threshold);
    }
    any_window operator()(const count_window& w) const { return detail::count_ring(w.size); }
    any_window operator()(const time_window& w) const
    {
        return detail::time_ring(w.length, w.buckets);
    }
};

const circuit_breaker_options& checked(const circuit_breaker_options& options)
{
    detail::throw_if_wrong(broken_rule(options));
    return options;
}

} // namespace

bool circuit_breaker_machine::valid(const circuit_breaker_options& o) noexcept
{
    return broken_rule(o) == nullptr;
}

circuit_breaker_machine::circuit_breaker_machine(const circuit_breaker_options& o)
    : window_(std::visit(window_maker(), checked(o).window)),
      failure_share_(millionths(o.failure_rate)), slow_share_(millionths(o.slow_rate)),
      minimum_calls_(o.minimum_calls), slow_after_(o.slow_after),
      success_threshold_(o.success_threshold), probe_deadline_(o.probe_deadline),
      probe_deadlines_(o.probes, nanoseconds::max()), open_for_(o.open_for),
      longest_open_(std::max(o.longest_open, o.open_for)), open_growth_(o.open_growth),
      jitter_(o.jitter), has_generator_(static_cast<bool>(o.break_duration)),
      random_(o.seed ? *o.seed : detail::random_seed()),
      next_open_for_(o.open_for), break_{0, {}, {}}
{
    if (const auto* last = std::get_if<count_window>(&o.window))
        minimum_calls_ = std::min(minimum_calls_, last->size);
}

// ------------------------------------------------------------------------- calls ----

nanoseconds circuit_breaker_machine::seen(nanoseconds now) noexcept
{
    return latest_ = std::max(latest_, now);
}

bool circuit_breaker_machine::advance(nanoseconds now) noexcept
{
    now = seen(now);
    if (state_ == circuit_state::half_open)
        return earliest_deadline_ <= now && find_overdue(now);
    if (state_ != circuit_state::open || now < next_change())
        return false;
    enter(circuit_state::half_open);
    return true;
}

std::optional<circuit_breaker_ticket> circuit_breaker_machine::admit(nanoseconds now) noexcept
{
    if (state_ == circuit_state::closed)
        return circuit_breaker_ticket{generation_, times_calls() ? seen(now) : nanoseconds::zero()};
    if (state_ == circuit_state::open || probes_out_ == probe_deadlines_.size())
        return std::nullopt;
    now = seen(now);
    const auto deadline =
        std::find(probe_deadlines_.begin(), probe_deadlines_.end(), nanoseconds::max());
    *deadline = std::min(saturating_add(now, probe_deadline_), no_deadline);
    earliest_deadline_ = std::min(earliest_deadline_, *deadline);
    ++probes_out_;
    return circuit_breaker_ticket{generation_, now,
                                  static_cast<std::uint32_t>(deadline - probe_deadlines_.begin())};
}

bool circuit_breaker_machine::report(const circuit_breaker_ticket& ticket, call_outcome outcome,
                                     nanoseconds now) noexcept
{
    if (ticket.generation != generation_)
        return false;
    if (state_ == circuit_state::half_open)
        return report_probe(ticket, outcome, seen(now));
    if (outcome == call_outcome::ignored || forced_)
        return false;
    if (needs_time_for(outcome))
        now = seen(now);
    const bool slow = times_calls() && saturating_sub(now, ticket.started) >= slow_after_;
    return record(outcome == call_outcome::failure, slow, now);
}

bool circuit_breaker_machine::needs_time_for(call_outcome outcome) const noexcept
{
    if (state_ != circuit_state::closed || times_calls())
        return true;
    if (outcome != call_outcome::success)
        return outcome == call_outcome::failure;
    if (const auto* last = std::get_if<detail::count_ring>(&window_))
        return last->tally().calls + 1 ==
               minimum_calls_; // only that call makes the window large enough
    return std::holds_alternative<detail::time_ring>(window_);
}

bool circuit_breaker_machine::remembers_failures() const noexcept
{
    const auto* run = std::get_if<detail::failure_run>(&window_);
    return !run || run->tally().calls != 0;
}

bool circuit_breaker_machine::record(bool failed, bool slow, nanoseconds now) noexcept
{
    if (auto* run = std::get_if<detail::failure_run>(&window_)) {
        run->record(failed, slow);
        return run->is_full() && trip(now, run->tally());
    }
    if (auto* last = std::get_if<detail::count_ring>(&window_)) {
        last->record(failed, slow);
        return should_trip(last->tally()) && trip(now, last->tally());
    }
    auto& recent = std::get<detail::time_ring>(window_);
    recent.record(failed, slow, now);
    const call_tally counted = recent.tally(now);
    return should_trip(counted) && trip(now, counted);
}

bool circuit_breaker_machine::should_trip(const call_tally& tally) const noexcept
{
    return tally.calls >= minimum_calls_ && (reaches(tally.failures, tally.calls, failure_share_) ||
                                             reaches(tally.slow, tally.calls, slow_share_));
}

// ------------------------------------------------------------------------ probes ----

bool circuit_breaker_machine::report_probe(const circuit_breaker_ticket& ticket,
                                           call_outcome outcome, nanoseconds now) noexcept
{
    probe_deadlines_[ticket.probe] = nanoseconds::max();
    --probes_out_;
    if (outcome == call_outcome::ignored)
        return false;
    const bool slow = times_calls() && saturating_sub(now, ticket.started) >= slow_after_;
    if (outcome == call_outcome::failure || slow)
        return trip_again(now, slow);
    return ++probe_successes_ >= success_threshold_ && close(false);
}

// A probe without an outcome has failed at its deadline, even if `advance` comes later.
bool circuit_breaker_machine::find_overdue(nanoseconds now) noexcept
{
    earliest_deadline_ = *std::min_element(probe_deadlines_.begin(), probe_deadlines_.end());
    return earliest_deadline_ <= now && trip_again(earliest_deadline_, false);
}

// ------------------------------------------------------------------------ states ----

void circuit_breaker_machine::enter(circuit_state state) noexcept
{
    previous_ = std::exchange(state_, state);
    ++generation_;
    forced_ = false;
    pending_ = false;
    std::fill(probe_deadlines_.begin(), probe_deadlines_.end(), nanoseconds::max());
    earliest_deadline_ = nanoseconds::max();
    probes_out_ = 0;
    probe_successes_ = 0;
}

bool circuit_breaker_machine::close(bool forced) noexcept
{
    const bool changes = state_ != circuit_state::closed;
    enter(circuit_state::closed);
    forced_ = forced;
    std::visit([](auto& window) { window.clear(); }, window_);
    next_open_for_ = open_for_;
    break_.attempt = 0;
    return changes;
}

// Opens a half-open circuit after a failed probe.
bool circuit_breaker_machine::trip_again(nanoseconds at, bool slow) noexcept
{
    return trip(at, {.calls = probe_successes_ + 1, .failures = 1, .slow = slow ? 1U : 0U});
}

bool circuit_breaker_machine::trip(nanoseconds at, const call_tally& counted) noexcept
{
    break_.calls = counted;
    break_.proposed = propose_break();
    ++break_.attempt;
    enter(circuit_state::open);
    opened_at_ = at;
    open_until_ = saturating_add(at, break_.proposed);
    pending_ = has_generator_;
    return true;
}

nanoseconds circuit_breaker_machine::propose_break() noexcept
{
    using real = std::chrono::duration<long double, std::nano>;
    const nanoseconds whole = next_open_for_;
    next_open_for_ =
        std::min(longest_open_, saturating_nanoseconds(real(whole) * (long double)(open_growth_)));
    if (jitter_ == 0)
        return whole;
    return whole -
           saturating_nanoseconds(real(whole) * (long double)(jitter_ * random_fraction(random_)));
}

void circuit_breaker_machine::set_break_duration(std::uint64_t generation,
                                                 nanoseconds duration) noexcept
{
    if (generation != generation_ || !pending_)
        return;
    pending_ = false;
    open_until_ = saturating_add(opened_at_, std::max(duration, nanoseconds::zero()));
}

bool circuit_breaker_machine::force_open(nanoseconds now) noexcept
{
    const bool changes = state_ != circuit_state::open;
    enter(circuit_state::open);
    forced_ = true;
    opened_at_ = seen(now);
    return changes;
}

bool circuit_breaker_machine::force_closed(nanoseconds now) noexcept
{
    seen(now);
    return close(true);
}

bool circuit_breaker_machine::reset(nanoseconds now) noexcept
{
    seen(now);
    return close(false);
}

// ----------------------------------------------------------------------- queries ----

nanoseconds circuit_breaker_machine::next_change() const noexcept
{
    if (state_ == circuit_state::half_open)
        return earliest_deadline_ == no_deadline ? nanoseconds::max() : earliest_deadline_;
    const bool timed = state_ == circuit_state::open && !forced_ && !pending_;
    return timed ? open_until_ : nanoseconds::max();
}

nanoseconds circuit_breaker_machine::retry_after(nanoseconds now) const noexcept
{
    const bool has_room =
        state_ == circuit_state::half_open && probes_out_ != probe_deadlines_.size();
    if (state_ == circuit_state::closed || has_room)
        return nanoseconds::zero();
    // The outcome of the probes decides. Their deadline does not help: it opens the circuit again.
    if (state_ == circuit_state::half_open)
        return nanoseconds::max();
    const nanoseconds until = pending_ ? open_until_ : next_change();
    if (until == nanoseconds::max())
        return until;
    return std::max(nanoseconds::zero(), saturating_sub(until, std::max(now, latest_)));
}

call_tally circuit_breaker_machine::window(nanoseconds now) noexcept
{
    if (auto* recent = std::get_if<detail::time_ring>(&window_))
        return recent->tally(seen(now));
    if (const auto* last = std::get_if<detail::count_ring>(&window_))
        return last->tally();
    return std::get<detail::failure_run>(window_).tally();
}

} // namespace turnstile::inline v0_1
