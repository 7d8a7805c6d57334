// SPDX-License-Identifier: BSL-1.0
// The drain runs ready waiters in batches. A drain that cannot post its successor, because the
// executor throws std::bad_alloc, runs all waiters itself.
#include "kit/chaos_executor.hpp"
#include "kit/completion.hpp"
#include "kit/run.hpp"
#include "kit/wrapping_executor.hpp"

#include <turnstile/sync/event.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;

using events = std::tuple<turnstile::event, turnstile::local::event>;

struct fixture {
    asio::any_io_executor executor() { return kit::refusing_executor(io, refuses); }

    kit::drained_context io;
    bool refuses = false;
};

BOOST_AUTO_TEST_SUITE(completion_drain)

// 300 waiters are more than one batch.
BOOST_AUTO_TEST_CASE_TEMPLATE(all_waiters_complete_although_no_next_drain_can_be_posted, Event,
                              events)
{
    fixture f;
    Event e(f.executor());
    std::vector<completion> all(300);
    for (auto& c : all)
        e.async_wait(c.handler([] {}));
    e.set();
    f.refuses = true;
    BOOST_TEST(!kit::poll_leaves_work(f.io));
    for (auto& c : all)
        BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_next_drain_takes_over_when_there_is_memory_again, Event, events)
{
    fixture f;
    Event e(f.executor());
    std::vector<completion> all(300);
    for (auto& c : all)
        e.async_wait(c.handler([&, last = &c == &all[150]] {
            if (last)
                f.refuses = false;
        }));
    e.set();
    f.refuses = true;
    BOOST_TEST(!kit::poll_leaves_work(f.io));
    for (auto& c : all)
        BOOST_TEST(c.succeeded());
}

// Without memory for another drain the other waiters stay ready until the next wake-up.
BOOST_AUTO_TEST_CASE_TEMPLATE(ready_waiters_survive_a_handler_that_throws_without_memory, Event,
                              events)
{
    struct thrown {};
    fixture f;
    Event e(f.executor());
    std::vector<completion> all(3);
    e.async_wait(all[0].handler([] {}));
    e.async_wait(all[1].handler([] { throw thrown(); }));
    e.async_wait(all[2].handler([] {}));
    e.set();
    f.refuses = true;
    BOOST_CHECK_THROW(f.io.run(), thrown);
    f.refuses = false;
    BOOST_TEST(kit::poll_leaves_work(f.io), "run() would have returned");
    BOOST_TEST(!all[2].done());
    completion next;
    e.async_wait(next.handler([] {}));
    BOOST_TEST(!kit::poll_leaves_work(f.io));
    BOOST_TEST(all[2].succeeded());
    BOOST_TEST(next.succeeded());
}

// A destroyed object has no next wake-up.
BOOST_AUTO_TEST_CASE_TEMPLATE(all_waiters_are_aborted_although_no_next_drain_can_be_posted, Event,
                              events)
{
    fixture f;
    std::optional<Event> e(std::in_place, f.executor());
    std::vector<completion> all(300);
    for (auto& c : all)
        e->async_wait(c.handler([] {}));
    e.reset();
    f.refuses = true;
    BOOST_TEST(!kit::poll_leaves_work(f.io));
    for (auto& c : all)
        BOOST_TEST(c.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(
    waiters_behind_a_handler_that_throws_get_a_drain_as_soon_as_there_is_memory, Event, events)
{
    struct thrown {};
    fixture f;
    std::optional<Event> e(std::in_place, f.executor());
    std::vector<completion> all(2);
    e->async_wait([&](turnstile::error_code) {
        f.refuses = false;
        throw thrown();
    });
    for (auto& c : all)
        e->async_wait(c.handler([] {}));
    e.reset();
    f.refuses = true;
    BOOST_CHECK_THROW(f.io.run(), thrown);
    BOOST_TEST(!kit::poll_leaves_work(f.io));
    for (auto& c : all)
        BOOST_TEST(c.aborted());
}

BOOST_AUTO_TEST_CASE(a_wake_up_that_cannot_be_posted_is_delivered_with_the_next_one)
{
    kit::chaos_context chaos(1);
    bool refuse = false;
    turnstile::local::event e{asio::any_io_executor(kit::refusing_executor(chaos, refuse))};
    std::vector<completion> all(3);
    for (auto& c : all)
        e.async_wait(c.handler([] {}));
    refuse = true;
    e.set();
    refuse = false;
    chaos.run();
    BOOST_TEST(!all[0].done());
    completion next;
    e.async_wait(next.handler([] {}));
    chaos.run();
    for (auto& c : all)
        BOOST_TEST(c.succeeded());
    BOOST_TEST(next.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_wake_up_of_many_waiters_takes_few_posts, Event, events)
{
    asio::io_context io;
    Event e(io);
    int woken = 0;
    for (int i = 0; i != 1000; ++i)
        e.async_wait([&](turnstile::error_code) { ++woken; });
    e.set();
    const std::size_t handlers = io.run();
    BOOST_TEST(woken == 1000);
    BOOST_TEST(handlers == 9U); // 1000 / 128, rounded up, and one drain that finds no waiter
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_posted_meanwhile_runs_between_two_batches, Event, events)
{
    asio::io_context io;
    Event e(io);
    int woken = 0;
    int woken_before_other = -1;
    for (int i = 0; i != 1000; ++i)
        e.async_wait([&](turnstile::error_code) { ++woken; });
    asio::post(io, [&] {
        e.set();
        asio::post(io, [&] { woken_before_other = woken; });
    });
    io.run();
    BOOST_TEST(woken_before_other < 1000);
}

template <class Executor, class Event>
void stops_soon(const Executor& executor, asio::io_context& io)
{
    Event e(executor);
    int woken = 0;
    for (int i = 0; i != 300; ++i)
        e.async_wait([&](turnstile::error_code) {
            if (++woken == 10)
                io.stop();
        });
    e.set();
    kit::run(io);
    BOOST_TEST(woken >= 10);
    BOOST_TEST(woken <= 16);
    kit::run(io);
    BOOST_TEST(woken == 300);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_drain_stops_soon_after_its_context, Event, events)
{
    asio::io_context io;
    stops_soon<asio::io_context::executor_type, Event>(io.get_executor(), io);
    stops_soon<asio::strand<asio::io_context::executor_type>, Event>(asio::make_strand(io), io);
    stops_soon<asio::strand<asio::any_io_executor>, Event>(
        asio::make_strand(asio::any_io_executor(io.get_executor())), io);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
