// SPDX-License-Identifier: BSL-1.0
// Children of a group on several threads, with cancellations from outside.
#include <turnstile/work/task_group.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstddef>
#include <thread>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;

asio::awaitable<void> brief(std::atomic<std::size_t>& ended)
{
    co_await asio::post(asio::use_awaitable);
    ++ended;
}

asio::awaitable<void> forever()
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_at(asio::steady_timer::time_point::max());
    co_await timer.async_wait(asio::use_awaitable);
}

BOOST_AUTO_TEST_SUITE(task_group)

BOOST_AUTO_TEST_CASE(threads_spawn_into_one_group_under_a_limit)
{
    asio::thread_pool pool(2);
    ts::task_group group(pool, {.limit = 10});
    std::atomic<std::size_t> ended{0};
    for (int producer = 0; producer != 2; ++producer)
        asio::co_spawn(
            pool,
            [&]() -> asio::awaitable<void> {
                for (int i = 0; i != 2000; ++i)
                    co_await group.async_spawn(brief(ended));
            },
            asio::detached);
    for (int i = 0; i != 2000; ++i)
        group.spawn_when_free(brief(ended));
    pool.join();
    BOOST_TEST(ended == 6000U);
    BOOST_TEST(group.stats().succeeded == 6000U);
    BOOST_TEST(group.stats().running == 0U);
}

BOOST_AUTO_TEST_CASE(a_cancellation_reaches_children_that_are_being_started)
{
    for (int round = 0; round != 300; ++round) {
        asio::thread_pool pool(2);
        ts::task_group group(pool);
        asio::post(pool, [&] {
            for (int i = 0; i != 10; ++i)
                group.spawn(forever);
            group.cancel();
        });
        for (int i = 0; i != 5; ++i)
            group.cancel();
        pool.join();
        BOOST_TEST(group.stats().cancelled == 10U);
    }
}

BOOST_AUTO_TEST_CASE(a_group_that_is_closed_and_cancelled_ends)
{
    std::atomic<std::size_t> ended{0};
    for (int round = 0; round != 300; ++round) {
        asio::thread_pool pool(2);
        ts::task_group group(pool, {.limit = 2});
        asio::post(pool, [&] {
            for (int i = 0; i != 3; ++i) {
                group.async_spawn(brief(ended), asio::detached);
                group.async_spawn(forever(), asio::detached); // waits for the place of the first
            }
        });
        while (group.stats().spawned == 0)
            std::this_thread::yield();
        group.close();
        group.cancel();
        pool.join(); // hangs if a child was not cancelled
        BOOST_TEST(group.stats().running == 0U);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
