// SPDX-License-Identifier: BSL-1.0
#include "kit/call_fixture.hpp"

#include <turnstile/core/error.hpp>
#include <turnstile/resilience/timeout.hpp>
#include <turnstile/resilience/timeout_event.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

BOOST_FIXTURE_TEST_SUITE(resilience_timeout_event, kit::call_fixture)

BOOST_AUTO_TEST_CASE(an_event_carries_the_limit_and_statistics_count_the_call)
{
    turnstile::basic_timeout<asio::any_io_executor, kit::manual_clock> limit(io, 2s);
    std::vector<turnstile::nanoseconds> limits;
    limit.add_listener([&](const turnstile::timeout_event& e) { limits.push_back(e.limit); });
    start_with([&](auto op, auto handler) { limit.async_call(op, std::move(handler)); });
    advance(2s);
    kit::run(io);
    BOOST_TEST(done.error() == turnstile::errc::timed_out);
    BOOST_TEST((limits == std::vector<turnstile::nanoseconds>{2s}));
    const turnstile::timeout_stats stats = limit.stats();
    BOOST_TEST(stats.calls == 1U);
    BOOST_TEST(stats.timed_out == 1U);
    BOOST_TEST(limit.dropped_events() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
