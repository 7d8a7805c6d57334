// SPDX-License-Identifier: BSL-1.0
// The texts of exceptions: which option was wrong, and which time limit was exceeded.
#include "kit/manual_clock.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/pipeline.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <exception>
#include <limits>
#include <optional>
#include <string>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::manual_clock;
using turnstile::aimd_options;
using turnstile::backoff;
using turnstile::bulkhead_options;
using turnstile::circuit_breaker_options;
using turnstile::errc;
using turnstile::gradient_options;
using turnstile::nanoseconds;
using any = asio::any_io_executor;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The text of what f throws, up to the message of its code.
template <class F>
std::string text_of(F f)
{
    try {
        f();
    } catch (const turnstile::system_error& e) {
        const std::string what = e.what();
        return what.substr(0, what.find(": " + e.code().message()));
    }
    return "nothing was thrown";
}

std::string breaker(const circuit_breaker_options& options)
{
    return text_of([&] { turnstile::circuit_breaker_machine policy(options); });
}

std::string bulkhead(const bulkhead_options& options)
{
    return text_of([&] {
        asio::io_context io;
        turnstile::bulkhead made(io, options);
    });
}

// What a call of an operation that never ends by itself throws.
template <class Call>
std::string timeout_text(Call call)
{
    manual_clock::reset();
    kit::drained_context io;
    kit::manual_timer timer(io, manual_clock::time_point::max());
    const auto forever = [&]() -> asio::awaitable<void> {
        co_await timer.async_wait(asio::use_awaitable);
    };
    std::exception_ptr result;
    call(any(io.get_executor()), forever, [&](std::exception_ptr e) { result = e; });
    io.poll();
    for (int i = 0; i != 100 && !result; ++i)
        manual_clock::advance(io, 1s);
    BOOST_TEST_REQUIRE(!!result);
    return text_of([&] { std::rethrow_exception(result); });
}

BOOST_AUTO_TEST_SUITE(resilience_messages)

BOOST_AUTO_TEST_CASE(a_breaker_names_the_option_that_is_wrong)
{
    const auto is = [](const circuit_breaker_options& options, const std::string& rule) {
        BOOST_TEST(breaker(options) == "circuit_breaker: " + rule);
    };
    is({.window = turnstile::consecutive_failures{0}},
       "consecutive_failures::threshold must not be 0");
    is({.window = turnstile::count_window{0}}, "count_window::size must not be 0");
    is({.window = turnstile::time_window{1s, 0}}, "time_window::buckets must not be 0");
    is({.window = turnstile::time_window{9ns, 10}},
       "time_window::length must be 1 ns or more for each bucket");
    is({.failure_rate = 0}, "failure_rate must be in (0, 1]");
    is({.failure_rate = nan}, "failure_rate must be in (0, 1]");
    is({.slow_rate = 1.1}, "slow_rate must be in (0, 1]");
    is({.minimum_calls = 0}, "minimum_calls must not be 0");
    is({.slow_after = -1ns}, "slow_after must not be negative");
    is({.probes = 0}, "probes must not be 0");
    is({.success_threshold = 0}, "success_threshold must not be 0");
    is({.probe_deadline = 0ns}, "probe_deadline must be positive");
    is({.open_for = -1ns}, "open_for must not be negative");
    is({.open_growth = 0.9}, "open_growth must be 1 or more");
    is({.longest_open = -1ns}, "longest_open must not be negative");
    is({.jitter = 1.5}, "jitter must be in [0, 1]");
    BOOST_TEST(breaker({}) == "nothing was thrown");
}

BOOST_AUTO_TEST_CASE(a_bulkhead_names_the_option_that_is_wrong)
{
    BOOST_TEST(bulkhead({.limit = 0}) == "bulkhead: limit must be in [1, limit_bound)");
    BOOST_TEST(bulkhead({.max_wait = -1ns}) == "bulkhead: max_wait must not be negative");
    const auto is = [](const turnstile::limit_options& options, const std::string& rule) {
        BOOST_TEST(bulkhead({.adaptive = options}) == rule);
    };
    is(aimd_options{.minimum = 0}, "aimd_options: minimum must be in [1, maximum]");
    is(aimd_options{.minimum = 9, .maximum = 8}, "aimd_options: minimum must be in [1, maximum]");
    is(aimd_options{.maximum = turnstile::limit_bound},
       "aimd_options: maximum must be less than limit_bound");
    is(aimd_options{.increase = 0}, "aimd_options: increase must be positive");
    is(aimd_options{.backoff = 1}, "aimd_options: backoff must be in (0, 1)");
    is(aimd_options{.timeout = 0ns}, "aimd_options: timeout must be positive");
    is(gradient_options{.minimum = 0}, "gradient_options: minimum must be in [1, maximum]");
    is(gradient_options{.maximum = turnstile::limit_bound},
       "gradient_options: maximum must be less than limit_bound");
    is(gradient_options{.tolerance = 0.5}, "gradient_options: tolerance must be 1 or more");
    is(gradient_options{.smoothing = 0}, "gradient_options: smoothing must be in (0, 1]");
    is(gradient_options{.head_room = -1}, "gradient_options: head_room must not be negative");
    is(gradient_options{.window = 0}, "gradient_options: window must not be 0");
}

BOOST_AUTO_TEST_CASE(backoff_hedge_and_retry_name_the_argument_that_is_wrong)
{
    const auto is = [](auto make, const std::string& rule) { BOOST_TEST(text_of(make) == rule); };
    is([] { backoff::constant(-1ns); }, "backoff: the first delay must not be negative");
    is([] { backoff::linear(1ns, -1ns); }, "backoff: step must not be negative");
    is([] { backoff::exponential(1ns, nan); }, "backoff: factor must be 1 or more");
    is([] { static_cast<void>(backoff::constant(1ns).capped(-1ns)); },
       "backoff: the cap must not be negative");
    const auto hedge = [&](const turnstile::hedge_options& options, const std::string& rule) {
        is([&] { turnstile::hedge_machine machine(options); }, "hedge: " + rule);
    };
    hedge({.delay = -1ns}, "delay must not be negative");
    hedge({.percentile = 1.5}, "percentile must be in (0, 1]");
    hedge({.max_attempts = 17}, "max_attempts must be in [1, 16]");
    const auto retry = [&](const turnstile::retry_options& options, const std::string& rule) {
        is([&] { turnstile::retry_machine machine(options, 0ns, 0); }, "retry: " + rule);
        asio::io_context io;
        is([&] { turnstile::retry made(io, options); }, "retry: " + rule);
    };
    retry({.max_attempts = 0}, "max_attempts must not be 0");
    retry({.attempt_timeout = -1ns}, "attempt_timeout must not be negative");
    retry({.total_timeout = -1ns}, "total_timeout must not be negative");
}

BOOST_AUTO_TEST_CASE(a_timeout_says_how_long_it_was)
{
    BOOST_TEST(
        timeout_text([](const any& executor, auto op, auto done) {
            turnstile::basic_timeout<any, manual_clock>(executor, 1500ms).async_call(op, done);
        }) == "timeout of 1500ms");
    BOOST_TEST(timeout_text([](const any& executor, auto op, auto done) {
                   turnstile::async_with_timeout<manual_clock>(executor, 2s, op, done);
               }) == "timeout of 2s");
    BOOST_TEST(timeout_text([](const any& executor, auto op, auto done) {
                   turnstile::async_with_timeout<manual_clock>(executor, 1ns, op, done);
               }) == "timeout of 1ns");
    BOOST_TEST(timeout_text([](const any& executor, auto op, auto done) {
                   turnstile::async_with_timeout<manual_clock>(executor, 0s, op, done);
               }) == "timeout of 0ns");
}

BOOST_AUTO_TEST_CASE(of_several_timeouts_the_message_says_which_one_it_was)
{
    const auto text = [](auto outer, auto inner) {
        return timeout_text([&](const any& executor, auto op, auto done) {
            turnstile::pipeline<manual_clock>(executor).timeout(outer).timeout(inner).async_call(
                op, done);
        });
    };
    BOOST_TEST(text(5s, 200ms) == "timeout of 200ms");
    BOOST_TEST(text(5s, 1h) == "timeout of 5s");
}

BOOST_AUTO_TEST_CASE(a_retry_says_which_of_its_limits_it_was)
{
    const auto text = [](const turnstile::retry_options& options) {
        return timeout_text([&](const any& executor, auto op, auto done) {
            turnstile::async_retry<manual_clock>(executor, options, op, done);
        });
    };
    BOOST_TEST(text({.max_attempts = 1, .attempt_timeout = 300ms}) ==
               "retry: attempt_timeout of 300ms");
    BOOST_TEST(text({.max_attempts = 1, .total_timeout = 10s}) == "retry: total_timeout of 10s");
    BOOST_TEST(text({.max_attempts = 1, .attempt_timeout = 300ms, .total_timeout = 10s}) ==
               "retry: attempt_timeout of 300ms");
    BOOST_TEST(text({.max_attempts = 1, .attempt_timeout = 1h, .total_timeout = 10s}) ==
               "retry: total_timeout of 10s");
}

BOOST_AUTO_TEST_CASE(a_wait_for_a_place_that_took_too_long_says_so)
{
    using bulkhead_type = turnstile::basic_bulkhead<any, turnstile::thread_safe, manual_clock>;
    std::optional<bulkhead_type> bulkhead;
    bulkhead_type::permit_type permit;
    BOOST_TEST(timeout_text([&](const any& executor, auto op, auto done) {
                   bulkhead.emplace(executor, bulkhead_options{.limit = 1, .max_wait = 1s});
                   permit = bulkhead->try_acquire();
                   bulkhead->async_call(op, [&, done](std::exception_ptr e) {
                       permit.release();
                       bulkhead.reset();
                       done(e);
                   });
               }) == "bulkhead");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
