// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/bandwidth.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>

namespace {

using namespace std::chrono_literals;
using turnstile::bandwidth;
using turnstile::per_second;
using turnstile::shaping;

BOOST_AUTO_TEST_SUITE(resilience_bandwidth)

BOOST_AUTO_TEST_CASE(a_rate_for_each_second_may_be_a_fraction)
{
    BOOST_TEST((per_second(5, 10) == bandwidth{5, 1s, 10}));
    const bandwidth half = per_second(0.5);
    BOOST_TEST(half.burst == 1U);
    BOOST_TEST((half.period == static_cast<std::int64_t>(half.permits) * 2s));
}

BOOST_AUTO_TEST_CASE(smooth_changes_only_the_mode)
{
    BOOST_TEST((turnstile::smooth({3, 2s, 5}) == bandwidth{3, 2s, 5, shaping::smooth}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
