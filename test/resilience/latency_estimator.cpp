// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/latency_estimator.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <limits>

namespace {

using namespace std::chrono_literals;
using turnstile::latency_estimator;
using turnstile::nanoseconds;

BOOST_AUTO_TEST_SUITE(resilience_latency_estimator)

BOOST_AUTO_TEST_CASE(without_samples_there_is_no_estimate)
{
    BOOST_TEST(!latency_estimator().percentile(0.5).has_value());
    BOOST_TEST(latency_estimator().samples() == 0U);
}

BOOST_AUTO_TEST_CASE(an_estimate_is_at_most_an_eighth_above_the_value)
{
    const std::int64_t large = std::int64_t(1) << 40;
    const std::int64_t values[] = {0,
                                   1,
                                   7,
                                   8,
                                   9,
                                   15,
                                   16,
                                   17,
                                   1000,
                                   123456789,
                                   large,
                                   large - 1,
                                   std::numeric_limits<std::int64_t>::max()};
    for (std::int64_t value : values) {
        latency_estimator e;
        e.add(nanoseconds(value));
        const std::int64_t estimate = e.percentile(0.5)->count();
        BOOST_TEST(estimate >= value);
        BOOST_TEST(estimate - value <= value / 8);
    }
}

BOOST_AUTO_TEST_CASE(percentiles_split_the_samples)
{
    latency_estimator e(1000);
    for (int i = 1; i <= 100; ++i)
        e.add(i * 1ms);
    const auto is_about = [&](double p, nanoseconds value) {
        const nanoseconds estimate = *e.percentile(p);
        return estimate >= value && estimate <= value + value / 8;
    };
    BOOST_TEST(is_about(0.5, 50ms));
    BOOST_TEST(is_about(0.95, 95ms));
    BOOST_TEST(is_about(1, 100ms));
    BOOST_TEST(is_about(0, 1ms));
    BOOST_TEST(is_about(-1, 1ms));
    BOOST_TEST(is_about(2, 100ms));
}

BOOST_AUTO_TEST_CASE(old_samples_are_forgotten)
{
    latency_estimator e(100);
    for (int i = 0; i != 100; ++i)
        e.add(1s);
    for (int i = 0; i != 1000; ++i)
        e.add(1ms);
    BOOST_TEST((*e.percentile(0.95) < 2ms));
    BOOST_TEST(e.samples() <= 100U);
}

BOOST_AUTO_TEST_CASE(a_negative_latency_counts_as_none)
{
    latency_estimator e(0);
    e.add(-1s);
    BOOST_TEST((*e.percentile(1) == 0ns));
    e.add(1s);
    BOOST_TEST(e.samples() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
