// SPDX-License-Identifier: BSL-1.0
#include "kit/thrown_text.hpp"

#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/bulkhead_options.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::aimd_options;
using turnstile::bulkhead_options;
using turnstile::gradient_options;

std::string bulkhead(const bulkhead_options& options)
{
    return kit::text_of([&] {
        asio::io_context io;
        turnstile::bulkhead made(io, options);
    });
}

BOOST_AUTO_TEST_SUITE(resilience_bulkhead_options)

BOOST_AUTO_TEST_CASE(a_bulkhead_names_the_option_that_is_wrong)
{
    BOOST_TEST(bulkhead({.limit = 0}) == "bulkhead: limit must be in [1, limit_bound)");
    BOOST_TEST(bulkhead({.max_wait = -1ns}) == "bulkhead: max_wait must not be negative");
    const auto is = [](const turnstile::limit_options& options, const std::string& rule) {
        BOOST_TEST(bulkhead({.adaptive = options}) == rule);
    };
    is(aimd_options{.minimum = 0}, "aimd_options: minimum must be in [1, maximum]");
    is(aimd_options{.minimum = 9, .maximum = 8}, "aimd_options: minimum must be in [1, maximum]");
    is(aimd_options{.maximum = turnstile::limit_bound},
       "aimd_options: maximum must be less than limit_bound");
    is(aimd_options{.increase = 0}, "aimd_options: increase must be positive");
    is(aimd_options{.backoff = 1}, "aimd_options: backoff must be in (0, 1)");
    is(aimd_options{.timeout = 0ns}, "aimd_options: timeout must be positive");
    is(gradient_options{.minimum = 0}, "gradient_options: minimum must be in [1, maximum]");
    is(gradient_options{.maximum = turnstile::limit_bound},
       "gradient_options: maximum must be less than limit_bound");
    is(gradient_options{.tolerance = 0.5}, "gradient_options: tolerance must be 1 or more");
    is(gradient_options{.smoothing = 0}, "gradient_options: smoothing must be in (0, 1]");
    is(gradient_options{.head_room = -1}, "gradient_options: head_room must not be negative");
    is(gradient_options{.window = 0}, "gradient_options: window must not be 0");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
