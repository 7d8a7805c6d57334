// SPDX-License-Identifier: BSL-1.0
// Latch, counter and barrier with real threads; meant for TSan as much as for the invariants.
#include "kit/threads.hpp"

#include <turnstile/sync/barrier.hpp>
#include <turnstile/sync/counter.hpp>
#include <turnstile/sync/latch.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

constexpr int threads = 4;
#if TURNSTILE_SANITIZED
constexpr int rounds = 100;
#else
constexpr int rounds = 1000;
#endif

template <class F>
void on_threads(F f)
{
    std::vector<std::thread> pool;
    pool.reserve(threads);
    for (int i = 0; i != threads; ++i)
        pool.emplace_back([&, i] { f(i); });
    for (auto& t : pool)
        t.join();
}

void run_on_threads(asio::io_context& io)
{
    on_threads([&](int) { io.run(); });
}

BOOST_AUTO_TEST_SUITE(stress_arrivals)

BOOST_AUTO_TEST_CASE(racing_last_arrivals_always_complete_the_round)
{
    // If two last arrivals both missed that they are, this would hang.
    constexpr int parties = 8;
    asio::io_context io;
    std::atomic<int> actions = 0;
    turnstile::barrier b(io, parties, {.action = [&] { ++actions; }});
    std::atomic<int> early = 0;
    std::vector<std::atomic<int>> passed(rounds);
    std::vector<std::atomic<unsigned>> seen(rounds);
    const auto party = [&](int id) -> asio::awaitable<void> {
        for (int round = 0; round != rounds; ++round) {
            if ((round + id) % 5 == 0)
                co_await asio::post(asio::use_awaitable);
            const std::size_t index = co_await b.async_arrive_and_wait();
            early += actions == round + 1 ? 0 : 1; // the next needs this one, too
            ++passed[static_cast<std::size_t>(round)];
            seen[static_cast<std::size_t>(round)] |= 1U << index;
        }
    };
    for (int i = 0; i != parties; ++i)
        asio::co_spawn(io, party(i), asio::detached);
    run_on_threads(io);
    for (std::size_t round = 0; round != rounds; ++round) {
        BOOST_TEST(passed[round] == parties);
        BOOST_TEST(seen[round] == (1U << parties) - 1, "an index was given twice");
    }
    BOOST_TEST(early == 0);
    BOOST_TEST(b.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(a_barrier_survives_racing_cancellations)
{
    // Parties come, give up and come again; whoever is left over at the end is let go.
    asio::io_context io;
    std::atomic<int> actions = 0;
    turnstile::barrier b(io, 3, {.action = [&] { ++actions; }});
    std::atomic<int> succeeded = 0;
    std::atomic<int> left = 8;
    const auto party = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds; ++i) {
            asio::cancellation_signal signal;
            asio::post(executor, [&] {
                if ((i + id) % 3 == 0)
                    signal.emit(asio::cancellation_type::total);
            });
            const auto [ec, index] = co_await b.async_arrive_and_wait(
                asio::as_tuple(asio::bind_cancellation_slot(signal.slot(), asio::use_awaitable)));
            if (!ec && index < 3)
                ++succeeded;
            co_await asio::post(asio::use_awaitable); // what uses the signal runs first
            if (left < 3)
                break; // not enough others for another round
        }
        if (--left < 3)
            b.abort();
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), party(i), asio::detached);
    run_on_threads(io);
    BOOST_TEST(succeeded > 0);
    BOOST_TEST(succeeded <= 3 * actions);
    BOOST_TEST(b.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(a_counter_adds_up_and_misses_no_threshold)
{
    kit::expectation expect;
    asio::io_context io;
    turnstile::counter c(io);
    constexpr std::int64_t total = std::int64_t(threads) * rounds;
    std::atomic<int> reached = 0;
    for (std::int64_t n = 1; n <= total; n += 7)
        c.async_wait_at_least(n, [&, n](error_code ec) {
            expect(!ec && c.value() >= n);
            ++reached;
        });
    on_threads([&](int) {
        for (int i = 0; i != rounds; ++i)
            c.add();
    });
    io.run();
    BOOST_TEST(c.value() == total);
    BOOST_TEST(expect.failures() == 0);
    BOOST_TEST(reached == (total + 6) / 7);
}

BOOST_AUTO_TEST_CASE(waiting_for_zero_races_with_the_last_decrement)
{
    for (int round = 0; round != rounds; ++round) {
        asio::io_context io;
        turnstile::counter c(io, threads);
        std::atomic<int> woken = 0;
        on_threads([&](int i) {
            if (i == 0)
                c.async_wait_zero([&](error_code) { ++woken; });
            c.sub();
            if (i == 1)
                c.async_wait([](std::int64_t n) { return n == 0; }, [&](error_code) { ++woken; });
            io.poll();
        });
        io.restart();
        io.run();
        BOOST_TEST(woken == 2);
    }
}

BOOST_AUTO_TEST_CASE(a_latch_opens_once_whoever_is_last)
{
    for (int round = 0; round != rounds; ++round) {
        asio::io_context io;
        turnstile::latch l(io, threads + 1);
        std::atomic<int> gone = 0;
        on_threads([&](int i) {
            if (i == 0)
                l.count_down();
            l.async_arrive_and_wait([&](error_code ec) { gone += ec ? 0 : 1; });
            io.poll();
        });
        io.restart();
        io.run();
        BOOST_TEST(gone == threads);
        BOOST_TEST(l.try_wait());
    }
}

BOOST_AUTO_TEST_CASE(whoever_goes_with_the_last_arrival_may_destroy_the_latch)
{
    asio::io_context io;
    auto work = asio::make_work_guard(io);
    std::thread runner([&] { io.run(); });
    for (int round = 0; round != rounds; ++round) {
        auto l = std::make_unique<turnstile::latch>(io, 1);
        std::atomic<int> gone = 0;
        turnstile::latch& last = *l;
        last.async_wait([&, owner = std::move(l)](error_code) mutable {
            owner.reset();
            ++gone;
        });
        last.async_arrive_and_wait([&](error_code) { ++gone; });
        while (gone != 2)
            std::this_thread::yield();
    }
    work.reset();
    runner.join();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
