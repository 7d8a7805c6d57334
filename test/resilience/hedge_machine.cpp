// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/hedge_machine.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <random>

namespace {

using namespace std::chrono_literals;
using turnstile::errc;
using turnstile::hedge_machine;
using turnstile::hedge_options;
using turnstile::nanoseconds;

BOOST_AUTO_TEST_SUITE(hedge_machines)

BOOST_AUTO_TEST_CASE(a_fixed_delay_does_not_depend_on_latencies)
{
    hedge_machine machine({.delay = 50ms});
    for (int i = 0; i != 100; ++i)
        machine.learn(1ms);
    BOOST_TEST((machine.delay() == 50ms));
    BOOST_TEST((hedge_machine({.delay = nanoseconds::max()}).delay() == nanoseconds::max()));
}

BOOST_AUTO_TEST_CASE(a_percentile_counts_as_soon_as_there_are_samples_enough)
{
    hedge_machine machine({.delay = 50ms, .percentile = 0.5});
    for (std::uint64_t i = 0; i != hedge_options::samples_needed; ++i) {
        BOOST_TEST((machine.delay() == 50ms));
        machine.learn(1ms);
    }
    BOOST_TEST((machine.delay() >= 1ms));
    BOOST_TEST((machine.delay() <= 1125us));
}

BOOST_AUTO_TEST_CASE(a_percentile_is_more_than_nothing_and_at_most_all)
{
    for (const double p : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()})
        BOOST_CHECK_EXCEPTION(hedge_machine({.percentile = p}), turnstile::system_error,
                              [](const auto& e) { return e.code() == errc::invalid_argument; });
    BOOST_CHECK_NO_THROW(hedge_machine({.percentile = 1.0}));
}

BOOST_AUTO_TEST_CASE(attempts_are_one_to_sixteen_and_delays_not_negative)
{
    for (const hedge_options& wrong :
         {hedge_options{.max_attempts = 0}, hedge_options{.max_attempts = 17},
          hedge_options{.delay = -1ns}})
        BOOST_CHECK_EXCEPTION(hedge_machine{wrong}, turnstile::system_error,
                              [](const auto& e) { return e.code() == errc::invalid_argument; });
    BOOST_TEST(hedge_machine({}).options().max_attempts == 2U);
    BOOST_TEST(hedge_machine({.max_attempts = 16}).options().max_attempts == 16U);
}

// Each call that takes longer than the delay is hedged, and completes with the first of the two
// attempts.
BOOST_AUTO_TEST_CASE(about_as_many_calls_are_hedged_as_the_percentile_leaves_over)
{
    std::mt19937_64 random(1);
    std::exponential_distribution<double> milliseconds(1e-6);
    const auto latency = [&] {
        return nanoseconds(static_cast<std::int64_t>(milliseconds(random)));
    };
    hedge_machine machine({.delay = 50ms, .percentile = 0.95});
    int hedged = 0;
    for (int i = 0; i != 20'000; ++i) {
        const nanoseconds delay = machine.delay();
        const nanoseconds first = latency();
        hedged += first > delay ? 1 : 0;
        machine.learn(std::min(first, delay + latency()));
    }
    BOOST_TEST(hedged > 20'000 * 0.03);
    BOOST_TEST(hedged < 20'000 * 0.06);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
