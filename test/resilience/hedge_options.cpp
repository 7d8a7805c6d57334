// SPDX-License-Identifier: BSL-1.0
#include "kit/thrown_text.hpp"

#include <turnstile/resilience/hedge.hpp>
#include <turnstile/resilience/hedge_options.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::hedge_options;

BOOST_AUTO_TEST_SUITE(resilience_hedge_options)

BOOST_AUTO_TEST_CASE(a_hedge_names_the_option_that_is_wrong)
{
    asio::io_context io;
    const auto is = [&](const hedge_options& options, const std::string& rule) {
        BOOST_TEST(kit::text_of([&] { turnstile::hedge made(io, options); }) == "hedge: " + rule);
    };
    is({.delay = -1ns}, "delay must not be negative");
    is({.percentile = 0}, "percentile must be in (0, 1]");
    is({.percentile = 1.5}, "percentile must be in (0, 1]");
    is({.max_attempts = 0}, "max_attempts must be in [1, 16]");
    is({.max_attempts = 17}, "max_attempts must be in [1, 16]");
    BOOST_CHECK_NO_THROW(turnstile::hedge made(io));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
