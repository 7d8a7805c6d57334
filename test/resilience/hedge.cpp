// SPDX-License-Identifier: BSL-1.0
#include "kit/call_fixture.hpp"
#include "kit/failing_allocator.hpp"

#include <turnstile/core/error.hpp>
#include <turnstile/resilience/hedge.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::completion;
using kit::manual_clock;
using turnstile::errc;
using turnstile::error_code;
using turnstile::hedge_options;
using turnstile::nanoseconds;

const error_code refused = asio::error::connection_refused;

struct fixture : kit::call_fixture {
    void start(const hedge_options& options)
    {
        start_with([&](auto op, auto handler) {
            turnstile::async_hedge<manual_clock>(io.get_executor(), options, op,
                                                 std::move(handler));
        });
    }

    hedge_options after_a_second{.delay = 1s};
};

BOOST_FIXTURE_TEST_SUITE(resilience_hedge, fixture)

BOOST_AUTO_TEST_CASE(a_quick_success_needs_no_second_attempt)
{
    start(after_a_second);
    advance(1s - 1ns);
    operation.succeed(0, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
    BOOST_TEST(operation.started() == 1U);
}

BOOST_AUTO_TEST_CASE(a_slow_attempt_gets_company_and_loses)
{
    start(after_a_second);
    advance(1s);
    BOOST_TEST(operation.started() == 2U);
    BOOST_TEST(!operation.was_cancelled(0));
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
    BOOST_TEST(operation.was_cancelled(0));
}

BOOST_AUTO_TEST_CASE(the_first_attempt_may_still_win)
{
    start(after_a_second);
    advance(1s);
    operation.succeed(0, 5);
    kit::run(io);
    BOOST_TEST(value == 5);
    BOOST_TEST(operation.was_cancelled(1));
}

BOOST_AUTO_TEST_CASE(a_loser_is_awaited_even_if_it_ignores_the_cancellation)
{
    operation.ignore_cancellation();
    start(after_a_second);
    advance(1s);
    operation.succeed(1, 7);
    poll();
    BOOST_TEST(operation.was_cancelled(0));
    BOOST_TEST(!done.done());
    operation.succeed(0, 5); // too late
    kit::run(io);
    BOOST_TEST(value == 7);
}

BOOST_AUTO_TEST_CASE(two_successes_at_the_same_moment_give_one_completion)
{
    start(after_a_second);
    advance(1s);
    operation.succeed(0, 5);
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST(done.succeeded());
    BOOST_TEST(value == 5);
}

BOOST_AUTO_TEST_CASE(a_failure_starts_the_next_attempt_at_once)
{
    start(after_a_second);
    operation.fail(0, refused);
    poll();
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
}

BOOST_AUTO_TEST_CASE(if_all_fail_the_last_to_complete_has_the_word)
{
    start(after_a_second);
    advance(1s);
    operation.fail(1, refused);
    poll();
    BOOST_TEST(!done.done());
    operation.fail(0, asio::error::host_unreachable);
    kit::run(io);
    BOOST_TEST(done.error() == asio::error::host_unreachable);
}

BOOST_AUTO_TEST_CASE(there_are_no_more_attempts_than_allowed)
{
    after_a_second.max_attempts = 3;
    start(after_a_second);
    for (int i = 0; i != 10; ++i)
        advance(1s);
    BOOST_TEST(operation.started() == 3U);
    operation.succeed(2, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
    BOOST_TEST(operation.was_cancelled(0));
    BOOST_TEST(operation.was_cancelled(1));
}

BOOST_AUTO_TEST_CASE(after_a_failure_the_delay_begins_anew)
{
    after_a_second.max_attempts = 3;
    start(after_a_second);
    advance(500ms);
    operation.fail(0, refused);
    poll();
    BOOST_TEST(operation.started() == 2U);
    advance(1s - 1ns);
    BOOST_TEST(operation.started() == 2U);
    advance(1ns);
    BOOST_TEST(operation.started() == 3U);
    operation.succeed(1, 7);
    kit::run(io);
}

BOOST_AUTO_TEST_CASE(one_attempt_is_just_the_operation)
{
    after_a_second.max_attempts = 1;
    start(after_a_second);
    advance(1h);
    BOOST_TEST(operation.started() == 1U);
    operation.fail(0, refused);
    kit::run(io);
    BOOST_TEST(done.error() == refused);
}

BOOST_AUTO_TEST_CASE(cancelling_cancels_all_and_no_more_begin)
{
    after_a_second.max_attempts = 3;
    start(after_a_second);
    advance(1s);
    signal.emit(asio::cancellation_type::total);
    kit::run(io);
    BOOST_TEST(done.aborted());
    BOOST_TEST((operation.cancelled(0) == asio::cancellation_type::total));
    BOOST_TEST((operation.cancelled(1) == asio::cancellation_type::total));
    BOOST_TEST(operation.started() == 2U);
}

BOOST_AUTO_TEST_CASE(a_success_in_spite_of_the_cancellation_is_not_lost)
{
    operation.ignore_cancellation();
    start(after_a_second);
    signal.emit(asio::cancellation_type::terminal);
    poll();
    operation.succeed(0, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
}

BOOST_AUTO_TEST_CASE(no_delay_means_both_at_once)
{
    start({.delay = 0s});
    advance(0s);
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 7);
    kit::run(io);
}

BOOST_AUTO_TEST_CASE(attempts_that_fail_to_start_are_failures)
{
    int attempts = 0;
    const auto throwing = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, int)>(
            [&](auto) {
                ++attempts;
                throw turnstile::system_error(refused);
            },
            token);
    };
    turnstile::async_hedge<manual_clock>(io.get_executor(), {.delay = 1s, .max_attempts = 4},
                                         throwing, done.handler([](int) {}));
    kit::run(io);
    BOOST_TEST(done.error() == refused);
    BOOST_TEST(attempts == 4);
}

BOOST_AUTO_TEST_CASE(the_delay_follows_the_latencies)
{
    turnstile::basic_hedge<asio::any_io_executor, manual_clock> hedge(
        io.get_executor(), {.delay = 10s, .percentile = 0.9});
    static_assert(turnstile::stage_for<decltype(hedge), kit::scripted_operation>);
    BOOST_TEST((hedge.stats().delay == 10s));
    for (std::size_t i = 0; i != hedge_options::samples_needed; ++i) {
        completion c;
        hedge.async_call(operation, c.handler([](int) {}));
        poll();
        advance(100ms);
        operation.succeed(i, 1);
        kit::run(io);
        BOOST_TEST(c.succeeded());
    }
    const nanoseconds delay = hedge.stats().delay;
    BOOST_TEST((delay >= 100ms && delay <= 113ms));

    completion c;
    hedge.async_call(operation, c.handler([](int) {}));
    poll();
    advance(delay);
    operation.succeed(operation.started() - 1, 1);
    kit::run(io);
    BOOST_TEST(c.succeeded());
    BOOST_TEST(hedge.stats().calls == hedge_options::samples_needed + 1);
    BOOST_TEST(hedge.stats().attempts == hedge_options::samples_needed + 2);
    BOOST_TEST(hedge.stats().hedged == 1U);
    BOOST_TEST(hedge.stats().hedge_won == 1U);
}

// Half of the first attempts never complete, and the second ones are fast: such a call has taken as
// long as its delay, and must not count as a fast one.
BOOST_AUTO_TEST_CASE(a_call_that_a_hedge_has_saved_was_slow_nonetheless)
{
    turnstile::basic_hedge<asio::any_io_executor, manual_clock> hedge(
        io.get_executor(), {.delay = 1s, .percentile = 0.6});
    for (int i = 0; i != 40; ++i) {
        completion c;
        hedge.async_call(operation, c.handler([](int) {}));
        poll();
        advance(10ms);
        if (i % 2 != 0)
            advance(hedge.stats().delay);
        operation.succeed(operation.started() - 1, 1);
        kit::run(io);
        BOOST_TEST(c.succeeded());
    }
    BOOST_TEST(hedge.stats().hedge_won == 20U);
    BOOST_TEST((hedge.stats().delay >= 1s));
}

BOOST_AUTO_TEST_CASE(listeners_are_told_of_hedges_that_begin_and_win)
{
    using turnstile::hedge_event;
    auto hedge = std::make_unique<turnstile::basic_hedge<asio::any_io_executor, manual_clock>>(
        io.get_executor(), after_a_second);
    std::vector<hedge_event> told;
    hedge->add_listener([&](const hedge_event& e) {
        told.push_back(e);
        (void)hedge->stats(); // would deadlock under the lock
    });
    const auto call = [&] {
        hedge->async_call(operation, [](error_code, int) {});
        poll();
        advance(1s);
    };
    call();
    BOOST_TEST_REQUIRE(told.size() == 1U);
    BOOST_TEST(told[0].kind == hedge_event::started);
    BOOST_TEST(told[0].attempt == 2U);
    BOOST_TEST((told[0].elapsed == 1s));
    advance(1s);
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST_REQUIRE(told.size() == 2U);
    BOOST_TEST(told[1].kind == hedge_event::won);
    BOOST_TEST(told[1].attempt == 2U);
    BOOST_TEST((told[1].elapsed == 2s));
    call();
    operation.succeed(2, 7); // the first one wins
    kit::run(io);
    BOOST_TEST(told.size() == 3U);
    hedge->async_call(operation, [](error_code, int) {});
    hedge.reset(); // the call continues without listeners
    advance(1s);
    operation.succeed(5, 7);
    kit::run(io);
    BOOST_TEST(told.size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_percentile_must_be_one)
{
    for (double p : {0.0, -0.5, 1.5})
        BOOST_CHECK_EXCEPTION(turnstile::hedge(io, {.percentile = p}), turnstile::system_error,
                              [](const auto& e) { return e.code() == errc::invalid_argument; });
}

BOOST_AUTO_TEST_CASE(coroutines_are_hedged_too)
{
    int runs = 0;
    int result = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            result = co_await turnstile::async_hedge<manual_clock>(
                after_a_second, [&]() -> asio::awaitable<int> {
                    const int mine = ++runs;
                    if (mine == 1) {
                        asio::steady_timer never(io, asio::steady_timer::time_point::max());
                        co_await never.async_wait(asio::use_awaitable);
                    }
                    co_return mine;
                });
        },
        asio::detached);
    poll();
    advance(1s);
    kit::run(io);
    BOOST_TEST(result == 2);
}

BOOST_AUTO_TEST_CASE(all_memory_of_the_handler_is_free_when_it_is_called)
{
    kit::allocation_plan plan;
    std::optional<std::size_t> live;
    turnstile::async_hedge<manual_clock>(
        io.get_executor(), after_a_second, operation,
        asio::bind_allocator(kit::failing_allocator<char>(plan),
                             [&](error_code, int) { live = plan.live(); }));
    poll();
    advance(1s);
    operation.succeed(1, 1);
    kit::run(io);
    BOOST_TEST((live == 0U));
    BOOST_TEST(plan.allocated > 0U);
}

BOOST_AUTO_TEST_CASE(without_memory_for_another_attempt_the_failure_is_delivered)
{
    kit::allocation_plan plan;
    turnstile::async_hedge<manual_clock>(
        io.get_executor(), {.delay = 1s, .max_attempts = 3}, operation,
        asio::bind_allocator(kit::failing_allocator<char>(plan), done.handler([](int) {})));
    poll();
    operation.fail(0, refused);
    plan.fail = true;
    io.restart();
    io.poll_one();
    plan.fail = false;
    kit::run(io);
    BOOST_TEST(operation.started() == 1U);
    BOOST_TEST(done.error() == refused);
    BOOST_TEST(plan.live() == 0U);
}

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back_after_the_expiry_does_not_stop_it)
{
    start(after_a_second);
    asio::basic_waitable_timer<manual_clock> just_before(io, manual_clock::now() + 1s - 1ns);
    just_before.async_wait([](error_code) { manual_clock::shift(-500ms); });
    advance(1s);
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
}

BOOST_AUTO_TEST_CASE(a_context_that_is_destroyed_drops_the_handler)
{
    completion dropped(kit::dropping::is_expected);
    {
        asio::io_context other;
        asio::steady_timer never(other, asio::steady_timer::time_point::max());
        turnstile::async_hedge<manual_clock>(
            other.get_executor(), after_a_second,
            [&](auto token) { return never.async_wait(std::move(token)); }, dropped.handler([] {}));
        other.poll();
    }
    BOOST_TEST(dropped.dropped());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
