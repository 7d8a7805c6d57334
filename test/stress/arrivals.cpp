// SPDX-License-Identifier: BSL-1.0
// Latch, counter and barrier on several threads: the invariants, and data races for the thread
// sanitizer.
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

constexpr int threads = kit::default_threads;
constexpr int rounds = kit::rounds(1000);

BOOST_AUTO_TEST_SUITE(stress_arrivals)

BOOST_AUTO_TEST_CASE(racing_last_arrivals_always_complete_the_round)
{
    // Hangs if two racing arrivals both take the other for the last one.
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
            early += actions == round + 1 ? 0 : 1; // the next round needs this party, too
            ++passed[static_cast<std::size_t>(round)];
            seen[static_cast<std::size_t>(round)] |= 1U << index;
        }
    };
    for (int i = 0; i != parties; ++i)
        asio::co_spawn(io, party(i), asio::detached);
    kit::run_on_threads(io);
    for (std::size_t round = 0; round != rounds; ++round) {
        BOOST_TEST(passed[round] == parties);
        BOOST_TEST(seen[round] == (1U << parties) - 1, "an index was given twice");
    }
    BOOST_TEST(early == 0);
    BOOST_TEST(b.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(a_barrier_survives_racing_cancellations)
{
    // Parties arrive, are cancelled and arrive again; abort() ends the waits that are left.
    asio::io_context io;
    std::atomic<int> actions = 0;
    turnstile::barrier b(io, 3, {.action = [&] { ++actions; }});
    std::atomic<int> succeeded = 0;
    std::atomic<int> left = 8;
    const auto party = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds; ++i) {
            kit::racing_cancellation cancellation(executor, (i + id) % 3 == 0);
            const auto [ec, index] = co_await b.async_arrive_and_wait(cancellation.token());
            if (!ec && index < 3)
                ++succeeded;
            co_await cancellation.emitted();
            if (left < 3)
                break; // too few parties for another round
        }
        if (--left < 3)
            b.abort();
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), party(i), asio::detached);
    kit::run_on_threads(io);
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
    kit::on_threads([&](int) {
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
        kit::on_threads([&](int i) {
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

BOOST_AUTO_TEST_CASE(a_latch_opens_once_whichever_arrival_is_the_last)
{
    for (int round = 0; round != rounds; ++round) {
        asio::io_context io;
        turnstile::latch l(io, threads + 1);
        std::atomic<int> completed = 0;
        kit::on_threads([&](int i) {
            if (i == 0)
                l.count_down();
            l.async_arrive_and_wait([&](error_code ec) { completed += ec ? 0 : 1; });
            io.poll();
        });
        io.restart();
        io.run();
        BOOST_TEST(completed == threads);
        BOOST_TEST(l.try_wait());
    }
}

BOOST_AUTO_TEST_CASE(a_waiter_granted_by_the_last_arrival_may_destroy_the_latch)
{
    asio::io_context io;
    kit::context_thread runner(io);
    for (int round = 0; round != rounds; ++round) {
        auto l = std::make_unique<turnstile::latch>(io, 1);
        std::atomic<int> completed = 0;
        turnstile::latch& last = *l;
        last.async_wait([&, owner = std::move(l)](error_code) mutable {
            owner.reset();
            ++completed;
        });
        last.async_arrive_and_wait([&](error_code) { ++completed; });
        while (completed != 2)
            std::this_thread::yield();
    }
    runner.finish();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
