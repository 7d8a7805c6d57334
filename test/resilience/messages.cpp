// SPDX-License-Identifier: BSL-1.0
// The texts of exceptions: which option was wrong, and which time limit was exceeded.
#include "kit/manual_clock.hpp"
#include "kit/run.hpp"
#include "kit/thrown_text.hpp"

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
using turnstile::backoff;
using turnstile::bulkhead_options;
using turnstile::nanoseconds;
using any = asio::any_io_executor;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

using kit::text_of;

// The text of the exception that ends a call whose operation never completes by itself.
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

BOOST_AUTO_TEST_CASE(backoff_and_retry_name_the_argument_that_is_wrong)
{
    const auto is = [](auto make, const std::string& rule) { BOOST_TEST(text_of(make) == rule); };
    is([] { backoff::constant(-1ns); }, "backoff: the first delay must not be negative");
    is([] { backoff::linear(1ns, -1ns); }, "backoff: step must not be negative");
    is([] { backoff::exponential(1ns, nan); }, "backoff: factor must be 1 or more");
    is([] { static_cast<void>(backoff::constant(1ns).capped(-1ns)); },
       "backoff: the cap must not be negative");
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
