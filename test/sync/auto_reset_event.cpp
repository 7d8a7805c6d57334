// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/sync/auto_reset_event.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <type_traits>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
const auto nothing = [] {};

template <class Threading>
using event_of = turnstile::basic_auto_reset_event<asio::any_io_executor, Threading>;

static_assert(!std::is_move_constructible_v<turnstile::auto_reset_event>);

BOOST_AUTO_TEST_SUITE(auto_reset_event)

BOOST_AUTO_TEST_CASE_TEMPLATE(stores_one_signal_and_no_more, P, kit::policies)
{
    asio::io_context io;
    event_of<P> e(io);
    BOOST_TEST(!e.try_wait());
    e.set();
    e.set();
    BOOST_TEST(e.is_set());
    BOOST_TEST(e.try_wait());
    BOOST_TEST(!e.try_wait());
    e.set();
    e.clear();
    BOOST_TEST(!e.is_set());
    e.clear();
    BOOST_TEST((event_of<P>(io, true).try_wait()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(each_set_grants_one_waiter, P, kit::policies)
{
    kit::drained_context io;
    event_of<P> e(io);
    std::vector<completion> all(3);
    for (auto& c : all)
        e.async_wait(c.handler(nothing));
    for (std::size_t i = 0; i != all.size(); ++i) {
        BOOST_TEST(!all[i].done());
        e.set();
        kit::poll_leaves_work(io);
        BOOST_TEST(all[i].succeeded());
    }
    BOOST_TEST(!e.is_set());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(two_sets_in_a_row_grant_two_waiters, P, kit::policies)
{
    kit::drained_context io;
    event_of<P> e(io);
    std::vector<completion> both(2);
    for (auto& c : both)
        e.async_wait(c.handler(nothing));
    e.set();
    e.set();
    e.set();
    kit::run(io);
    BOOST_TEST(both[0].succeeded());
    BOOST_TEST(both[1].succeeded());
    BOOST_TEST(e.is_set());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(clear_takes_nothing_from_a_waiter, P, kit::policies)
{
    kit::drained_context io;
    event_of<P> e(io);
    completion c;
    e.async_wait(c.handler(nothing));
    e.set();
    e.clear();
    kit::run(io);
    BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
