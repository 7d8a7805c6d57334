// SPDX-License-Identifier: BSL-1.0
// A small cache on several threads: hits, loads that are cancelled, values that are put and removed
// meanwhile, evictions and refreshes.
#include "kit/threads.hpp"

#include <turnstile/work/cache.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr int rounds = kit::rounds(3000);

BOOST_AUTO_TEST_SUITE(stress_cache)

BOOST_AUTO_TEST_CASE(each_key_has_only_values_of_its_own)
{
    asio::io_context io;
    const auto load = [](int key) -> asio::awaitable<std::string> {
        co_await asio::post(asio::use_awaitable);
        co_return std::to_string(key);
    };
    turnstile::cache<int, std::string> cache(io,
                                             {.max_entries = 16,
                                              .ttl = 1ms,
                                              .refresh_ahead = 500us,
                                              .stale_while_revalidate = 1ms,
                                              .max_loads = 4,
                                              .shards = 2},
                                             load);
    kit::expectation expect;
    std::atomic<std::uint64_t> removed = 0;
    cache.add_listener([&](const auto& e) {
        expect(*e.value == std::to_string(e.key));
        ++removed;
    });
    const auto worker = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds; ++i) {
            const int key = (i * 7 + id * 3) % 32;
            kit::racing_cancellation cancellation(executor, (i + id) % 4 == 0);
            {
                auto [ec, value] = co_await cache.async_get(key, cancellation.token());
                expect((value != nullptr) != bool(ec));
                if (value)
                    expect(*value == std::to_string(key));
            }
            co_await cancellation.emitted();
            switch (i % 16) {
            case 0:
                cache.put(key, std::to_string(key));
                break;
            case 5:
                cache.invalidate(key);
                break;
            case 7:
                if (const auto v = cache.peek(key))
                    expect(*v == std::to_string(key));
                break;
            case 11:
                cache.invalidate_if([](int k, const std::string&) { return k % 5 == 0; });
                break;
            default:
                break;
            }
            if (i % 256 == 100)
                cache.clear();
            expect(cache.size() <= 16);
        }
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), worker(i), asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(expect.failures() == 0);
    const turnstile::cache_stats s = cache.stats();
    BOOST_TEST(s.loading == 0U);
    BOOST_TEST(s.loaded + s.failed + s.cancelled == s.loads);
    BOOST_TEST(removed + cache.dropped_events() > 0U);
}

// Hits of a few keys, which all threads share, while others are inserted.
BOOST_AUTO_TEST_CASE(hits_race_with_evictions)
{
    asio::io_context io;
    turnstile::cache<int, int> cache(io, {.max_entries = 8, .shards = 1});
    const auto load = [](int key) -> asio::awaitable<int> { co_return key; };
    kit::expectation expect;
    kit::on_threads([&](int id) {
        for (int i = 0; i != rounds * 4; ++i) {
            const int key = i % 12;
            if (id % 2 == 0 && i % 3 == 0) {
                cache.put(key, key);
                continue;
            }
            cache.async_get(key, load, [&expect, key](turnstile::error_code, const auto& v) {
                expect(v && *v == key);
            });
        }
    });
    kit::run_on_threads(io);
    BOOST_TEST(expect.failures() == 0);
    BOOST_TEST(cache.stats().hits > 0U);
}

// Uses of entries that do not expire, more than a record holds, while others are put, evicted and
// removed.
BOOST_AUTO_TEST_CASE(recorded_hits_race_with_changes)
{
    asio::io_context io;
    turnstile::cache<int, std::string> cache(
        io, {.max_entries = 16, .shards = 1},
        [](int key) -> asio::awaitable<std::string> { co_return std::to_string(key); });
    kit::expectation expect;
    const auto worker = [&](int id) -> asio::awaitable<void> {
        for (int i = 0; i != rounds * 4; ++i) {
            const int key = i % 400 < 300 ? i % 12 : i % 24;
            const auto value = co_await cache.async_get(key);
            expect(*value == std::to_string(key));
            if (i % 400 == 399 && id % 2 == 0)
                cache.put(key, std::to_string(key));
            else if (i % 400 == 399)
                cache.invalidate(key);
        }
    };
    for (int i = 0; i != 4; ++i)
        asio::co_spawn(asio::make_strand(io), worker(i), asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(expect.failures() == 0);
    BOOST_TEST(cache.stats().hits > 0U);
    BOOST_TEST(cache.stats().evicted > 0U);
}

BOOST_AUTO_TEST_CASE(destruction_races_with_loads)
{
    kit::expectation expect;
    for (int round = 0; round != rounds / 10; ++round) {
        asio::io_context io;
        auto cache = std::make_unique<turnstile::cache<int, int>>(
            io, turnstile::cache_options<int, int>{.max_loads = 2});
        std::atomic<int> ended = 0;
        for (int key = 0; key != 6; ++key) {
            cache->async_get(
                key,
                [](int k) -> asio::awaitable<int> {
                    co_await asio::post(asio::use_awaitable);
                    co_return k;
                },
                [&](turnstile::error_code, const auto&) { ++ended; });
        }
        asio::post(io, [&] { cache.reset(); });
        kit::run_on_threads(io);
        expect(ended == 6);
    }
    BOOST_TEST(expect.failures() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
