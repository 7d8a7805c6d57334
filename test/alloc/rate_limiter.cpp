// SPDX-License-Identifier: BSL-1.0
// Rate limiters do not allocate while no operation waits, nor to wake a waiter once warm. If there
// is no memory to arm the timer, no operation waits for ever.
#include "alloc/heap.hpp"
#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/keyed_rate_limiter.hpp>
#include <turnstile/resilience/rate_limiter.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <new>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::error_code;
using turnstile::per_second;
using namespace std::chrono_literals;

template <class Threading>
using limiter_of =
    turnstile::basic_rate_limiter<asio::any_io_executor, Threading, kit::manual_clock>;
template <class Threading>
using keyed_of = turnstile::basic_keyed_rate_limiter<int, std::hash<int>, std::equal_to<int>,
                                                     asio::any_io_executor, Threading>;

// The number of allocations in `rounds` rounds of a coroutine, after as many rounds to warm up.
template <class Body>
std::size_t allocations_of(asio::io_context& io, int rounds, Body body)
{
    std::size_t before = 0;
    std::size_t after = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != 2 * rounds; ++i) {
                if (i == rounds)
                    before = heap::allocations();
                co_await body();
            }
            after = heap::allocations();
        },
        asio::detached);
    kit::run(io);
    return after - before;
}

BOOST_AUTO_TEST_SUITE(rate_limiter_allocations)

BOOST_AUTO_TEST_CASE_TEMPLATE(without_waiters_there_are_no_allocations, P, kit::policies)
{
    asio::io_context io;
    turnstile::basic_rate_limiter<asio::any_io_executor, P> l(io, per_second(1e6, 1'000'000));
    keyed_of<P> k(io, per_second(1e6, 1'000'000));
    BOOST_TEST(allocations_of(io, 300, [&]() -> asio::awaitable<void> {
                   co_await l.async_acquire();
                   BOOST_REQUIRE(l.try_acquire(2));
               }) == 0U);
    BOOST_TEST(allocations_of(io, 300, [&]() -> asio::awaitable<void> {
                   co_await k.async_acquire(1);
                   BOOST_REQUIRE(k.try_acquire(1, 2));
               }) == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waiting_for_the_timer_does_not_allocate_once_warm, P, kit::policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        turnstile::basic_rate_limiter<asio::any_io_executor, P> l(io, per_second(1e6, 1));
        keyed_of<P> k(io, per_second(1e6, 1));
        BOOST_TEST(allocations_of(io, 300, [&] { return l.async_acquire(); }) == 0U);
        BOOST_TEST(allocations_of(io, 300, [&] { return k.async_acquire(1); }) == 0U);
    }
}

// Allocation k fails, once or for ever, from before the wait until its end.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_wait_starts_or_throws_and_ends_in_its_time, P, kit::policies)
{
    for (const heap::failure how : {heap::failure::once, heap::failure::for_ever}) {
        for (std::size_t k = 0, met = 1; met != 0; ++k) {
            BOOST_TEST_REQUIRE(k < 50U);
            kit::drained_context io;
            limiter_of<P> l(io, per_second(10, 1));
            BOOST_TEST(l.try_acquire());
            completion c(kit::dropping::is_expected);
            bool thrown = false;
            heap::failing failing(k, how);
            try {
                l.async_acquire(c.handler([] {}));
            } catch (const std::bad_alloc&) {
                thrown = true;
            }
            kit::manual_clock::advance(io, 100ms - 1ns);
            BOOST_TEST(!c.succeeded());
            kit::manual_clock::advance(io, 1ns);
            failing.stop();
            met = failing.happened() ? 1 : 0;
            // Without memory for a timer the operation is refused.
            const bool refused = c.error() == turnstile::errc::rejected;
            BOOST_TEST((c.succeeded() ? 1 : 0) + (thrown ? 1 : 0) + (refused ? 1 : 0) == 1);
            BOOST_TEST(l.available() == (c.succeeded() ? 0U : 1U));
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_new_key_is_there_or_not, P, kit::policies)
{
    for (const heap::failure how : {heap::failure::once, heap::failure::for_ever}) {
        for (std::size_t k = 0, met = 1; met != 0; ++k) {
            BOOST_TEST_REQUIRE(k < 50U);
            asio::io_context io;
            keyed_of<P> l(io, per_second(1, 2));
            bool taken = false;
            heap::failing failing(k, how);
            try {
                taken = l.try_acquire(7, 2);
            } catch (const std::bad_alloc&) {
            }
            failing.stop();
            met = failing.happened() ? 1 : 0;
            BOOST_TEST(l.size() == (taken ? 1U : 0U));
            BOOST_TEST(taken == (met == 0));
            BOOST_TEST(l.try_acquire(7, 2) != taken);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
