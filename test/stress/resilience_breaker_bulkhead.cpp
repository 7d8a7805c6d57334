// SPDX-License-Identifier: BSL-1.0
// Circuit breakers and bulkheads on real threads; meant for TSan as much as for the invariants.
#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::circuit_breaker_event;
using turnstile::circuit_state;

constexpr int threads = 4;
#if TURNSTILE_SANITIZED
constexpr int rounds = 200;
#else
constexpr int rounds = 2000;
#endif

template <class F>
void on_threads(F f)
{
    std::vector<std::thread> pool;
    for (int i = 0; i != threads; ++i)
        pool.emplace_back([&f, i] { f(i); });
    for (auto& t : pool)
        t.join();
}

BOOST_AUTO_TEST_SUITE(stress_resilience)

// Whoever comes may open it, probe it and close it; listeners must see one unbroken chain, and
// what is missing in it is counted.
BOOST_AUTO_TEST_CASE(listeners_see_every_change_in_order)
{
    asio::io_context io;
    turnstile::circuit_breaker breaker(
        io, {.window = turnstile::consecutive_failures{2}, .probes = 2, .open_for = 0ns});
    circuit_state last = circuit_state::closed;
    std::uint64_t opened = 0;
    std::uint64_t breaks = 0;
    breaker.add_listener([&](const circuit_breaker_event& c) {
        breaks += c.from != last || c.from == c.to ? 1 : 0;
        last = c.to;
        opened += c.to == circuit_state::open ? 1 : 0;
    });
    std::atomic<std::uint64_t> asked = 0;
    on_threads([&](int id) {
        for (int i = 0; i != rounds * 5; ++i) {
            ++asked;
            auto permit = breaker.try_acquire();
            if ((i + id) % 5 == 0)
                permit = {};
            else
                permit.report((i / 7 + id) % 2 == 0 ? turnstile::call_outcome::failure
                                                    : turnstile::call_outcome::success);
            if (i % 500 == 250)
                breaker.force_open();
            if (i % 500 == 300)
                breaker.reset();
        }
    });
    const auto stats = breaker.stats();
    breaks += last != stats.state ? 1 : 0;
    const std::uint64_t dropped = breaker.dropped_events(); // if one was preempted while telling
    BOOST_TEST(breaks <= dropped);
    BOOST_TEST(opened <= stats.opened);
    BOOST_TEST(stats.opened - opened <= dropped);
    BOOST_TEST(stats.probes_out == 0U);
    // Each was admitted and reported, or rejected.
    BOOST_TEST(asked ==
               stats.successes + stats.failures + stats.ignored + stats.late + stats.rejected);
}

BOOST_AUTO_TEST_CASE(listeners_come_and_go_while_others_are_told)
{
    asio::io_context io;
    turnstile::circuit_breaker breaker(io);
    std::atomic<int> told = 0;
    on_threads([&](int id) {
        for (int i = 0; i != rounds; ++i) {
            const auto listener =
                breaker.add_listener([&](const circuit_breaker_event&) { ++told; });
            if (id % 2 == 0)
                breaker.force_open();
            else
                breaker.reset();
            breaker.remove_listener(listener);
        }
    });
    BOOST_TEST(told > 0);
}

BOOST_AUTO_TEST_CASE(waits_for_a_state_race_with_the_timer_and_with_changes)
{
    asio::io_context io;
    turnstile::circuit_breaker breaker(
        io, {.window = turnstile::consecutive_failures{1}, .open_for = 10us});
    std::atomic<int> seen = 0;
    const auto waiter = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != rounds / 10; ++i) {
            breaker.try_acquire().failure();
            co_await breaker.async_wait_state(circuit_state::half_open);
            ++seen;
            breaker.try_acquire().success();
        }
    };
    for (int i = 0; i != 4; ++i)
        asio::co_spawn(asio::make_strand(io), waiter(), asio::detached);
    // Somebody has to open it again for the last who waits.
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            asio::steady_timer timer(io);
            while (seen != 4 * (rounds / 10)) {
                breaker.try_acquire().failure();
                timer.expires_after(20us);
                co_await timer.async_wait(asio::use_awaitable);
            }
        },
        asio::detached);
    on_threads([&](int) { io.run(); });
    BOOST_TEST(seen == 4 * (rounds / 10));
}

BOOST_AUTO_TEST_CASE(a_bulkhead_keeps_its_limit_through_timeouts_and_resizes)
{
    asio::io_context io;
    turnstile::bulkhead bulkhead(io, {.limit = 2, .max_queue = 6, .max_wait = 50us});
    std::atomic<int> inside = 0;
    std::atomic<int> too_many = 0;
    std::atomic<int> served = 0;
    std::atomic<std::uint64_t> refused = 0;
    const auto work = [&]() -> asio::awaitable<void> {
        if (++inside > 4)
            ++too_many;
        co_await asio::post(asio::use_awaitable);
        --inside;
        ++served;
    };
    const auto client = [&](int id) -> asio::awaitable<void> {
        for (int i = 0; i != rounds / 4; ++i) {
            try {
                co_await bulkhead.async_call(work, asio::use_awaitable);
            } catch (const turnstile::system_error&) {
                ++refused;
            }
            if (i % 16 == id)
                bulkhead.resize(static_cast<std::uint64_t>(1 + (i + id) % 4));
        }
    };
    for (int i = 0; i != 12; ++i)
        asio::co_spawn(asio::make_strand(io), client(i), asio::detached);
    on_threads([&](int) { io.run(); });
    const auto stats = bulkhead.stats();
    BOOST_TEST(too_many == 0);
    BOOST_TEST(served > 0);
    BOOST_TEST(stats.in_flight == 0U);
    BOOST_TEST(stats.waiting == 0U);
    BOOST_TEST(refused == stats.rejected + stats.timed_out);
}

BOOST_AUTO_TEST_CASE(an_adaptive_limit_learns_from_all_threads)
{
    asio::io_context io;
    turnstile::bulkhead bulkhead(
        io, {.limit = 4, .adaptive = turnstile::aimd_options{.maximum = 8, .backoff = 0.5}});
    std::uint64_t last = 4;
    std::uint64_t breaks = 0;
    bulkhead.add_listener([&](const turnstile::bulkhead_event& c) {
        breaks += c.from != last ? 1 : 0;
        last = c.to;
    });
    on_threads([&](int id) {
        for (int i = 0; i != rounds; ++i) {
            auto permit = bulkhead.try_acquire();
            if ((i + id) % 17 == 0)
                permit.failure();
        }
    });
    BOOST_TEST(bulkhead.stats().in_flight == 0U);
    breaks += bulkhead.limit() != last ? 1 : 0;
    BOOST_TEST(breaks <= bulkhead.dropped_events()); // each drop leaves at most one gap
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
