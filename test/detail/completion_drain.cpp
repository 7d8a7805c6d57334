// SPDX-License-Identifier: BSL-1.0
// A drain that cannot post its successor, since the executor has no memory for it, does all of
// the work itself.
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
    asio::any_io_executor executor()
    {
        return kit::wrapping_executor{io.get_executor(), kit::refusal{&refuses}};
    }

    kit::drained_context io;
    bool refuses = false;
};

BOOST_AUTO_TEST_SUITE(completion_drain)

// More than a drain runs if another can go on.
BOOST_AUTO_TEST_CASE_TEMPLATE(all_go_although_no_other_drain_can_help, Event, events)
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

BOOST_AUTO_TEST_CASE_TEMPLATE(the_work_is_another_drains_when_there_is_memory_again, Event, events)
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

// Then there is nobody to run the others, until the next wake-up.
BOOST_AUTO_TEST_CASE_TEMPLATE(the_others_outlast_one_that_throws_meanwhile, Event, events)
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

// There is no next wake-up then.
BOOST_AUTO_TEST_CASE_TEMPLATE(all_are_aborted_although_no_other_drain_can_help, Event, events)
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

BOOST_AUTO_TEST_CASE_TEMPLATE(those_after_one_that_throws_have_a_drain_as_soon_as_can_be, Event,
                              events)
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

BOOST_AUTO_TEST_CASE_TEMPLATE(a_stopped_context_soon_runs_no_more_of_a_drain, Event, events)
{
    asio::io_context io;
    stops_soon<asio::io_context::executor_type, Event>(io.get_executor(), io);
    stops_soon<asio::strand<asio::io_context::executor_type>, Event>(asio::make_strand(io), io);
    stops_soon<asio::strand<asio::any_io_executor>, Event>(
        asio::make_strand(asio::any_io_executor(io.get_executor())), io);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
