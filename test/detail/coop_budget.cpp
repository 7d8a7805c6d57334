// SPDX-License-Identifier: BSL-1.0
// The budget that makes a coroutine suspend now and then although it need not wait.
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

namespace {

namespace asio = boost::asio;
using budget = turnstile::detail::coop_budget;

BOOST_AUTO_TEST_SUITE(coop_budget)

BOOST_AUTO_TEST_CASE(the_budget_refuses_once_in_every_129)
{
    while (budget::try_consume()) {
    }
    for (int round = 0; round != 3; ++round) {
        for (unsigned i = 0; i != budget::size; ++i)
            BOOST_TEST(budget::try_consume());
        BOOST_TEST(!budget::try_consume());
    }
}

// Other handlers could run while the coroutine was suspended.
BOOST_AUTO_TEST_CASE(a_coroutine_that_waits_has_its_whole_budget_again)
{
    asio::io_context io;
    turnstile::mutex mutex(io);
    BOOST_TEST_REQUIRE(mutex.try_lock());
    unsigned left = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            while (budget::try_consume()) {
            }
            BOOST_TEST(budget::try_consume());
            const auto lock = co_await mutex.async_lock();
            while (budget::try_consume())
                ++left;
        },
        asio::detached);
    io.poll();
    mutex.unlock();
    io.run();
    BOOST_TEST(left == budget::size);
}

// A spawned coroutine starts inside the loop and suspends there, but no other handler has run.
BOOST_AUTO_TEST_CASE(a_loop_that_spawns_waiting_coroutines_lets_other_handlers_run)
{
    asio::io_context io;
    turnstile::mutex mutex(io);
    turnstile::event event(io);
    bool other_ran = false;
    int rounds = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            asio::post(io, [&] { other_ran = true; });
            while (!other_ran && ++rounds != 1000) {
                const auto lock = co_await mutex.async_lock();
                asio::co_spawn(io, event.async_wait(asio::use_awaitable), asio::detached);
            }
            event.set();
        },
        asio::detached);
    io.run();
    BOOST_TEST(rounds < 1000);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
