// SPDX-License-Identifier: BSL-1.0
// The rule of a token bucket, without a limiter around it.
#include <turnstile/resilience/gcra.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <random>

namespace {

using turnstile::bandwidth;
using turnstile::gcra;
using turnstile::nanoseconds;
using turnstile::per_second;
using turnstile::shaping;
using namespace std::chrono_literals;

// A rule and one bucket, which starts full.
struct bucket {
    explicit bucket(const bandwidth& b) : rule(b) {}

    bool take(nanoseconds now, std::uint64_t n = 1)
    {
        if (!rule.allows(full, rule.at(now), n))
            return false;
        full = rule.charged(full, rule.at(now), n);
        return true;
    }
    nanoseconds next(std::uint64_t n = 1) const { return rule.time_of(rule.allowed_at(full, n)); }

    gcra rule;
    gcra::ticks full = 0;
};

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
constexpr auto day = 24h;

BOOST_AUTO_TEST_SUITE(gcra_rule)

BOOST_AUTO_TEST_CASE(exactly_the_burst_at_once_and_the_next_after_one_interval)
{
    for (const std::uint64_t rate : {1U, 2U, 3U, 5U, 7U, 1000U, 4096U, 999'983U, 1'000'000'000U}) {
        for (const std::uint64_t burst : {1U, 2U, 10U, 1000U}) {
            bucket b({rate, 1s, burst});
            const nanoseconds start = 1h;
            for (std::uint64_t i = 0; i != burst; ++i)
                BOOST_REQUIRE(b.take(start));
            // The first whole nanosecond that is not before start + 1 / rate.
            const auto interval = nanoseconds(1'000'000'000 / rate + (1'000'000'000 % rate != 0));
            BOOST_TEST(b.next().count() == (start + interval).count());
            BOOST_TEST(!b.take(start + interval - 1ns));
            BOOST_TEST(b.take(start + interval));
            BOOST_TEST(!b.take(start + interval));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_rate_that_divides_no_second_does_not_drift)
{
    bucket b(per_second(3, 2));
    for (int taken = 0; taken != 3000; ++taken)
        BOOST_REQUIRE(b.take(b.next()));
    BOOST_TEST(b.full == b.rule.at(1000s)); // to the third of a nanosecond
}

BOOST_AUTO_TEST_CASE(never_more_than_rate_and_burst)
{
    std::mt19937_64 random(5);
    for (const bandwidth limit :
         {bandwidth{3, 1s, 4}, bandwidth{17, 1s, 1}, bandwidth{999'983, 1s, 50},
          bandwidth{299'999'999, 1s, 3}, bandwidth{7, 1min, 7}, per_second(2.75, 3)}) {
        bucket b(limit);
        const nanoseconds start = 5s;
        const nanoseconds pace = limit.period / static_cast<std::int64_t>(limit.permits) + 1ns;
        nanoseconds now = start;
        std::uint64_t taken = 0;
        for (int i = 0; i != 20'000; ++i) {
            const std::uint64_t n = 1 + random() % limit.burst;
            if (b.take(now, n))
                taken += n;
            now += nanoseconds(random() % static_cast<std::uint64_t>(pace.count()));
            const auto earned = static_cast<long double>((now - start).count()) *
                                static_cast<long double>(limit.permits) /
                                static_cast<long double>(limit.period.count());
            BOOST_REQUIRE(static_cast<long double>(taken) <=
                          earned + static_cast<long double>(limit.burst));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_long_idle_gives_no_more_than_the_burst)
{
    bucket b(per_second(1000, 10));
    for (const nanoseconds now : {nanoseconds(1s), nanoseconds(day), nanoseconds(3650 * day)}) {
        BOOST_TEST(b.rule.available(b.full, b.rule.at(now)) == 10U);
        BOOST_TEST(b.take(now, 10));
        BOOST_TEST(!b.take(now));
    }
}

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back_mints_nothing)
{
    bucket b(per_second(10, 5));
    BOOST_TEST(b.take(100s, 5));
    for (const nanoseconds back :
         {nanoseconds(99s), nanoseconds(1s), nanoseconds(0), nanoseconds(-10s)})
        BOOST_TEST(!b.take(back));
    BOOST_TEST(!b.take(100s));
    BOOST_TEST(b.take(100s + 100ms));
    BOOST_TEST(!b.take(100s + 100ms));
}

BOOST_AUTO_TEST_CASE(a_large_request_takes_as_long_as_its_parts)
{
    bucket b(per_second(3, 6));
    BOOST_TEST(b.take(1s, 6));
    BOOST_TEST(b.next(6).count() == nanoseconds(3s).count());
    BOOST_TEST(b.next(1).count() == 1'333'333'334);
    BOOST_TEST(b.rule.available(b.full, b.rule.at(1'333'333'333ns)) == 0U);
    BOOST_TEST(b.rule.available(b.full, b.rule.at(1'333'333'334ns)) == 1U);
    BOOST_TEST(b.rule.available(b.full, b.rule.at(2s)) == 3U);
}

BOOST_AUTO_TEST_CASE(smooth_permits_are_evenly_spaced_even_after_a_pause)
{
    bucket b(turnstile::smooth(per_second(10, 5)));
    BOOST_TEST(b.take(1h));
    BOOST_TEST(!b.take(1h));
    BOOST_TEST(!b.take(1h + 99ms));
    BOOST_TEST(b.take(1h + 100ms, 3));
    BOOST_TEST(b.rule.available(b.full, b.rule.at(1h + 100ms)) == 0U);
    BOOST_TEST(!b.take(1h + 399ms));
    BOOST_TEST(b.take(1h + 400ms));
}

BOOST_AUTO_TEST_CASE(a_refund_restores_the_bucket)
{
    bucket b(per_second(10, 5));
    BOOST_TEST(b.take(1s, 3));
    const gcra::ticks before = b.full;
    BOOST_TEST(b.take(1s, 2));
    b.full = b.rule.refunded(b.full, 2, 0);
    BOOST_TEST(b.full == before);
    // While the two permits were out, the bucket was filled without them: nothing is returned.
    BOOST_TEST(b.take(1s, 2));
    b.full = b.rule.charged(b.full, b.rule.at(2s), 5);
    b.full = b.rule.refunded(b.full, 2, b.rule.at(1s));
    BOOST_TEST(!b.take(2s));
    BOOST_TEST(b.rule.refunded(5, 2, 0) == 0U);
}

BOOST_AUTO_TEST_CASE(changing_the_rule_keeps_what_is_missing)
{
    bucket b(per_second(10, 10));
    BOOST_TEST(b.take(1s, 10));
    bucket slower(per_second(1, 12));
    slower.full = slower.rule.converted(b.rule, b.full, 1s);
    BOOST_TEST(slower.rule.available(slower.full, slower.rule.at(1s)) == 2U);
    BOOST_TEST(slower.take(1s, 2));
    BOOST_TEST(!slower.take(2s - 1ns));
    BOOST_TEST(slower.take(2s));
    bucket idle(per_second(3, 4));
    idle.full = idle.rule.converted(b.rule, b.full, 1h);
    BOOST_TEST(idle.rule.available(idle.full, idle.rule.at(1h)) == 4U);
}

BOOST_AUTO_TEST_CASE(invalid_bandwidths_are_recognised)
{
    const auto nan = std::numeric_limits<double>::quiet_NaN();
    const auto infinity = std::numeric_limits<double>::infinity();
    for (const double rate : {0.0, -0.0, -1.0, nan, infinity, -infinity, 1e-9, 1.1e9, 1e300})
        BOOST_TEST(!gcra::valid(per_second(rate, 1)), rate);
    BOOST_TEST(!gcra::valid(per_second(1, 0)));
    BOOST_TEST(!gcra::valid(per_second(1, huge)));
    BOOST_TEST(!gcra::valid(per_second(1, 1'000'000'000'000)));
    BOOST_TEST(!gcra::valid({0, 1s, 1}));
    BOOST_TEST(!gcra::valid({1, 0s, 1}));
    BOOST_TEST(!gcra::valid({1, -1s, 1}));
    BOOST_TEST(!gcra::valid({huge, 1s, 1}));
    BOOST_TEST(!gcra::valid({1, nanoseconds::max(), 1}));
    BOOST_TEST(gcra::valid({1'000'000'000, 1s, 1'000'000'000}));
    BOOST_TEST(gcra::valid({1, 365 * day, 1}));
}

BOOST_AUTO_TEST_CASE(a_rate_may_be_a_fraction)
{
    BOOST_TEST((per_second(5, 10) == bandwidth{5, 1s, 10}));
    bucket half(per_second(0.5));
    BOOST_TEST(half.take(1s));
    BOOST_TEST(half.next().count() == nanoseconds(3s).count());
    bucket two_and_a_half(per_second(2.5));
    BOOST_TEST(two_and_a_half.take(1s));
    BOOST_TEST(two_and_a_half.next().count() == nanoseconds(1400ms).count());
}

BOOST_AUTO_TEST_CASE(the_end_of_time_does_not_overflow)
{
    bucket b(per_second(17, 1000));
    const auto last = nanoseconds::max();
    BOOST_TEST(b.rule.at(last) == gcra::end_of_time);
    BOOST_TEST(b.rule.charged(gcra::end_of_time, b.rule.at(last), 1000) == gcra::end_of_time);
    BOOST_TEST(b.rule.charged(0, 5, huge) == gcra::end_of_time);
    BOOST_TEST(b.rule.at(nanoseconds::min()) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
