// SPDX-License-Identifier: BSL-1.0
// Calls through time limits, retries and the other stages do not allocate once warm, apart from
// what co_spawn allocates where it is needed.
#include "alloc/heap.hpp"

#include <turnstile/resilience/pipeline.hpp>
#include <turnstile/sync/event.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> posted() { co_await asio::post(asio::use_awaitable); }

// Makes calls one after the other, and returns the allocations of those after the first.
template <class Call>
std::size_t allocations_of(asio::io_context& io, Call call)
{
    std::size_t allocations = 0;
    const auto work = [&]() -> asio::awaitable<void> {
        std::size_t before = 0;
        for (int i = 0; i != 1300; ++i) {
            if (i == 300)
                before = heap::allocations();
            co_await call();
        }
        allocations = heap::allocations() - before;
    };
    asio::co_spawn(io, work, asio::detached);
    io.restart();
    io.run();
    return allocations;
}

struct fixture {
    asio::io_context io;
    turnstile::circuit_breaker breaker{io};
    turnstile::bulkhead bulkhead{io, {.limit = 1}};
    turnstile::rate_limiter limiter{io, turnstile::per_second(1e9, 1'000'000)};
};

BOOST_FIXTURE_TEST_SUITE(call_allocations, fixture)

BOOST_AUTO_TEST_CASE(a_time_limit_does_not_allocate_once_warm)
{
    if constexpr (heap::sees_aligned_alloc) {
        turnstile::event set(io, true);
        BOOST_TEST(allocations_of(io, [&] {
                       return set.async_wait(turnstile::timeout_after(1h, asio::use_awaitable));
                   }) == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_time_limit_on_a_coroutine_allocates_no_more_than_co_spawn)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::cancellation_signal signal;
        const std::size_t spawned = allocations_of(io, [&] {
            return asio::co_spawn(io, &posted,
                                  asio::bind_cancellation_slot(signal.slot(), asio::use_awaitable));
        });
        BOOST_TEST(allocations_of(io, [&] {
                       return turnstile::async_with_timeout(1h, &posted, asio::use_awaitable);
                   }) <= spawned + 1000U); // and the frame that destroys the captures
    }
}

BOOST_AUTO_TEST_CASE(stages_around_a_coroutine_do_not_allocate_once_warm)
{
    if constexpr (heap::sees_aligned_alloc) {
        BOOST_TEST(allocations_of(io, [&] {
                       return turnstile::async_retry({}, &posted, asio::use_awaitable);
                   }) == 0U);
        const auto calls = turnstile::pipeline(io)
                               .retry()
                               .circuit_breaker(breaker)
                               .bulkhead(bulkhead)
                               .rate_limiter(limiter);
        BOOST_TEST(allocations_of(
                       io, [&] { return calls.async_call(&posted, asio::use_awaitable); }) == 0U);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
