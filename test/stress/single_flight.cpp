// SPDX-License-Identifier: BSL-1.0
// Callers of a few keys on several threads; some of them are cancelled while the loads run.
#include "kit/threads.hpp"

#include <turnstile/work/single_flight.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace {

namespace asio = boost::asio;

constexpr int rounds = kit::rounds(2000);

BOOST_AUTO_TEST_SUITE(stress_single_flight)

BOOST_AUTO_TEST_CASE(a_key_has_one_load_at_a_time_unless_it_is_cancelled)
{
    asio::io_context io;
    turnstile::single_flight<int, int> flights(io);
    kit::expectation expect;
    std::atomic<int> loads = 0;
    const auto load = [&](int key) -> asio::awaitable<int> {
        ++loads;
        for (int i = 0; i != 3; ++i)
            co_await asio::post(asio::use_awaitable);
        co_return key * 10;
    };
    const auto worker = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds; ++i) {
            const int key = (i * 3 + id) % 4;
            kit::racing_cancellation cancellation(executor, (i + id) % 2 == 0);
            {
                auto [ec, value] = co_await flights.async_do(key, load, cancellation.token());
                expect((value != nullptr) != bool(ec));
                if (value)
                    expect(*value == key * 10);
            }
            co_await cancellation.emitted();
            if (i % 64 == 0)
                flights.forget(key);
        }
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), worker(i), asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(expect.failures() == 0);
    const turnstile::single_flight_stats s = flights.stats();
    BOOST_TEST(s.loading == 0U);
    BOOST_TEST(s.started >= static_cast<std::uint64_t>(loads.load()));
    BOOST_TEST(s.succeeded + s.failed + s.cancelled == s.started);
}

// The last caller leaves, and others arrive, while the object is destroyed.
BOOST_AUTO_TEST_CASE(destruction_races_with_loads_and_cancellations)
{
    kit::expectation expect;
    for (int round = 0; round != rounds / 10; ++round) {
        asio::io_context io;
        auto flights = std::make_unique<turnstile::single_flight<int, int>>(io);
        asio::cancellation_signal signal;
        std::atomic<int> ended = 0;
        for (int key = 0; key != 4; ++key) {
            flights->async_do(
                key,
                [](int k) -> asio::awaitable<int> {
                    co_await asio::post(asio::use_awaitable);
                    co_return k;
                },
                [&](turnstile::error_code, auto) { ++ended; });
        }
        asio::post(io, [&] { flights.reset(); });
        kit::run_on_threads(io);
        expect(ended == 4);
    }
    BOOST_TEST(expect.failures() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
