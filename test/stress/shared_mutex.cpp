// SPDX-License-Identifier: BSL-1.0
// Readers, writers and upgraders on several threads; some of their operations are cancelled.
#include "kit/threads.hpp"

#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

constexpr int rounds = kit::rounds(1000);

BOOST_AUTO_TEST_SUITE(stress_shared_mutex)

BOOST_AUTO_TEST_CASE(readers_never_meet_a_writer)
{
    for (auto preference :
         {turnstile::lock_preference::fair, turnstile::lock_preference::prefer_readers,
          turnstile::lock_preference::prefer_writers}) {
        asio::io_context io;
        turnstile::shared_mutex m(io, preference);
        kit::expectation expect;
        long value = 0; // guarded by m
        std::atomic<int> finished = 0;
        const auto reader = [&]() -> asio::awaitable<void> {
            for (int i = 0; i != rounds; ++i) {
                auto lock = co_await m.async_lock_shared();
                const long before = value;
                if (i % 8 == 0)
                    co_await asio::post(asio::use_awaitable);
                expect(value == before);
            }
            ++finished;
        };
        const auto writer = [&]() -> asio::awaitable<void> {
            for (int i = 0; i != rounds; ++i) {
                auto lock = co_await m.async_lock();
                ++value;
            }
            ++finished;
        };
        const auto upgrader = [&]() -> asio::awaitable<void> {
            for (int i = 0; i != rounds; ++i) {
                auto reading = co_await m.async_lock_upgrade();
                const long before = value;
                auto writing = co_await m.async_upgrade(reading);
                expect(value == before);
                ++value;
                auto again = m.downgrade(std::move(writing));
                expect(value == before + 1);
            }
            ++finished;
        };
        for (int i = 0; i != 4; ++i) {
            asio::co_spawn(io, reader(), asio::detached);
            asio::co_spawn(io, writer(), asio::detached);
            asio::co_spawn(io, upgrader(), asio::detached);
        }
        kit::run_on_threads(io);
        BOOST_TEST(expect.failures() == 0);
        BOOST_TEST(finished == 12);
        BOOST_TEST(value == 8L * rounds);
        BOOST_TEST(m.try_lock());
    }
}

BOOST_AUTO_TEST_CASE(racing_cancellations_leave_no_lock_behind)
{
    asio::io_context io;
    turnstile::shared_mutex m(io);
    kit::expectation expect;
    const auto worker = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds; ++i) {
            kit::racing_cancellation cancellation(executor, (i + id) % 2 == 0);
            if ((i + id) % 3 == 0) {
                auto [ec, lock] = co_await m.async_lock(cancellation.token());
                expect(lock.owns_lock() != bool(ec));
            } else {
                auto lock = co_await m.async_lock_upgrade();
                auto [failed, writing] = co_await m.async_upgrade(lock, cancellation.token());
                expect(writing.owns_lock() != bool(failed));
                expect(lock.owns_lock() == bool(failed));
            }
            co_await cancellation.emitted();
        }
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), worker(i), asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(expect.failures() == 0);
    BOOST_TEST(m.try_lock());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
