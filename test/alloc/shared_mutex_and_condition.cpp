// SPDX-License-Identifier: BSL-1.0
// Heap allocations of shared_mutex and condition: none once warm, and a wait that has started
// needs no more memory, so that it cannot fail half-way.
#include "alloc/heap.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/sync/condition.hpp>
#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <deque>
#include <mutex>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

template <class P>
using shared_mutex_of = turnstile::basic_shared_mutex<asio::any_io_executor, P>;
template <class P>
using mutex_of = turnstile::basic_mutex<asio::any_io_executor, P>;
template <class P>
using condition_of = turnstile::basic_condition<asio::any_io_executor, P>;

constexpr int warm_up = 300;
constexpr int rounds = 1000;

BOOST_AUTO_TEST_SUITE(allocations_of_shared_mutex_and_condition)

BOOST_AUTO_TEST_CASE_TEMPLATE(uncontended_locks_do_not_allocate, P, kit::policies)
{
    asio::io_context io;
    shared_mutex_of<P> m(io);
    std::size_t before = 0;
    std::size_t after = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != warm_up + rounds; ++i) {
                if (i == warm_up)
                    before = heap::allocations();
                {
                    auto reading = co_await m.async_lock_shared();
                    auto upgradable = co_await m.async_lock_upgrade();
                    reading.unlock();
                    auto writing = co_await m.async_upgrade(upgradable);
                }
                auto lock = co_await m.async_lock();
            }
            after = heap::allocations();
        },
        asio::detached);
    kit::run(io);
    if (heap::sees_aligned_alloc)
        BOOST_TEST(after == before);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_wait_on_a_condition_does_not_allocate_once_warm, P, kit::policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        mutex_of<P> m(io);
        condition_of<P> c(io);
        int turn = 0;
        std::size_t before = 0;
        std::size_t after = 0;
        const auto player = [&](int who) -> asio::awaitable<void> {
            auto lock = co_await m.async_lock();
            for (int i = 0; i != warm_up + rounds; ++i) {
                if (i == warm_up)
                    before = heap::allocations();
                co_await c.async_wait(lock, [&turn, who] { return turn == who; });
                turn = 1 - who;
                c.notify_one();
            }
            if (after == 0) // then one of them ends, which allocates
                after = heap::allocations();
        };
        asio::co_spawn(io, player(0), asio::detached);
        asio::co_spawn(io, player(1), asio::detached);
        kit::run(io);
        BOOST_TEST(after == before);
    }
}

// Once it waits, it is notified, queues for the lock, is not satisfied, waits again and is
// cancelled, all of it without memory.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_wait_that_has_started_needs_no_more_memory, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    condition_of<P> c(io);
    std::deque<turnstile::unique_lock<mutex_of<P>>> locks(3);
    asio::cancellation_signal signal;
    int satisfied = 0;
    int cancelled = 0;
    int asked = 0;
    for (auto& lock : locks) {
        lock = turnstile::unique_lock(m, std::try_to_lock);
        c.async_wait(
            lock, [&] { return ++asked > 9; },
            asio::bind_cancellation_slot(
                &lock == &locks[1] ? signal.slot() : asio::cancellation_slot(), [&](error_code ec) {
                    ++(ec ? cancelled : satisfied);
                    lock.unlock();
                }));
    }
    {
        heap::failing failing(0, heap::failure::for_ever);
        BOOST_TEST(m.try_lock());
        c.notify_all();
        io.poll();
        m.unlock();
        io.poll();
        c.notify_one();
        io.poll();
        signal.emit(asio::cancellation_type::terminal);
        io.poll();
        c.notify_all();
        io.poll();
        c.notify_all();
        io.poll();
        failing.stop();
        BOOST_TEST(!failing.happened());
    }
    kit::run(io);
    BOOST_TEST(satisfied == 2);
    BOOST_TEST(cancelled == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
