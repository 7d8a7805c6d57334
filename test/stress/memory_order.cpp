// SPDX-License-Identifier: BSL-1.0
// Plain data that is published by a release with waiters, the slow way, and read after an acquire
// without, the fast way: nothing but the order of the two orders it. For TSan.
#include "kit/threads.hpp"

#include <turnstile/channel/queue.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/semaphore.hpp>
#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <thread>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

// In each turn let_wait() queues a waiter, publish() lets it go, and try_fetch() succeeds on the
// other thread only after that.
template <class LetWait, class Publish, class TryFetch>
void published_is_seen(asio::io_context& io, LetWait let_wait, Publish publish, TryFetch try_fetch)
{
    const int rounds = kit::rounds(2000);
    int data = 0;
    std::atomic<int> turn{0}; // relaxed: it orders nothing
    std::atomic<int> seen{0};
    kit::expectation expect;
    std::thread reader([&] {
        for (int i = 1; i <= rounds; ++i) {
            while (turn.load(std::memory_order_relaxed) != i || !try_fetch())
                std::this_thread::yield();
            expect(data == i);
            seen.store(i, std::memory_order_release);
        }
    });
    for (int i = 1; i <= rounds; ++i) {
        let_wait();
        turn.store(i, std::memory_order_relaxed);
        data = i;
        publish();
        while (seen.load(std::memory_order_acquire) != i)
            std::this_thread::yield();
        io.restart();
        io.poll();
    }
    reader.join();
    BOOST_TEST(expect.failures() == 0);
}

BOOST_AUTO_TEST_SUITE(memory_order)

BOOST_AUTO_TEST_CASE(a_permit_that_is_left_after_a_waiter)
{
    asio::io_context io;
    turnstile::semaphore s(io, 0);
    published_is_seen(
        io, [&] { s.async_acquire([](error_code, auto permit) { (void)permit.detach(); }); },
        [&] { s.release(2); }, [&] { return s.try_acquire().detach() == 1; });
}

BOOST_AUTO_TEST_CASE(a_writer_lets_a_reader_go_and_another_follows)
{
    asio::io_context io;
    turnstile::shared_mutex m(io);
    kit::expectation expect;
    published_is_seen(
        io,
        [&] {
            expect(m.try_lock());
            m.async_lock_shared([](error_code, auto) {});
        },
        [&] { m.unlock(); },
        [&] {
            if (!m.try_lock_shared())
                return false;
            m.unlock_shared();
            return true;
        });
    BOOST_TEST(expect.failures() == 0);
}

BOOST_AUTO_TEST_CASE(an_event_that_is_awaited)
{
    asio::io_context io;
    turnstile::event e(io);
    published_is_seen(
        io,
        [&] {
            e.clear();
            e.async_wait([](error_code) {});
        },
        [&] { e.set(); }, [&] { return e.is_set(); });
}

BOOST_AUTO_TEST_CASE(an_item_that_is_left_after_a_waiter)
{
    asio::io_context io;
    turnstile::queue<int> q(io, 4);
    kit::expectation expect;
    published_is_seen(
        io, [&] { q.async_pop([](error_code, int) {}); },
        [&] {
            expect(q.try_push(1));
            expect(q.try_push(2));
        },
        [&] { return q.try_pop().has_value(); });
    BOOST_TEST(expect.failures() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
