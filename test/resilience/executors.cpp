// SPDX-License-Identifier: BSL-1.0
// A coroutine runs where co_spawn would run it with the same token.
#include "kit/manual_clock.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>
#include <turnstile/resilience/hedge.hpp>
#include <turnstile/resilience/keyed_rate_limiter.hpp>
#include <turnstile/resilience/pipeline.hpp>
#include <turnstile/resilience/rate_limiter.hpp>
#include <turnstile/resilience/retry.hpp>
#include <turnstile/resilience/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <future>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::manual_clock;
using turnstile::errc;
using turnstile::error_code;
using turnstile::per_second;
using turnstile::thread_safe;
using any = asio::any_io_executor;

struct fixture {
    // f(name, call) for every way to run an operation; call(op, token) starts it.
    template <class F>
    void each(F f)
    {
        const auto with = [&](const char* name, auto& stage) {
            f(name, [&](auto op, auto token) { return stage.async_call(op, token); });
        };
        with("rate_limiter", limiter);
        with("rate_limiter, after a wait", limiter);
        const auto keyed_call = [&](auto op, auto token) { return keyed.async_call(7, op, token); };
        f("keyed_rate_limiter", keyed_call);
        f("keyed_rate_limiter, after a wait", keyed_call);
        with("circuit_breaker", breaker);
        with("bulkhead", bulkhead);
        auto permit = bulkhead.try_acquire();
        asio::post(io, [&] { permit.release(); });
        with("bulkhead, after a wait", bulkhead);
        with("timeout", timeout);
        with("retry", retry);
        with("hedge", hedge);
        auto pipeline = turnstile::pipeline<manual_clock>(io).stage(breaker).stage(timeout);
        with("pipeline", pipeline);
        auto empty = turnstile::pipeline<manual_clock>(io);
        with("empty pipeline", empty);
    }

    // Long enough for the next permit, and not for a timeout.
    void run()
    {
        manual_clock::advance(io, 0s);
        manual_clock::advance(io, 1s);
        kit::run(io);
    }

    asio::io_context io;
    turnstile::basic_rate_limiter<any, thread_safe, manual_clock> limiter{io, per_second(1, 1)};
    turnstile::basic_keyed_rate_limiter<int, std::hash<int>, std::equal_to<>, any, thread_safe,
                                        manual_clock>
        keyed{io, per_second(1, 1)};
    turnstile::basic_circuit_breaker<any, thread_safe, manual_clock> breaker{io};
    turnstile::basic_bulkhead<any, thread_safe, manual_clock> bulkhead{io, {.limit = 1}};
    turnstile::basic_timeout<any, manual_clock> timeout{io, 1h};
    turnstile::basic_retry<any, manual_clock> retry{io};
    turnstile::basic_hedge<any, manual_clock> hedge{io, {.delay = 1h}};
};

BOOST_FIXTURE_TEST_SUITE(executors, fixture)

BOOST_AUTO_TEST_CASE(a_coroutine_runs_in_the_strand_of_its_caller)
{
    const auto strand = asio::make_strand(io);
    const auto op = [&]() -> asio::awaitable<bool> {
        co_await asio::post(asio::use_awaitable);
        co_return strand.running_in_this_thread();
    };
    each([&](const char* name, auto call) {
        bool inside = false;
        asio::co_spawn(
            strand,
            [&]() -> asio::awaitable<void> { inside = co_await call(op, asio::use_awaitable); },
            asio::detached);
        run();
        BOOST_TEST(inside, name);
        bool bound = false;
        call(op, asio::bind_executor(strand, [&](std::exception_ptr, bool b) { bound = b; }));
        run();
        BOOST_TEST(bound, name);
    });
}

BOOST_AUTO_TEST_CASE(for_a_future_a_coroutine_runs_on_the_objects_executor)
{
    const auto op = [&]() -> asio::awaitable<bool> {
        co_return io.get_executor().running_in_this_thread();
    };
    each([&](const char* name, auto call) {
        std::future<bool> inside = call(op, asio::use_future);
        run();
        BOOST_TEST(inside.get(), name);
    });
}

BOOST_AUTO_TEST_CASE(for_a_future_a_failure_to_start_comes_from_the_objects_executor)
{
    const auto op = [](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [](auto) { throw turnstile::system_error(errc::broken); }, token);
    };
    std::future<void> failed = breaker.async_call(op, asio::use_future);
    breaker.force_open();
    std::future<void> rejected = breaker.async_call(op, asio::use_future);
    BOOST_TEST((failed.wait_for(0s) == std::future_status::timeout));
    BOOST_TEST((rejected.wait_for(0s) == std::future_status::timeout));
    run();
    BOOST_TEST((failed.wait_for(0s) == std::future_status::ready));
    BOOST_TEST((rejected.wait_for(0s) == std::future_status::ready));
    BOOST_CHECK_THROW(failed.get(), turnstile::system_error);
    BOOST_CHECK_THROW(rejected.get(), turnstile::system_error);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
