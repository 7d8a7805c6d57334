// SPDX-License-Identifier: BSL-1.0
#include "kit/thrown_text.hpp"

#include <turnstile/core/error.hpp>
#include <turnstile/resilience/circuit_breaker_machine.hpp>
#include <turnstile/resilience/circuit_breaker_options.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <limits>
#include <string>

namespace {

using namespace std::chrono_literals;
using turnstile::circuit_breaker_machine;
using turnstile::circuit_breaker_options;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::string breaker(const circuit_breaker_options& options)
{
    return kit::text_of([&] { circuit_breaker_machine machine(options); });
}

BOOST_AUTO_TEST_SUITE(resilience_circuit_breaker_options)

BOOST_AUTO_TEST_CASE(bad_options_are_refused)
{
    const auto refused = [](auto change) {
        circuit_breaker_options options;
        change(options);
        try {
            circuit_breaker_machine machine(options);
        } catch (const turnstile::system_error& e) {
            return e.code() == turnstile::errc::invalid_argument;
        }
        return false;
    };
    BOOST_TEST(!refused([](auto&) {}));
    BOOST_TEST(refused([](auto& o) { o.window = turnstile::consecutive_failures{0}; }));
    BOOST_TEST(refused([](auto& o) { o.window = turnstile::count_window{0}; }));
    BOOST_TEST(refused([](auto& o) { o.window = turnstile::time_window{0s, 10}; }));
    BOOST_TEST(refused([](auto& o) { o.window = turnstile::time_window{-1s, 10}; }));
    BOOST_TEST(refused([](auto& o) { o.window = turnstile::time_window{1s, 0}; }));
    BOOST_TEST(refused([](auto& o) { o.window = turnstile::time_window{9ns, 10}; }));
    BOOST_TEST(!refused([](auto& o) { o.window = turnstile::time_window{10ns, 10}; }));
    for (double rate : {0.0, -0.1, 1.1, nan}) {
        BOOST_TEST(refused([=](auto& o) { o.failure_rate = rate; }));
        BOOST_TEST(refused([=](auto& o) { o.slow_rate = rate; }));
    }
    BOOST_TEST(refused([](auto& o) { o.minimum_calls = 0; }));
    BOOST_TEST(refused([](auto& o) { o.slow_after = -1ns; }));
    BOOST_TEST(refused([](auto& o) { o.probes = 0; }));
    BOOST_TEST(refused([](auto& o) { o.success_threshold = 0; }));
    BOOST_TEST(refused([](auto& o) { o.probe_deadline = 0ns; }));
    BOOST_TEST(refused([](auto& o) { o.open_for = -1ns; }));
    BOOST_TEST(refused([](auto& o) { o.longest_open = -1ns; }));
    for (double growth : {0.5, nan})
        BOOST_TEST(refused([=](auto& o) { o.open_growth = growth; }));
    for (double jitter : {-0.1, 1.1, nan})
        BOOST_TEST(refused([=](auto& o) { o.jitter = jitter; }));
}

// ------------------------------------------------------------------------ opening ----

BOOST_AUTO_TEST_CASE(a_breaker_names_the_option_that_is_wrong)
{
    const auto is = [](const circuit_breaker_options& options, const std::string& rule) {
        BOOST_TEST(breaker(options) == "circuit_breaker: " + rule);
    };
    is({.window = turnstile::consecutive_failures{0}},
       "consecutive_failures::threshold must not be 0");
    is({.window = turnstile::count_window{0}}, "count_window::size must not be 0");
    is({.window = turnstile::time_window{1s, 0}}, "time_window::buckets must not be 0");
    is({.window = turnstile::time_window{9ns, 10}},
       "time_window::length must be 1 ns or more for each bucket");
    is({.failure_rate = 0}, "failure_rate must be in (0, 1]");
    is({.failure_rate = nan}, "failure_rate must be in (0, 1]");
    is({.slow_rate = 1.1}, "slow_rate must be in (0, 1]");
    is({.minimum_calls = 0}, "minimum_calls must not be 0");
    is({.slow_after = -1ns}, "slow_after must not be negative");
    is({.probes = 0}, "probes must not be 0");
    is({.success_threshold = 0}, "success_threshold must not be 0");
    is({.probe_deadline = 0ns}, "probe_deadline must be positive");
    is({.open_for = -1ns}, "open_for must not be negative");
    is({.open_growth = 0.9}, "open_growth must be 1 or more");
    is({.longest_open = -1ns}, "longest_open must not be negative");
    is({.jitter = 1.5}, "jitter must be in [0, 1]");
    BOOST_TEST(breaker({}) == "nothing was thrown");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
