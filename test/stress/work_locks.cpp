// SPDX-License-Identifier: BSL-1.0
// Guarded values and keyed mutexes on several threads; some of the operations are cancelled.
#include "kit/threads.hpp"

#include <turnstile/work/guarded.hpp>
#include <turnstile/work/keyed_mutex.hpp>
#include <turnstile/work/shared_guarded.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace {

namespace asio = boost::asio;

constexpr int rounds = kit::rounds(2000);

BOOST_AUTO_TEST_SUITE(stress_work_locks)

BOOST_AUTO_TEST_CASE(a_guarded_value_has_one_user_at_a_time)
{
    asio::io_context io;
    turnstile::guarded<long> value(io, 0L);
    turnstile::shared_guarded<long> shared(io, 0L);
    kit::expectation expect;
    const auto worker = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds; ++i) {
            {
                auto handle = co_await value.async_lock();
                ++*handle;
            }
            {
                auto handle = co_await shared.async_lock();
                ++*handle;
            }
            kit::racing_cancellation cancellation(executor, (i + id) % 2 == 0);
            {
                auto [ec, handle] = co_await shared.async_read(cancellation.token());
                expect(handle.owns_lock() != bool(ec));
                if (handle)
                    expect(*handle > 0);
            }
            co_await cancellation.emitted();
        }
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), worker(i), asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(expect.failures() == 0);
    BOOST_TEST(*value.try_lock() == 8L * rounds);
    BOOST_TEST(*shared.try_lock() == 8L * rounds);
}

BOOST_AUTO_TEST_CASE(keys_exclude_and_sets_of_keys_do_not_deadlock)
{
    constexpr int keys = 5;
    asio::io_context io;
    turnstile::keyed_mutex<int> m(io);
    std::array<long, keys> counts{}; // each guarded by its key
    std::atomic<long> expected = 0;
    kit::expectation expect;
    const auto worker = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds; ++i) {
            const int a = (i + id) % keys;
            const int b = (i * 3 + id * 2 + 1) % keys;
            {
                auto lock = co_await m.async_lock(a);
                ++counts[static_cast<std::size_t>(lock.key())];
                ++expected;
            }
            kit::racing_cancellation cancellation(executor, i % 2 == 0);
            {
                const std::vector<int> wanted{a, b, (a + 1) % keys};
                auto [ec, locks] = co_await m.async_lock_all(wanted, cancellation.token());
                expect(locks.owns_lock() != bool(ec));
                for (std::size_t k = 0; k != locks.size(); ++k) {
                    ++counts[static_cast<std::size_t>(locks.key(k))];
                    ++expected;
                }
            }
            co_await cancellation.emitted();
        }
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), worker(i), asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(expect.failures() == 0);
    BOOST_TEST(m.size() == 0U);
    BOOST_TEST(m.waiting() == 0U);
    long sum = 0;
    for (const long n : counts)
        sum += n;
    BOOST_TEST(sum == expected.load());
}

// The mutex is destroyed on one thread while locks of it are unlocked on another.
BOOST_AUTO_TEST_CASE(locks_are_unlocked_while_the_mutex_is_destroyed)
{
    asio::io_context io;
    for (int i = 0; i != rounds / 4; ++i) {
        std::optional<turnstile::keyed_mutex<int>> m(std::in_place, io);
        std::optional<turnstile::guarded<std::unique_ptr<int>>> g;
        g.emplace(io, std::make_unique<int>(i));
        auto a = m->try_lock(1);
        auto b = m->try_lock_all({2, 3});
        auto value = g->try_lock();
        kit::at_once(
            [&] {
                a.unlock();
                **value += 1;
                value.unlock();
            },
            [&] { b.unlock(); },
            [&] {
                m.reset();
                g.reset();
            });
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
