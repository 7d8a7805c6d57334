// SPDX-License-Identifier: BSL-1.0
// A resource pool on several threads: callers that are cancelled, operations that fail, and leases
// that outlive the pool.
#include "kit/threads.hpp"

#include <turnstile/work/resource_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using namespace std::chrono_literals;

constexpr int rounds = kit::rounds(1000);

struct counted {
    explicit counted(std::atomic<int>& n) : alive(&n) { ++n; }
    counted(counted&& other) noexcept
        : alive(std::exchange(other.alive, nullptr)), is_used(other.is_used)
    {
    }
    counted& operator=(counted&&) = delete;
    ~counted()
    {
        if (alive)
            --*alive;
    }
    std::atomic<int>* alive;
    bool is_used = false; // not atomic: two holders at a time would be a race
};

BOOST_AUTO_TEST_SUITE(stress_resource_pool)

BOOST_AUTO_TEST_CASE(a_resource_has_one_holder_and_none_is_lost)
{
    asio::io_context io;
    std::atomic<int> alive = 0;
    std::atomic<int> created = 0;
    std::atomic<int> checked = 0;
    kit::expectation expect;
    std::optional<ts::resource_pool<counted>> pool;
    pool.emplace(
        io,
        ts::resource_pool_options{.max_size = 4,
                                  .max_uses = 50,
                                  .bypass_window = 0s,
                                  .create_backoff = ts::backoff::constant(10us)},
        ts::resource_operations<counted>{.create = [&]() -> asio::awaitable<counted> {
                                             co_await asio::post(asio::use_awaitable);
                                             if (++created % 7 == 0)
                                                 throw std::runtime_error("no resource");
                                             co_return counted(alive);
                                         },
                                         .check = [&](counted& c) -> asio::awaitable<bool> {
                                             expect(!c.is_used);
                                             co_return ++checked % 11 != 0;
                                         },
                                         .reset = [&](counted& c) -> asio::awaitable<void> {
                                             expect(!c.is_used);
                                             co_return;
                                         }});
    pool->add_listener([&](const ts::resource_pool_event&) { expect(alive <= 4); });
    std::atomic<int> left = 8;
    const auto worker = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds; ++i) {
            kit::racing_cancellation cancellation(executor, (i + id) % 3 == 0);
            {
                auto [ec, lease] = co_await pool->async_acquire(cancellation.token());
                expect(static_cast<bool>(lease) != bool(ec));
                if (lease) {
                    expect(!std::exchange(lease->is_used, true));
                    lease->is_used = false;
                    if (i % 13 == 0)
                        lease.discard();
                }
            }
            co_await cancellation.emitted();
        }
        if (--left == 0)
            co_await pool->async_close();
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), worker(i), asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(expect.failures() == 0);
    BOOST_TEST(pool->stats().size == 0U);
    BOOST_TEST(alive == 0);
}

BOOST_AUTO_TEST_CASE(a_pool_is_destroyed_while_threads_return_leases_and_operations_run)
{
    for (int round = 0; round != kit::rounds(200); ++round) {
        std::atomic<int> alive = 0;
        {
            asio::io_context io;
            auto pool = std::make_unique<ts::resource_pool<counted>>(
                io,
                ts::resource_pool_options{
                    .max_size = 4, .initial_size = 4, .bypass_window = ts::nanoseconds::max()},
                ts::resource_operations<counted>{.create = [&]() -> asio::awaitable<counted> {
                    co_await asio::post(asio::use_awaitable);
                    co_return counted(alive);
                }});
            using lease_type = ts::resource_pool<counted>::lease_type;
            std::vector<lease_type> leases(2);
            for (auto& lease : leases)
                pool->async_acquire(
                    [&lease](ts::error_code, lease_type l) { lease = std::move(l); });
            io.run();
            io.restart();
            for (int i = 0; i != 5; ++i)
                pool->async_acquire([](ts::error_code, const lease_type&) {});
            kit::at_once([&] { leases[0].release(); }, [&] { leases[1].discard(); },
                         [&] { pool.reset(); }, [&] { io.run(); });
            io.run();
        }
        BOOST_TEST(alive == 0);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
