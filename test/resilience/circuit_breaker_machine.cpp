// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/circuit_breaker_machine.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <optional>
#include <ostream>
#include <vector>

namespace turnstile {

std::ostream& operator<<(std::ostream& out, circuit_state state)
{
    constexpr const char* names[] = {"closed", "open", "half-open"};
    return out << names[static_cast<int>(state)];
}

} // namespace turnstile

namespace {

using namespace std::chrono_literals;
using turnstile::call_outcome;
using turnstile::call_tally;
using turnstile::circuit_breaker_machine;
using turnstile::circuit_breaker_options;
using turnstile::circuit_breaker_ticket;
using turnstile::circuit_state;
using turnstile::nanoseconds;

// A machine, and a clock that the test moves.
struct driven {
    explicit driven(const circuit_breaker_options& options) : machine(options) {}

    void pass(nanoseconds by)
    {
        now += by;
        catch_up();
    }
    void catch_up()
    {
        while (machine.advance(now)) {
        }
    }
    std::optional<circuit_breaker_ticket> admit()
    {
        catch_up();
        return machine.admit(now);
    }
    void report(const circuit_breaker_ticket& ticket, call_outcome outcome)
    {
        catch_up();
        machine.report(ticket, outcome, now);
    }
    // Makes a call of this duration; returns whether it was admitted.
    bool call(call_outcome outcome, nanoseconds lasting = 0ns)
    {
        const auto ticket = admit();
        if (!ticket)
            return false;
        pass(lasting);
        report(*ticket, outcome);
        return true;
    }
    bool succeed() { return call(call_outcome::success); }
    bool fail() { return call(call_outcome::failure); }
    void fail(int times)
    {
        for (int i = 0; i != times; ++i)
            BOOST_TEST(fail());
    }
    void succeed(int times)
    {
        for (int i = 0; i != times; ++i)
            BOOST_TEST(succeed());
    }
    circuit_state state() const { return machine.state(); }

    circuit_breaker_machine machine;
    nanoseconds now = 1h;
};

circuit_breaker_options three_in_a_row()
{
    return {.window = turnstile::consecutive_failures{3}, .open_for = 50ms};
}

circuit_breaker_options last(std::uint32_t size, double rate, std::uint32_t minimum)
{
    return {.window = turnstile::count_window{size},
            .failure_rate = rate,
            .minimum_calls = minimum,
            .open_for = 50ms};
}

BOOST_AUTO_TEST_SUITE(circuit_breaker_machine_)

BOOST_AUTO_TEST_CASE(it_opens_exactly_at_the_threshold)
{
    driven b(three_in_a_row());
    b.fail(2);
    BOOST_TEST(b.state() == circuit_state::closed);
    b.fail(1);
    BOOST_TEST(b.state() == circuit_state::open);
    BOOST_TEST(b.machine.changed_from() == circuit_state::closed);
    BOOST_TEST(!b.fail());
}

BOOST_AUTO_TEST_CASE(a_success_ends_a_row_of_failures)
{
    driven b(three_in_a_row());
    for (int i = 0; i != 10; ++i) {
        b.fail(2);
        b.succeed(1);
    }
    BOOST_TEST(b.state() == circuit_state::closed);
}

BOOST_AUTO_TEST_CASE(what_is_ignored_neither_counts_nor_ends_a_row)
{
    driven b(three_in_a_row());
    b.fail(2);
    BOOST_TEST(b.call(call_outcome::ignored));
    BOOST_TEST(b.state() == circuit_state::closed);
    b.fail(1);
    BOOST_TEST(b.state() == circuit_state::open);
}

BOOST_AUTO_TEST_CASE(a_slow_call_counts_as_a_failure_in_a_row)
{
    auto options = three_in_a_row();
    options.slow_after = 1s;
    driven b(options);
    b.fail(1);
    BOOST_TEST(b.call(call_outcome::success, 1s));
    BOOST_TEST(b.state() == circuit_state::closed);
    BOOST_TEST(b.call(call_outcome::success, 1s - 1ns));
    b.fail(2);
    BOOST_TEST(b.state() == circuit_state::closed);
    BOOST_TEST(b.call(call_outcome::success, 2s));
    BOOST_TEST(b.state() == circuit_state::open);
}

BOOST_AUTO_TEST_CASE(below_the_minimum_of_calls_it_does_not_open)
{
    driven b(last(100, 0.5, 10));
    b.fail(9);
    BOOST_TEST(b.state() == circuit_state::closed);
    b.fail(1);
    BOOST_TEST(b.state() == circuit_state::open);
}

BOOST_AUTO_TEST_CASE(the_call_that_makes_up_the_minimum_may_be_a_success)
{
    driven b(last(100, 0.5, 10));
    b.fail(5);
    b.succeed(4);
    BOOST_TEST(b.state() == circuit_state::closed);
    BOOST_TEST(b.machine.needs_time_for(call_outcome::success));
    b.succeed(1);
    BOOST_TEST(b.state() == circuit_state::open);
}

BOOST_AUTO_TEST_CASE(a_minimum_above_the_window_is_the_window)
{
    driven b(last(4, 1.0, 10));
    b.fail(3);
    BOOST_TEST(b.state() == circuit_state::closed);
    b.fail(1);
    BOOST_TEST(b.state() == circuit_state::open);
}

BOOST_AUTO_TEST_CASE(rates_are_exact)
{
    // In floating point a tenth of 30 is a little more than 3.
    for (int tenths = 1; tenths <= 10; ++tenths) {
        for (int size : {10, 20, 30, 70, 90, 110}) {
            const int enough = size * tenths / 10;
            driven b(last(static_cast<std::uint32_t>(size), tenths / 10.0,
                          static_cast<std::uint32_t>(size)));
            b.succeed(size - enough + 1);
            b.fail(enough - 1);
            BOOST_TEST(b.state() == circuit_state::closed);
            // The window slides on by as many successes as are oldest in it, so the next
            // failure takes the place of a success.
            b.fail(1);
            BOOST_TEST(b.state() == circuit_state::open);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_count_window_forgets_the_oldest_call)
{
    driven b(last(4, 0.5, 4));
    b.fail(1);
    b.succeed(3);
    b.fail(1); // the first is forgotten
    BOOST_TEST(b.state() == circuit_state::closed);
    BOOST_TEST((b.machine.window(b.now) == turnstile::call_tally{4, 1, 0}));
    b.fail(1);
    BOOST_TEST(b.state() == circuit_state::open);
    BOOST_TEST((b.machine.last_break().calls == turnstile::call_tally{4, 2, 0}));
}

BOOST_AUTO_TEST_CASE(slow_calls_open_it_at_their_own_rate)
{
    auto options = last(10, 1.0, 4);
    options.slow_rate = 0.5;
    options.slow_after = 1s;
    driven b(options);
    BOOST_TEST(b.call(call_outcome::success, 1s));
    BOOST_TEST(b.call(call_outcome::success, 1s - 1ns));
    BOOST_TEST(b.call(call_outcome::success, 0s));
    BOOST_TEST(b.state() == circuit_state::closed);
    BOOST_TEST(b.call(call_outcome::success, 3s));
    BOOST_TEST(b.state() == circuit_state::open);
    BOOST_TEST((b.machine.last_break().calls == turnstile::call_tally{4, 0, 2}));
}

BOOST_AUTO_TEST_CASE(a_time_window_forgets_what_is_old)
{
    driven b({.window = turnstile::time_window{10s, 10}, .failure_rate = 0.5, .minimum_calls = 4});
    b.fail(3);
    b.pass(9s);
    BOOST_TEST(b.machine.window(b.now).calls == 3U);
    b.pass(1s); // an hour and ten seconds: the first bucket is gone
    BOOST_TEST(b.machine.window(b.now).calls == 0U);
    b.fail(3);
    BOOST_TEST(b.state() == circuit_state::closed);
    b.pass(5s);
    b.fail(1);
    BOOST_TEST(b.state() == circuit_state::open);
    BOOST_TEST((b.machine.last_break().calls == turnstile::call_tally{4, 4, 0}));
}

BOOST_AUTO_TEST_CASE(a_time_window_forgets_bucket_by_bucket)
{
    driven b({.window = turnstile::time_window{5s, 5}, .failure_rate = 1.0, .minimum_calls = 99});
    for (int i = 0; i != 5; ++i) {
        b.fail(i + 1);
        b.pass(1s);
    }
    const std::uint64_t left[] = {14, 12, 9, 5, 0, 0};
    for (std::uint64_t calls : left) {
        BOOST_TEST(b.machine.window(b.now).calls == calls);
        b.pass(1s);
    }
    b.fail(2);
    b.pass(100h);
    BOOST_TEST(b.machine.window(b.now).calls == 0U);
}

BOOST_AUTO_TEST_CASE(a_time_window_works_before_the_clocks_zero)
{
    driven b({.window = turnstile::time_window{5s, 5}, .failure_rate = 1.0, .minimum_calls = 99});
    b.now = -2500ms;
    b.fail(1);
    b.pass(4s);
    BOOST_TEST(b.machine.window(b.now).calls == 1U);
    b.pass(1s);
    BOOST_TEST(b.machine.window(b.now).calls == 0U);
}

// ------------------------------------------------------------- open and half-open ----

BOOST_AUTO_TEST_CASE(it_rejects_until_the_open_time_is_over_to_the_nanosecond)
{
    driven b(three_in_a_row());
    b.fail(3);
    BOOST_TEST((b.machine.retry_after(b.now) == 50ms));
    BOOST_TEST((b.machine.next_change() == b.now + 50ms));
    b.pass(50ms - 1ns);
    BOOST_TEST(!b.admit());
    BOOST_TEST((b.machine.retry_after(b.now) == 1ns));
    b.pass(1ns);
    BOOST_TEST(b.state() == circuit_state::half_open);
    BOOST_TEST(b.admit().has_value());
}

BOOST_AUTO_TEST_CASE(no_more_than_so_many_probes_are_out)
{
    auto options = three_in_a_row();
    options.probes = 3;
    driven b(options);
    b.fail(3);
    b.pass(50ms);
    std::vector<circuit_breaker_ticket> probes;
    for (int i = 0; i != 100; ++i) {
        if (auto ticket = b.admit())
            probes.push_back(*ticket);
    }
    BOOST_TEST(probes.size() == 3U);
    BOOST_TEST(b.machine.probes_out() == 3U);
    BOOST_TEST((b.machine.retry_after(b.now) == nanoseconds::max())); // the probes decide
    b.report(probes[1], call_outcome::ignored);
    BOOST_TEST((b.machine.retry_after(b.now) == 0s));
    BOOST_TEST(b.admit().has_value());
    BOOST_TEST(!b.admit().has_value());
}

BOOST_AUTO_TEST_CASE(enough_successful_probes_close_it)
{
    auto options = three_in_a_row();
    options.probes = 2;
    options.success_threshold = 3;
    driven b(options);
    b.fail(3);
    b.pass(50ms);
    const auto one = b.admit();
    const auto two = b.admit();
    b.report(*one, call_outcome::success);
    b.report(*two, call_outcome::success);
    BOOST_TEST(b.state() == circuit_state::half_open);
    b.succeed(1);
    BOOST_TEST(b.state() == circuit_state::closed);
    BOOST_TEST(b.machine.changed_from() == circuit_state::half_open);
    b.fail(2); // earlier failures are forgotten
    BOOST_TEST(b.state() == circuit_state::closed);
}

BOOST_AUTO_TEST_CASE(one_failed_probe_opens_it_again)
{
    auto options = three_in_a_row();
    options.probes = 3;
    options.success_threshold = 3;
    driven b(options);
    b.fail(3);
    b.pass(50ms);
    b.succeed(2);
    b.pass(10ms);
    b.fail(1);
    BOOST_TEST(b.state() == circuit_state::open);
    BOOST_TEST((b.machine.retry_after(b.now) == 50ms));
}

BOOST_AUTO_TEST_CASE(a_slow_probe_has_failed)
{
    auto options = three_in_a_row();
    options.slow_after = 1s;
    driven b(options);
    b.fail(3);
    b.pass(50ms);
    BOOST_TEST(b.call(call_outcome::success, 1s));
    BOOST_TEST(b.state() == circuit_state::open);
}

BOOST_AUTO_TEST_CASE(ignored_probes_leave_it_half_open_for_the_next)
{
    driven b(three_in_a_row());
    b.fail(3);
    b.pass(50ms);
    for (int i = 0; i != 10; ++i)
        BOOST_TEST(b.call(call_outcome::ignored));
    BOOST_TEST(b.state() == circuit_state::half_open);
    b.succeed(1);
    BOOST_TEST(b.state() == circuit_state::closed);
}

BOOST_AUTO_TEST_CASE(a_hung_probe_has_failed_at_its_deadline)
{
    auto options = three_in_a_row();
    options.probe_deadline = 1s;
    driven b(options);
    b.fail(3);
    b.pass(50ms);
    const auto hung = b.admit();
    b.pass(1s - 1ns);
    BOOST_TEST(b.state() == circuit_state::half_open);
    b.pass(1ns);
    BOOST_TEST(b.state() == circuit_state::open);
    b.pass(50ms);
    BOOST_TEST(b.state() == circuit_state::half_open);
    const auto second = b.admit();
    BOOST_TEST(second.has_value());
    b.report(*hung, call_outcome::success); // too late
    BOOST_TEST(b.state() == circuit_state::half_open);
    BOOST_TEST(b.machine.probes_out() == 1U);
    b.report(*second, call_outcome::success);
    BOOST_TEST(b.state() == circuit_state::closed);
}

BOOST_AUTO_TEST_CASE(a_hung_probe_noticed_late_does_not_make_the_break_longer)
{
    auto options = three_in_a_row();
    options.probe_deadline = 1s;
    driven b(options);
    b.fail(3);
    b.pass(50ms);
    BOOST_TEST(b.admit().has_value());
    b.now += 1s + 50ms; // no call in between
    BOOST_TEST(b.machine.advance(b.now));
    BOOST_TEST(b.state() == circuit_state::open);
    BOOST_TEST(b.machine.advance(b.now));
    BOOST_TEST(b.state() == circuit_state::half_open);
    BOOST_TEST(!b.machine.advance(b.now));
    b.succeed(1);
    BOOST_TEST(b.state() == circuit_state::closed);
}

BOOST_AUTO_TEST_CASE(only_the_probe_that_hangs_is_overdue)
{
    auto options = three_in_a_row();
    options.probes = 2;
    options.success_threshold = 5;
    options.probe_deadline = 1s;
    driven b(options);
    b.fail(3);
    b.pass(50ms);
    const auto first = b.admit();
    b.pass(500ms);
    const auto second = b.admit();
    b.report(*first, call_outcome::success);
    b.pass(500ms); // the deadline of the first probe
    BOOST_TEST(b.state() == circuit_state::half_open);
    b.pass(500ms);
    BOOST_TEST(b.state() == circuit_state::open);
    b.report(*second, call_outcome::success);
    BOOST_TEST(b.state() == circuit_state::open);
}

BOOST_AUTO_TEST_CASE(a_deadline_at_the_end_of_time_still_counts_as_outstanding)
{
    auto options = three_in_a_row();
    options.probe_deadline = nanoseconds::max();
    driven b(options);
    b.fail(3);
    b.pass(50ms);
    BOOST_TEST(b.admit().has_value());
    BOOST_TEST(!b.admit().has_value());
}

BOOST_AUTO_TEST_CASE(without_a_deadline_a_full_circuit_cannot_say_when_to_try_again)
{
    auto options = three_in_a_row();
    options.probe_deadline = nanoseconds::max();
    driven b(options);
    b.fail(3);
    b.pass(50ms);
    const auto probe = b.admit();
    BOOST_TEST((b.machine.retry_after(b.now) == nanoseconds::max()));
    BOOST_TEST((b.machine.next_change() == nanoseconds::max()));
    b.report(*probe, call_outcome::ignored);
    BOOST_TEST((b.machine.retry_after(b.now) == 0ns));
}

BOOST_AUTO_TEST_CASE(the_earliest_deadline_of_several_probes_opens_it)
{
    auto options = three_in_a_row();
    options.probes = 2;
    options.success_threshold = 5;
    options.probe_deadline = 1s;
    driven b(options);
    b.fail(3);
    b.pass(50ms);
    BOOST_TEST(b.admit().has_value());
    b.pass(500ms);
    BOOST_TEST(b.admit().has_value());
    BOOST_TEST((b.machine.next_change() == b.now + 500ms));
    b.pass(500ms - 1ns);
    BOOST_TEST(b.state() == circuit_state::half_open);
    b.pass(1ns); // the deadline of the first probe
    BOOST_TEST(b.state() == circuit_state::open);
}

// ---------------------------------------------------------------------- late results ----

BOOST_AUTO_TEST_CASE(late_results_of_an_earlier_state_change_nothing)
{
    driven b(three_in_a_row());
    std::vector<circuit_breaker_ticket> early;
    for (int i = 0; i != 20; ++i)
        early.push_back(*b.admit());
    std::size_t next = 0;
    for (int i = 0; i != 3; ++i)
        b.report(early[next++], call_outcome::failure);
    BOOST_TEST(b.state() == circuit_state::open);
    b.report(early[next++], call_outcome::success);
    b.report(early[next++], call_outcome::failure);
    BOOST_TEST((b.machine.retry_after(b.now) == 50ms));

    b.pass(50ms);
    BOOST_TEST(b.state() == circuit_state::half_open);
    b.report(early[next++], call_outcome::success);
    b.report(early[next++], call_outcome::failure);
    BOOST_TEST(b.state() == circuit_state::half_open);
    BOOST_TEST(b.machine.probes_out() == 0U);

    b.succeed(1);
    BOOST_TEST(b.state() == circuit_state::closed);
    b.fail(2);
    b.report(early[next++], call_outcome::success); // does not end the row
    b.report(early[next++], call_outcome::failure); // and does not extend it
    BOOST_TEST(b.state() == circuit_state::closed);
    b.fail(1);
    BOOST_TEST(b.state() == circuit_state::open);
}

// ------------------------------------------------------------------ length of a break ----

BOOST_AUTO_TEST_CASE(the_open_time_grows_up_to_its_limit_and_starts_over_once_closed)
{
    auto options = three_in_a_row();
    options.open_for = 1s;
    options.open_growth = 2.0;
    options.longest_open = 6s;
    driven b(options);
    b.fail(3);
    for (nanoseconds expected : {1s, 2s, 4s, 6s, 6s}) {
        BOOST_TEST((b.machine.retry_after(b.now) == expected));
        b.pass(expected);
        b.fail(1);
    }
    BOOST_TEST(b.machine.last_break().attempt == 6U);
    b.pass(6s);
    b.succeed(1);
    b.fail(3);
    BOOST_TEST((b.machine.retry_after(b.now) == 1s));
    BOOST_TEST(b.machine.last_break().attempt == 1U);
}

BOOST_AUTO_TEST_CASE(growth_without_end_does_not_overflow)
{
    auto options = three_in_a_row();
    options.open_growth = 1e6;
    options.longest_open = nanoseconds::max();
    driven b(options);
    b.fail(3);
    for (int i = 0; i != 2000 && b.machine.retry_after(b.now) < 1000000h; ++i) {
        b.pass(b.machine.retry_after(b.now));
        b.fail(1);
    }
    BOOST_TEST(b.state() == circuit_state::open);
    BOOST_TEST((b.machine.retry_after(b.now) > 0ns));
}

BOOST_AUTO_TEST_CASE(jitter_stays_in_its_bounds_and_repeats_with_its_seed)
{
    auto options = three_in_a_row();
    options.open_for = 1s;
    options.jitter = 0.25;
    options.seed = 42;
    const auto breaks = [&] {
        driven b(options);
        b.fail(3);
        std::vector<nanoseconds> lengths;
        for (int i = 0; i != 200; ++i) {
            lengths.push_back(b.machine.retry_after(b.now));
            b.pass(lengths.back());
            b.fail(1);
        }
        return lengths;
    };
    const auto first = breaks();
    const auto [shortest, longest] = std::minmax_element(first.begin(), first.end());
    BOOST_TEST((*shortest >= 750ms && *shortest < 800ms));
    BOOST_TEST((*longest <= 1s && *longest > 950ms));
    BOOST_TEST((first == breaks()));
    options.seed = 43;
    BOOST_TEST((first != breaks()));
}

BOOST_AUTO_TEST_CASE(a_generator_decides_how_long_it_is_open)
{
    auto options = three_in_a_row();
    options.break_duration = [](const turnstile::break_info&) { return nanoseconds(0); };
    driven b(options);
    b.fail(3);
    BOOST_TEST(b.machine.wants_break_duration());
    BOOST_TEST((b.machine.last_break().proposed == 50ms));
    BOOST_TEST((b.machine.retry_after(b.now) == 50ms)); // the proposed duration
    b.pass(1s);
    BOOST_TEST(b.state() == circuit_state::open); // until the generator has been called
    b.machine.set_break_duration(b.machine.generation() - 1, 0s);
    BOOST_TEST(b.machine.wants_break_duration());
    b.machine.set_break_duration(b.machine.generation(), 2s);
    BOOST_TEST((b.machine.retry_after(b.now) == 1s)); // from the time it opened
    b.pass(1s);
    b.fail(1);
    b.machine.set_break_duration(b.machine.generation(), -5s);
    b.catch_up();
    BOOST_TEST(b.state() == circuit_state::half_open);
}

BOOST_AUTO_TEST_CASE(a_generator_is_told_what_it_has_opened_for)
{
    auto options = three_in_a_row();
    options.probes = 3;
    options.success_threshold = 3;
    options.slow_after = 1s;
    driven b(options);
    b.fail(3);
    BOOST_TEST((b.machine.last_break().calls == call_tally{3, 3, 0}));
    b.pass(50ms);
    b.succeed(2);
    b.fail(1); // the probes count, not the calls before
    BOOST_TEST((b.machine.last_break().calls == call_tally{3, 1, 0}));
    b.pass(50ms);
    const auto slow = b.machine.admit(b.now);
    b.pass(1s);
    b.machine.report(*slow, call_outcome::success, b.now);
    BOOST_TEST((b.machine.last_break().calls == call_tally{1, 1, 1}));
}

// ---------------------------------------------------------------------------- by hand ----

BOOST_AUTO_TEST_CASE(forced_open_it_stays_open)
{
    driven b(three_in_a_row());
    BOOST_TEST(b.machine.force_open(b.now));
    BOOST_TEST(!b.machine.force_open(b.now));
    BOOST_TEST(b.machine.is_forced());
    b.pass(1000h);
    BOOST_TEST(!b.admit());
    BOOST_TEST((b.machine.retry_after(b.now) == nanoseconds::max()));
    BOOST_TEST(b.machine.reset(b.now));
    BOOST_TEST(!b.machine.is_forced());
    BOOST_TEST(b.succeed());
}

BOOST_AUTO_TEST_CASE(forced_closed_it_stays_closed)
{
    driven b(three_in_a_row());
    b.fail(3);
    BOOST_TEST(b.machine.force_closed(b.now));
    b.fail(100);
    BOOST_TEST(b.state() == circuit_state::closed);
    BOOST_TEST(!b.machine.reset(b.now));
    b.fail(2);
    BOOST_TEST(b.state() == circuit_state::closed);
    b.fail(1);
    BOOST_TEST(b.state() == circuit_state::open);
}

BOOST_AUTO_TEST_CASE(a_reset_makes_results_of_before_late)
{
    driven b(three_in_a_row());
    const auto early = b.admit();
    b.fail(2);
    b.machine.reset(b.now);
    b.report(*early, call_outcome::failure);
    b.fail(2);
    BOOST_TEST(b.state() == circuit_state::closed);
}

// ------------------------------------------------------------------------------ time ----

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back_stands_still)
{
    driven b(three_in_a_row());
    b.fail(3);
    b.pass(40ms);
    b.now -= 30min;
    BOOST_TEST(!b.admit());
    BOOST_TEST((b.machine.retry_after(b.now) == 10ms));
    b.now += 30min;
    b.pass(10ms);
    BOOST_TEST(b.admit().has_value());
}

BOOST_AUTO_TEST_CASE(a_closed_breaker_reads_no_clock_unless_it_must)
{
    driven run(three_in_a_row());
    BOOST_TEST(run.machine.forgets_successes());
    BOOST_TEST(!run.machine.needs_time_for(call_outcome::success));
    BOOST_TEST(run.machine.needs_time_for(call_outcome::failure));
    BOOST_TEST(!run.machine.remembers_failures());
    run.fail(1);
    BOOST_TEST(run.machine.remembers_failures());

    driven counted(last(10, 0.5, 5));
    BOOST_TEST(!counted.machine.forgets_successes());
    BOOST_TEST(!counted.machine.needs_time_for(call_outcome::success));

    auto options = last(10, 0.5, 5);
    options.slow_after = 1s;
    BOOST_TEST(driven(options).machine.needs_time_for(call_outcome::success));
    options = {.window = turnstile::time_window{}};
    BOOST_TEST(driven(options).machine.needs_time_for(call_outcome::success));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
