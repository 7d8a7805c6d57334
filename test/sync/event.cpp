// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/sync/event.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <optional>
#include <type_traits>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
const auto nothing = [] {};

template <class Threading>
using event_of = turnstile::basic_event<asio::any_io_executor, Threading>;

static_assert(!std::is_move_constructible_v<turnstile::event>);

BOOST_AUTO_TEST_SUITE(event)

// An operation of a confined object is decided on its strand, also if its handler runs elsewhere.
// From then on destroying the object has no effect on the operation.
BOOST_AUTO_TEST_CASE(
    an_operation_that_has_left_the_strand_of_a_local_event_survives_its_destruction)
{
    kit::drained_context home;
    kit::drained_context away;
    std::optional<turnstile::local::event> e(std::in_place, home);
    completion gone;
    completion there;
    e->async_wait(asio::bind_executor(away.get_executor(), there.handler(nothing)));
    e->set();
    kit::run(home);
    e->clear();
    e->async_wait(asio::bind_executor(away.get_executor(), gone.handler(nothing)));
    BOOST_TEST(!there.done());
    e.reset();
    kit::run(home);
    kit::run(away);
    BOOST_TEST(there.succeeded());
    BOOST_TEST(gone.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_set_and_cleared, P, kit::policies)
{
    asio::io_context io;
    event_of<P> e(io);
    BOOST_TEST(!e.is_set());
    e.clear();
    BOOST_TEST(!e.is_set());
    e.set();
    e.set();
    BOOST_TEST(e.is_set());
    e.clear();
    BOOST_TEST(!e.is_set());
    BOOST_TEST(event_of<P>(io, true).is_set());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_set_completes_present_and_later_waits, P, kit::policies)
{
    kit::drained_context io;
    event_of<P> e(io);
    std::vector<completion> all(5);
    for (auto& c : all)
        e.async_wait(c.handler(nothing));
    BOOST_TEST(kit::poll_leaves_work(io));
    e.set();
    completion late;
    e.async_wait(late.handler(nothing));
    kit::run(io);
    for (auto& c : all)
        BOOST_TEST(c.succeeded());
    BOOST_TEST(late.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_waiter_queued_at_set_completes_even_if_clear_follows, P,
                              kit::policies)
{
    kit::drained_context io;
    event_of<P> e(io);
    completion there;
    completion after;
    e.async_wait(there.handler(nothing));
    e.set();
    e.clear();
    e.async_wait(after.handler(nothing));
    kit::poll_leaves_work(io);
    BOOST_TEST(there.succeeded());
    BOOST_TEST(!after.done());
    e.set();
    kit::run(io);
    BOOST_TEST(after.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(set_after_the_last_waiter_was_cancelled_is_kept, P, kit::policies)
{
    kit::drained_context io;
    event_of<P> e(io);
    asio::cancellation_signal signal;
    completion c;
    e.async_wait(asio::bind_cancellation_slot(signal.slot(), c.handler(nothing)));
    signal.emit(asio::cancellation_type::total);
    e.set();
    BOOST_TEST(e.is_set());
    kit::run(io);
    BOOST_TEST(c.aborted());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
