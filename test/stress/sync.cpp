// SPDX-License-Identifier: BSL-1.0
// Mutex, semaphore and events on several threads: the invariants, and data races for the thread
// sanitizer.
#include "kit/threads.hpp"

#include <turnstile/resilience/rate_limiter.hpp>
#include <turnstile/sync/auto_reset_event.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using turnstile::error_code;

constexpr int rounds = kit::rounds(2000);

BOOST_AUTO_TEST_SUITE(stress_sync)

BOOST_AUTO_TEST_CASE(a_mutex_excludes_on_many_threads)
{
    asio::io_context io;
    turnstile::mutex m(io);
    long counter = 0; // guarded by m
    const auto worker = [&](bool yields) -> asio::awaitable<void> {
        for (int i = 0; i != rounds; ++i) {
            auto lock = co_await m.async_lock();
            ++counter;
            if (yields && i % 7 == 0)
                co_await asio::post(asio::use_awaitable);
        }
    };
    for (int i = 0; i != 16; ++i)
        asio::co_spawn(io, worker(i % 2 == 0), asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(counter == 16L * rounds);
    BOOST_TEST(!m.is_locked());
}

// A concurrency hint of 1 does not say from which threads the objects are called.
BOOST_AUTO_TEST_CASE(a_hint_of_one_thread_leaves_the_locks_on)
{
    asio::io_context io(1);
    turnstile::mutex m(io);
    turnstile::semaphore s(io, 0);
    long counter = 0; // guarded by m
    int received = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != 2 * rounds; ++i) {
                auto permit = co_await s.async_acquire();
                received += static_cast<int>(permit.detach());
                auto lock = co_await m.async_lock();
                ++counter;
            }
        },
        asio::detached);
    const auto call_from_outside = [&] {
        for (int i = 0; i != rounds; ++i) {
            s.release();
            while (!m.try_lock())
                std::this_thread::yield();
            ++counter;
            m.unlock();
        }
    };
    kit::at_once([&] { io.run(); }, call_from_outside, call_from_outside);
    BOOST_TEST(received == 2 * rounds);
    BOOST_TEST(counter == 4L * rounds);
    BOOST_TEST(s.available() == 0U);
}

BOOST_AUTO_TEST_CASE(a_semaphore_loses_no_permit_to_racing_cancellations)
{
    asio::io_context io;
    turnstile::semaphore s(io, 3, 3);
    std::atomic<int> acquired = 0;
    kit::expectation expect;
    const auto worker = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds; ++i) {
            kit::racing_cancellation cancellation(executor, (i + id) % 3 == 0);
            const auto n = static_cast<std::uint64_t>(1 + (i + id) % 3);
            auto [ec, permit] = co_await s.async_acquire(n, cancellation.token());
            if (!ec) {
                expect(permit.count() == n);
                ++acquired;
            }
            co_await cancellation.emitted();
        }
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), worker(i), asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(acquired > 0);
    BOOST_TEST(expect.failures() == 0);
    BOOST_TEST(s.available() == 3U);
}

BOOST_AUTO_TEST_CASE(signals_from_other_threads_all_arrive)
{
    asio::io_context io;
    turnstile::auto_reset_event ping(io);
    turnstile::auto_reset_event pong(io);
    int exchanged = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != rounds; ++i) {
                ping.set();
                co_await pong.async_wait();
                ++exchanged;
            }
        },
        asio::detached);
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != rounds; ++i) {
                co_await ping.async_wait();
                pong.set();
            }
        },
        asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(exchanged == rounds);
}

BOOST_AUTO_TEST_CASE(an_event_set_by_another_thread_wakes_all_waiters)
{
    for (int round = 0; round != rounds / 20; ++round) {
        asio::io_context io;
        turnstile::event e(io);
        std::atomic<int> woken = 0;
        for (int i = 0; i != 20; ++i)
            asio::co_spawn(
                io,
                [&]() -> asio::awaitable<void> {
                    co_await e.async_wait();
                    ++woken;
                },
                asio::detached);
        {
            kit::joining_thread setter([&] { e.set(); });
            kit::run_on_threads(io);
        }
        BOOST_TEST(woken == 20);
    }
}

BOOST_AUTO_TEST_CASE(a_handler_that_blocks_delays_no_other_handler)
{
    // The first handler blocks its thread until the last handler has run on another thread.
    asio::io_context io;
    turnstile::event e(io);
    std::promise<void> last_ran;
    std::atomic<int> woken = 0;
    constexpr int waiters = 50;
    for (int i = 0; i != waiters; ++i)
        e.async_wait([&, i](error_code) {
            if (i == 0)
                last_ran.get_future().wait();
            else if (++woken == waiters - 1)
                last_ran.set_value();
        });
    e.set();
    kit::run_on_threads(io);
    BOOST_TEST(woken == waiters - 1);
}

BOOST_AUTO_TEST_CASE(an_object_may_be_destroyed_by_its_last_handler)
{
    for (int round = 0; round != rounds / 4; ++round) {
        asio::io_context io;
        auto m = std::make_shared<turnstile::mutex>(io);
        BOOST_REQUIRE(m->try_lock());
        for (int i = 0; i != 3; ++i)
            m->async_lock([m](error_code, auto) {});
        asio::post(io, [p = m.get()] { p->unlock(); });
        m.reset();
        kit::run_on_threads(io);
    }
}

// The object and its context are destroyed while the handler is posted to another context.
BOOST_AUTO_TEST_CASE(a_context_may_be_destroyed_while_a_handler_runs_on_another_context)
{
    asio::thread_pool pool(2);
    std::atomic<int> completed = 0;
    const auto handler = [&](error_code) { ++completed; };
    for (int i = 0; i != 5 * rounds; ++i) {
        asio::io_context io;
        turnstile::event e(io);
        turnstile::rate_limiter timed(io, turnstile::per_second(1, 1));
        e.async_wait(asio::bind_executor(pool, handler));
        timed.async_acquire(asio::bind_executor(pool, handler));
        e.set();
    }
    pool.join();
    BOOST_TEST(completed == 10 * rounds);
}

BOOST_AUTO_TEST_CASE(a_race_against_a_timer_loses_no_signal)
{
    asio::io_context io;
    turnstile::auto_reset_event e(io);
    std::atomic<int> taken = 0;
    std::atomic<int> set = 0;
    std::atomic<int> finished = 0;
    const auto consumer = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != rounds; ++i) {
            asio::steady_timer now(co_await asio::this_coro::executor,
                                   asio::steady_timer::time_point::min());
            const auto result =
                co_await (e.async_wait(asio::use_awaitable) || now.async_wait(asio::use_awaitable));
            // One signal exists at a time, stored or taken: a taken one is followed by the next.
            if (result.index() == 0) {
                ++taken;
                ++set;
                e.set();
            }
        }
        ++finished;
    };
    ++set;
    e.set();
    for (int i = 0; i != 4; ++i)
        asio::co_spawn(asio::make_strand(io), consumer(), asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(finished == 4);
    BOOST_TEST(set == taken + (e.is_set() ? 1 : 0));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
