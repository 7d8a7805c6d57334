// SPDX-License-Identifier: BSL-1.0
// Producers and consumers on several threads; some of their waits are cancelled.
#include "kit/threads.hpp"

#include <turnstile/sync/condition.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

constexpr int rounds = kit::rounds(1000);

BOOST_AUTO_TEST_SUITE(stress_condition)

// A buffer of two items, with one condition for both sides: a notification often reaches a waiter
// whose predicate is false, and must be passed on.
BOOST_AUTO_TEST_CASE(no_notification_is_lost_between_both_sides_of_a_buffer)
{
    asio::io_context io;
    turnstile::mutex m(io);
    turnstile::condition c(io);
    std::deque<int> items; // guarded by m
    std::atomic<int> taken = 0;
    std::atomic<int> finished = 0;
    const auto producer = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != rounds; ++i) {
            auto lock = co_await m.async_lock();
            co_await c.async_wait(lock, [&] { return items.size() < 2; });
            items.push_back(i);
            c.notify_one();
        }
        ++finished;
    };
    const auto consumer = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != rounds; ++i) {
            auto lock = co_await m.async_lock();
            co_await c.async_wait(lock, [&] { return !items.empty(); });
            items.pop_front();
            ++taken;
            lock.unlock();
            c.notify_one(); // without the lock
        }
        ++finished;
    };
    for (int i = 0; i != 4; ++i) {
        asio::co_spawn(io, producer(), asio::detached);
        asio::co_spawn(io, consumer(), asio::detached);
    }
    kit::run_on_threads(io);
    BOOST_TEST(finished == 8);
    BOOST_TEST(taken == 4 * rounds);
    BOOST_TEST(!m.is_locked());
}

BOOST_AUTO_TEST_CASE(racing_cancellations_lose_no_notification_and_no_lock)
{
    asio::io_context io;
    turnstile::mutex m(io);
    turnstile::condition c(io);
    kit::expectation expect;
    int items = 0;    // guarded by m
    int consumed = 0; // guarded by m
    constexpr int wanted = 8 * rounds;
    const auto consumer = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0;; ++i) {
            auto lock = co_await m.async_lock();
            kit::racing_cancellation cancellation(executor, (i + id) % 2 == 0);
            auto [ec] = co_await c.async_wait(
                lock, [&] { return items != 0 || consumed == wanted; }, cancellation.token());
            expect(lock.owns_lock());
            if (!ec && items != 0) {
                --items;
                if (++consumed == wanted)
                    c.notify_all();
            }
            const bool over = consumed == wanted;
            lock.unlock();
            co_await cancellation.emitted();
            if (over)
                co_return;
        }
    };
    const auto producer = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != wanted / 2; ++i) {
            auto lock = co_await m.async_lock();
            ++items;
            c.notify_one();
        }
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), consumer(i), asio::detached);
    for (int i = 0; i != 2; ++i)
        asio::co_spawn(io, producer(), asio::detached);
    kit::run_on_threads(io); // hangs if a notification is lost
    BOOST_TEST(expect.failures() == 0);
    BOOST_TEST(consumed == wanted);
    BOOST_TEST(items == 0);
    BOOST_TEST(!m.is_locked());
}

// The thread that runs the handlers touches no state of an object that is confined to another
// strand.
BOOST_AUTO_TEST_CASE(a_local_wait_with_a_handler_on_another_executor_ends_on_its_strand)
{
    asio::io_context home;
    asio::io_context elsewhere;
    kit::context_thread handlers(elsewhere);
    turnstile::local::mutex m(home);
    turnstile::local::condition c(home);
    turnstile::local::mutex::lock_type lock(m, std::defer_lock);
    std::atomic<int> completed = 0;
    int left = rounds;
    std::function<void()> next = [&] {
        if (lock)
            lock.unlock();
        if (left-- == 0)
            return;
        BOOST_TEST_REQUIRE(m.try_lock());
        lock = {m, std::adopt_lock};
        c.async_wait(lock, asio::bind_executor(elsewhere, [&](error_code) {
                         ++completed;
                         asio::post(home, next);
                     }));
        c.notify_one();
    };
    asio::post(home, next);
    while (completed != rounds) {
        home.restart();
        home.run();
        std::this_thread::yield();
    }
    handlers.finish();
    home.restart();
    home.run();
    BOOST_TEST(!m.is_locked());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
