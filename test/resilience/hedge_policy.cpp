// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/hedge_policy.hpp>
#include <turnstile/resilience/latency_estimator.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <random>

namespace {

using namespace std::chrono_literals;
using turnstile::errc;
using turnstile::hedge_policy;
using turnstile::latency_estimator;
using turnstile::nanoseconds;

BOOST_AUTO_TEST_SUITE(hedge_policies)

BOOST_AUTO_TEST_CASE(a_fixed_delay_does_not_look_at_latencies)
{
    latency_estimator seen;
    for (int i = 0; i != 100; ++i)
        seen.add(1ms);
    BOOST_TEST((hedge_policy::after(50ms).delay(seen) == 50ms));
    BOOST_TEST((hedge_policy::after(-1s).delay(seen) == 0s));
    using hours = std::chrono::duration<std::int64_t, std::ratio<3600>>;
    BOOST_TEST((hedge_policy::after(hours::max()).delay(seen) == nanoseconds::max()));
}

BOOST_AUTO_TEST_CASE(a_percentile_counts_as_soon_as_there_are_samples_enough)
{
    const hedge_policy policy = hedge_policy::at_percentile(0.5, 50ms);
    latency_estimator seen;
    for (std::uint64_t i = 0; i != hedge_policy::samples_needed; ++i) {
        BOOST_TEST((policy.delay(seen) == 50ms));
        seen.add(1ms);
    }
    BOOST_TEST((policy.delay(seen) >= 1ms));
    BOOST_TEST((policy.delay(seen) <= 1125us));
}

BOOST_AUTO_TEST_CASE(a_percentile_is_more_than_nothing_and_at_most_all)
{
    for (const double p : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()})
        BOOST_CHECK_EXCEPTION(hedge_policy::at_percentile(p, 1s), turnstile::system_error,
                              [](const auto& e) { return e.code() == errc::invalid_argument; });
    BOOST_CHECK_NO_THROW(hedge_policy::at_percentile(1.0, 1s));
}

BOOST_AUTO_TEST_CASE(attempts_are_one_to_sixteen)
{
    const hedge_policy policy = hedge_policy::after(1s);
    BOOST_TEST(policy.attempts() == 2U);
    BOOST_TEST(policy.attempts(0).attempts() == 1U);
    BOOST_TEST(policy.attempts(5).attempts() == 5U);
    BOOST_TEST(policy.attempts(17).attempts() == 16U);
    BOOST_TEST(policy.attempts() == 2U); // a changed copy
}

// Calls of which every one that takes longer than the delay is hedged, and ends when the first
// of the two attempts does.
BOOST_AUTO_TEST_CASE(about_as_many_calls_are_hedged_as_the_percentile_leaves_over)
{
    std::mt19937_64 random(1);
    std::exponential_distribution<double> milliseconds(1e-6);
    const auto latency = [&] {
        return nanoseconds(static_cast<std::int64_t>(milliseconds(random)));
    };
    const hedge_policy policy = hedge_policy::at_percentile(0.95, 50ms);
    latency_estimator seen;
    int hedged = 0;
    for (int i = 0; i != 20'000; ++i) {
        const nanoseconds delay = policy.delay(seen);
        const nanoseconds first = latency();
        hedged += first > delay ? 1 : 0;
        seen.add(std::min(first, delay + latency()));
    }
    BOOST_TEST(hedged > 20'000 * 0.03);
    BOOST_TEST(hedged < 20'000 * 0.06);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
