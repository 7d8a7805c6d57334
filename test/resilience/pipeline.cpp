// SPDX-License-Identifier: BSL-1.0
#include "kit/call_fixture.hpp"

#include <turnstile/core/error.hpp>
#include <turnstile/resilience/pipeline.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::completion;
using kit::manual_clock;
using turnstile::errc;
using turnstile::error_code;
using turnstile::nanoseconds;

const error_code refused = asio::error::connection_refused;
const turnstile::retry_options options{.backoff = turnstile::backoff::constant(1s)};

// Logs each call, and passes it on.
struct noisy_stage {
    std::vector<std::string>& log;
    std::string name;

    template <turnstile::operation Op, class Token>
    auto async_call(Op&& op, Token&& token)
    {
        return asio::async_initiate<Token, turnstile::operation_signature_t<Op>>(
            [this](auto handler, std::decay_t<Op> o) {
                log.push_back(name);
                std::move(o)(std::move(handler));
            },
            token, std::forward<Op>(op));
    }
};

struct fixture : kit::call_fixture {
    auto pipeline() { return turnstile::pipeline<manual_clock>(io); }
};

BOOST_FIXTURE_TEST_SUITE(resilience_pipeline, fixture)

BOOST_AUTO_TEST_CASE(an_empty_pipeline_is_just_the_operation)
{
    pipeline().async_call(operation, done.handler([](int v) { BOOST_TEST(v == 7); }));
    operation.succeed(0, 7);
    kit::run(io);
    BOOST_TEST(done.succeeded());
}

BOOST_AUTO_TEST_CASE(a_retry_comes_back_when_the_rate_limiter_says)
{
    turnstile::basic_rate_limiter<asio::any_io_executor, turnstile::thread_safe, manual_clock>
        limiter(io, turnstile::per_second(10, 1), {.max_waiters = 0});
    BOOST_TEST(limiter.try_acquire());
    const auto p = pipeline().retry(options).rate_limiter(limiter);
    bool ran = false;
    p.async_call(
        [&]() -> asio::awaitable<void> {
            ran = true;
            co_return;
        },
        [](std::exception_ptr e) { BOOST_TEST(!e); });
    poll();
    advance(100ms - 1ns);
    BOOST_TEST(!ran);
    advance(1ns); // the delay of the backoff is a second
    BOOST_TEST(ran);
    kit::run(io);
}

BOOST_AUTO_TEST_CASE(stages_run_from_the_outside_in_as_they_are_written)
{
    std::vector<std::string> log;
    noisy_stage outer{log, "outer"};
    noisy_stage inner{log, "inner"};
    const auto p = pipeline().stage(outer).retry(options).stage(inner);
    static_assert(turnstile::stage_for<const decltype(p), kit::scripted_operation>);
    p.async_call(operation, done.handler([](int) {}));
    poll();
    operation.fail(0, refused);
    poll();
    advance(1s);
    operation.succeed(1, 1);
    kit::run(io);
    BOOST_TEST(done.succeeded());
    BOOST_TEST((log == std::vector<std::string>{"outer", "inner", "inner"}));
}

BOOST_AUTO_TEST_CASE(an_inner_timeout_is_for_each_attempt_and_an_outer_one_for_all)
{
    turnstile::retry_options unlimited = options;
    unlimited.max_attempts = turnstile::retry_options::unlimited;
    const auto p = pipeline().timeout(10s).retry(unlimited).timeout(2s);
    p.async_call(operation, done.handler([](int) {}));
    poll();
    for (int second = 0; second != 9; ++second)
        advance(1s);
    BOOST_TEST(operation.started() == 4U); // at 0, 3, 6 and 9 seconds
    BOOST_TEST(!done.done());
    advance(1s);
    kit::run(io);
    BOOST_TEST(operation.started() == 4U);
    BOOST_TEST(done.error() == errc::timed_out);
    BOOST_TEST(p.get<0>().stats().timed_out == 1U);
    BOOST_TEST(p.get<1>().stats().attempts == 4U);
    BOOST_TEST(p.get<2>().stats().timed_out == 3U);
}

BOOST_AUTO_TEST_CASE(a_breaker_inside_a_retry_sees_every_attempt)
{
    turnstile::basic_circuit_breaker<asio::any_io_executor, turnstile::thread_safe, manual_clock>
        breaker(io, {.window = turnstile::consecutive_failures{2}, .open_for = 1h});
    const auto p = pipeline().retry(options).circuit_breaker(breaker);
    p.async_call(operation, done.handler([](int) {}));
    poll();
    for (std::size_t i = 0; i != 2; ++i) {
        operation.fail(i, refused);
        poll();
        advance(1s);
    }
    kit::run(io);
    BOOST_TEST(done.error() == errc::circuit_open);
    BOOST_TEST(operation.started() == 2U);
}

BOOST_AUTO_TEST_CASE(limits_hold_for_what_is_inside)
{
    turnstile::basic_bulkhead<asio::any_io_executor, turnstile::thread_safe, manual_clock> bulkhead(
        io, {.limit = 1});
    turnstile::basic_rate_limiter<asio::any_io_executor, turnstile::thread_safe, manual_clock>
        limiter(io, turnstile::bandwidth{.permits = 1, .period = 1s, .burst = 1});
    const auto p = pipeline().timeout(1h).rate_limiter(limiter).bulkhead(bulkhead);
    completion second;
    p.async_call(operation, done.handler([](int) {}));
    p.async_call(operation, second.handler([](int) {}));
    poll();
    BOOST_TEST(operation.started() == 1U); // the second waits for the limiter
    advance(1s);
    BOOST_TEST(operation.started() == 1U); // and then for the bulkhead
    operation.succeed(0, 1);
    poll();
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 1);
    kit::run(io);
    BOOST_TEST(done.succeeded());
    BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE(a_cancellation_reaches_the_operation_through_every_stage)
{
    turnstile::circuit_breaker breaker(io);
    turnstile::bulkhead bulkhead(io);
    pipeline()
        .timeout(1h)
        .retry(options)
        .hedge({.delay = 1h})
        .circuit_breaker(breaker)
        .bulkhead(bulkhead)
        .timeout(1h)
        .async_call(operation,
                    asio::bind_cancellation_slot(signal.slot(), done.handler([](int) {})));
    poll();
    BOOST_TEST(operation.started() == 1U);
    signal.emit(asio::cancellation_type::total);
    kit::run(io);
    BOOST_TEST((operation.cancelled(0) == asio::cancellation_type::total));
    BOOST_TEST(done.aborted());
}

BOOST_AUTO_TEST_CASE(a_pipeline_is_a_stage_of_another_and_outlived_by_its_calls)
{
    const auto inner = pipeline().retry(options);
    {
        const auto outer = pipeline().timeout(1h).stage(inner);
        outer.async_call(operation, done.handler([](int) {}));
    }
    poll();
    operation.fail(0, refused);
    poll();
    advance(1s);
    operation.succeed(1, 1);
    kit::run(io);
    BOOST_TEST(done.succeeded());
}

BOOST_AUTO_TEST_CASE(a_coroutine_runs_inside_with_the_default_token)
{
    int attempts = 0;
    int result = 0;
    turnstile::circuit_breaker breaker(io);
    const auto p = pipeline()
                       .retry({.backoff = turnstile::backoff::constant(0s)})
                       .circuit_breaker(breaker)
                       .timeout(1h);
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            result = co_await p.async_call([&]() -> asio::awaitable<int> {
                if (++attempts < 3)
                    throw turnstile::system_error(refused);
                co_return attempts;
            });
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(result == 3);
}

BOOST_AUTO_TEST_CASE(a_handler_without_an_executor_runs_on_the_pipelines)
{
    asio::io_context elsewhere;
    turnstile::circuit_breaker breaker(elsewhere);
    bool on_io = false;
    pipeline().circuit_breaker(breaker).async_call(
        operation, [&](error_code, int) { on_io = io.get_executor().running_in_this_thread(); });
    operation.succeed(0, 1);
    kit::run(io);
    BOOST_TEST(on_io);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
