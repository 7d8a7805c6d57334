// SPDX-License-Identifier: BSL-1.0
// Plain data, written before a release on the slow path (with waiters) and read after an acquire on
// the fast path (without waiting). Only the memory order of release and acquire makes that safe;
// the thread sanitizer reports a data race otherwise.
#include "kit/threads.hpp"

#include <turnstile/channel/queue.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/semaphore.hpp>
#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

// In each round enqueue() queues a waiter and release() grants it; only then try_acquire() succeeds
// on the other thread.
template <class Enqueue, class Release, class TryAcquire>
void written_data_is_visible(asio::io_context& io, Enqueue enqueue, Release release,
                             TryAcquire try_acquire)
{
    const int rounds = kit::rounds(2000);
    int data = 0;
    std::atomic<int> round{0}; // relaxed: orders nothing
    std::atomic<int> seen{0};
    kit::expectation expect;
    kit::joining_thread reader([&] {
        for (int i = 1; i <= rounds; ++i) {
            while (round.load(std::memory_order_relaxed) != i || !try_acquire())
                std::this_thread::yield();
            expect(data == i);
            seen.store(i, std::memory_order_release);
        }
    });
    for (int i = 1; i <= rounds; ++i) {
        enqueue();
        round.store(i, std::memory_order_relaxed);
        data = i;
        release();
        while (seen.load(std::memory_order_acquire) != i)
            std::this_thread::yield();
        io.restart();
        io.poll();
    }
    reader.join();
    BOOST_TEST(expect.failures() == 0);
}

BOOST_AUTO_TEST_SUITE(stress_memory_order)

BOOST_AUTO_TEST_CASE(data_written_before_a_release_is_visible_to_the_holder_of_a_remaining_permit)
{
    asio::io_context io;
    turnstile::semaphore s(io, 0);
    written_data_is_visible(
        io, [&] { s.async_acquire([](error_code, auto permit) { (void)permit.detach(); }); },
        [&] { s.release(2); }, [&] { return s.try_acquire().detach() == 1; });
}

BOOST_AUTO_TEST_CASE(data_of_a_writer_is_visible_to_a_second_reader)
{
    asio::io_context io;
    turnstile::shared_mutex m(io);
    kit::expectation expect;
    written_data_is_visible(
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

BOOST_AUTO_TEST_CASE(data_written_before_set_is_visible_to_a_thread_that_sees_the_event_set)
{
    asio::io_context io;
    turnstile::event e(io);
    written_data_is_visible(
        io,
        [&] {
            e.clear();
            e.async_wait([](error_code) {});
        },
        [&] { e.set(); }, [&] { return e.is_set(); });
}

BOOST_AUTO_TEST_CASE(data_written_before_a_push_is_visible_after_a_pop_of_a_remaining_item)
{
    asio::io_context io;
    turnstile::queue<int> q(io, 4);
    kit::expectation expect;
    written_data_is_visible(
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
