// SPDX-License-Identifier: BSL-1.0
// Circuit breakers and bulkheads on several threads: the invariants, and data races for the thread
// sanitizer.
#include "kit/threads.hpp"

#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>
#include <turnstile/resilience/keyed_circuit_breaker.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::circuit_breaker_event;
using turnstile::circuit_state;

constexpr int rounds = kit::rounds(2000);

BOOST_AUTO_TEST_SUITE(stress_resilience)

// Every thread uses all keys, most of which are forgotten between two uses.
BOOST_AUTO_TEST_CASE(circuits_of_many_keys)
{
    asio::io_context io;
    turnstile::keyed_circuit_breaker<int> breaker(
        io, {.window = turnstile::consecutive_failures{2}, .open_for = 0ns});
    std::atomic<std::uint64_t> events = 0;
    breaker.add_listener([&](const auto&) { ++events; });
    std::atomic<std::uint64_t> made = 0;
    std::atomic<std::uint64_t> requested = 0;
    kit::on_threads([&](int id) {
        for (int i = 0; i != rounds * 5; ++i) {
            const int key = (i * 7 + id) % 97;
            ++requested;
            auto permit = breaker.try_acquire(key);
            made += permit ? 1 : 0;
            permit.report((i / 97 + key) % 5 == 0 ? turnstile::call_outcome::failure
                                                  : turnstile::call_outcome::success);
            if (i % 300 == 0)
                breaker.purge();
            if (i % 700 == 0)
                breaker.force_open(key);
            if (i % 70 == 0)
                breaker.reset(key);
        }
    });
    const auto stats = breaker.stats();
    BOOST_TEST(stats.successes + stats.failures + stats.ignored + stats.late == made);
    BOOST_TEST(made + stats.rejected == requested);
    BOOST_TEST(stats.keys <= 97U);
    BOOST_TEST((events != 0U) == (stats.opened != 0U));
}

// The last permit frees the circuit and the state.
BOOST_AUTO_TEST_CASE(permits_are_reported_while_their_breaker_is_destroyed)
{
    asio::io_context io;
    const auto key = std::make_shared<int>();
    using breaker_type = turnstile::keyed_circuit_breaker<std::shared_ptr<int>>;
    for (int i = 0; i != rounds / 10; ++i) {
        auto breaker = std::make_unique<breaker_type>(
            io, turnstile::circuit_breaker_options{.window = turnstile::consecutive_failures{1}});
        breaker->add_listener([](const auto&) {});
        std::array<breaker_type::permit_type, 8> permits;
        for (auto& permit : permits)
            permit = breaker->try_acquire(key);
        std::atomic<std::size_t> next = 0;
        kit::on_threads([&](int id) {
            if (id == 0)
                breaker.reset();
            for (std::size_t mine = next++; mine < permits.size(); mine = next++)
                permits[mine].failure();
        });
    }
    BOOST_TEST(key.use_count() == 1);
}

// Every thread may open, probe and close the circuit. Listeners see one unbroken chain of changes,
// apart from the dropped events, which are counted.
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
    std::atomic<std::uint64_t> requested = 0;
    kit::on_threads([&](int id) {
        for (int i = 0; i != rounds * 5; ++i) {
            ++requested;
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
    // Events are dropped while the dispatching thread is preempted.
    const std::uint64_t dropped = breaker.dropped_events();
    BOOST_TEST(breaks <= dropped);
    BOOST_TEST(opened <= stats.opened);
    BOOST_TEST(stats.opened - opened <= dropped);
    BOOST_TEST(stats.probes_out == 0U);
    // Each request was admitted and reported, or rejected.
    BOOST_TEST(requested ==
               stats.successes + stats.failures + stats.ignored + stats.late + stats.rejected);
}

BOOST_AUTO_TEST_CASE(listeners_are_added_and_removed_while_events_are_dispatched)
{
    asio::io_context io;
    turnstile::circuit_breaker breaker(io);
    std::atomic<int> notified = 0;
    kit::on_threads([&](int id) {
        for (int i = 0; i != rounds; ++i) {
            const auto listener =
                breaker.add_listener([&](const circuit_breaker_event&) { ++notified; });
            if (id % 2 == 0)
                breaker.force_open();
            else
                breaker.reset();
            breaker.remove_listener(listener);
        }
    });
    BOOST_TEST(notified > 0);
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
    // Opens the circuit for the last waiter, which no other waiter does.
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
    kit::run_on_threads(io);
    BOOST_TEST(seen == 4 * (rounds / 10));
}

BOOST_AUTO_TEST_CASE(a_bulkhead_keeps_its_limit_through_timeouts_and_resizes)
{
    asio::io_context io;
    turnstile::bulkhead bulkhead(io, {.limit = 2, .max_waiters = 6, .max_wait = 50us});
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
    kit::run_on_threads(io);
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
    kit::on_threads([&](int id) {
        for (int i = 0; i != rounds; ++i) {
            auto permit = bulkhead.try_acquire();
            if ((i + id) % 17 == 0)
                permit.failure();
            else
                permit.success();
        }
    });
    BOOST_TEST(bulkhead.stats().in_flight == 0U);
    breaks += bulkhead.limit() != last ? 1 : 0;
    BOOST_TEST(breaks <= bulkhead.dropped_events()); // each dropped event leaves at most one gap
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
