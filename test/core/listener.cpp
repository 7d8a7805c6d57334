// SPDX-License-Identifier: BSL-1.0
// The promises of core/listener.hpp, on a component that has events. test/detail/listener_list.cpp
// tests the mechanism, including the limits above which events are dropped.
#include "kit/policies.hpp"

#include <turnstile/core/listener.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace {

namespace asio = boost::asio;
using turnstile::listener_id;

static_assert(std::is_enum_v<listener_id>);
static_assert(!std::is_convertible_v<listener_id, int>);

template <class Threading>
using breaker_of = turnstile::basic_circuit_breaker<asio::any_io_executor, Threading>;

BOOST_AUTO_TEST_SUITE(listener)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_is_called_until_it_is_removed, P, kit::policies)
{
    asio::io_context io;
    breaker_of<P> breaker(io);
    std::string log;
    const listener_id a = breaker.add_listener([&](const auto&) { log += 'a'; });
    const listener_id b = breaker.add_listener([&](const auto&) { log += 'b'; });
    BOOST_TEST((a != b));
    breaker.force_open();
    BOOST_TEST(log == "ab");
    BOOST_TEST(breaker.remove_listener(a));
    BOOST_TEST(!breaker.remove_listener(a));
    breaker.force_closed();
    BOOST_TEST(log == "abb");
    BOOST_TEST((breaker.add_listener([](const auto&) {}) != a));
    BOOST_TEST(breaker.dropped_events() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_may_add_and_remove_listeners, P, kit::policies)
{
    asio::io_context io;
    breaker_of<P> breaker(io);
    std::string log;
    std::optional<listener_id> self;
    self = breaker.add_listener([&](const auto&) {
        log += 'a';
        BOOST_TEST(breaker.remove_listener(*self));
        breaker.add_listener([&](const auto&) { log += 'b'; });
    });
    breaker.force_open();
    breaker.force_closed();
    BOOST_TEST(log == "ab");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_event_caused_by_a_listener_follows_the_current_one, P,
                              kit::policies)
{
    asio::io_context io;
    breaker_of<P> breaker(io);
    std::string log;
    breaker.add_listener([&](const auto&) {
        log += '(';
        if (log.size() == 1)
            breaker.force_closed();
        log += ')';
    });
    breaker.add_listener([&](const auto&) { log += 'b'; });
    breaker.force_open();
    BOOST_TEST(log == "()b()b");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_exception_of_a_listener_is_dropped, P, kit::policies)
{
    asio::io_context io;
    breaker_of<P> breaker(io);
    int calls = 0;
    breaker.add_listener([](const auto&) { throw std::runtime_error("listener"); });
    breaker.add_listener([&](const auto&) { ++calls; });
    breaker.force_open();
    BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_may_destroy_the_object, P, kit::policies)
{
    asio::io_context io;
    auto breaker = std::make_unique<breaker_of<P>>(io);
    int later_calls = 0;
    breaker->add_listener([&](const auto&) { breaker.reset(); });
    breaker->add_listener([&](const auto&) { ++later_calls; });
    breaker->force_open();
    BOOST_TEST(!breaker);
    BOOST_TEST(later_calls == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
