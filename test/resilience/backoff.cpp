// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/backoff.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <limits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using turnstile::backoff;
using turnstile::backoff_machine;
using turnstile::nanoseconds;

std::vector<nanoseconds> first(std::size_t n, const backoff& rule, std::uint64_t seed = 1)
{
    backoff_machine sequence(rule, seed);
    std::vector<nanoseconds> delays;
    for (std::size_t i = 0; i != n; ++i)
        delays.push_back(sequence.next());
    return delays;
}
using delays = std::vector<nanoseconds>;

const auto is_invalid = [](const turnstile::system_error& e) {
    return e.code() == turnstile::errc::invalid_argument;
};

BOOST_AUTO_TEST_SUITE(resilience_backoff)

BOOST_AUTO_TEST_CASE(constant_delays_stay_the_same)
{
    BOOST_TEST((first(3, backoff::constant(100ms)) == delays{100ms, 100ms, 100ms}));
}

BOOST_AUTO_TEST_CASE(linear_delays_grow_by_a_step)
{
    BOOST_TEST((first(4, backoff::linear(100ms, 50ms)) == delays{100ms, 150ms, 200ms, 250ms}));
}

BOOST_AUTO_TEST_CASE(exponential_delays_grow_by_a_factor)
{
    BOOST_TEST((first(4, backoff::exponential(100ms)) == delays{100ms, 200ms, 400ms, 800ms}));
    BOOST_TEST((first(3, backoff::exponential(100ms, 1.5)) == delays{100ms, 150ms, 225ms}));
    BOOST_TEST((first(3, backoff::exponential(100ms, 1)) == delays{100ms, 100ms, 100ms}));
}

BOOST_AUTO_TEST_CASE(delays_stop_at_the_cap)
{
    BOOST_TEST((first(4, backoff::exponential(100ms).capped(300ms)) ==
                delays{100ms, 200ms, 300ms, 300ms}));
    BOOST_TEST((first(2, backoff::constant(1s).capped(300ms)) == delays{300ms, 300ms}));
}

BOOST_AUTO_TEST_CASE(two_thousand_attempts_do_not_overflow)
{
    const backoff rules[] = {backoff::constant(1s),
                             backoff::linear(1s, std::chrono::hours(24 * 365)),
                             backoff::exponential(100ms),
                             backoff::exponential(1ns, 1e300),
                             backoff::exponential(100ms).with_full_jitter(),
                             backoff::decorrelated_jitter(100ms),
                             backoff::decorrelated_jitter(nanoseconds::max()),
                             backoff::decorrelated_jitter(1h).with_full_jitter()};
    for (const backoff& rule : rules) {
        backoff_machine sequence(rule, 7);
        backoff_machine capped(rule.capped(30s), 7);
        for (int i = 0; i != 2000; ++i) {
            BOOST_TEST_REQUIRE(sequence.next().count() >= 0);
            const nanoseconds delay = capped.next();
            BOOST_TEST_REQUIRE((delay >= 0s && delay <= 30s));
        }
    }
    backoff_machine longest(backoff::exponential(100ms));
    nanoseconds last{};
    for (int i = 0; i != 2000; ++i)
        last = longest.next();
    BOOST_TEST((last == nanoseconds::max()));
}

BOOST_AUTO_TEST_CASE(full_jitter_is_anything_up_to_the_delay)
{
    const auto jittered = first(2000, backoff::constant(1000ns).with_full_jitter());
    const auto [least, most] = std::minmax_element(jittered.begin(), jittered.end());
    BOOST_TEST((*least >= 0ns && *least < 20ns));
    BOOST_TEST((*most <= 1000ns && *most > 980ns));
}

BOOST_AUTO_TEST_CASE(decorrelated_jitter_is_between_the_first_and_three_times_the_last)
{
    nanoseconds before = 100ms;
    for (nanoseconds delay : first(2000, backoff::decorrelated_jitter(100ms).capped(5s))) {
        BOOST_TEST_REQUIRE((delay >= 100ms && delay <= std::min<nanoseconds>(3 * before, 5s)));
        before = delay;
    }
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_delays)
{
    for (const backoff& rule :
         {backoff::decorrelated_jitter(1s), backoff::exponential(1s).with_full_jitter()}) {
        BOOST_TEST((first(20, rule, 42) == first(20, rule, 42)));
        BOOST_TEST((first(20, rule, 42) != first(20, rule, 43)));
    }
}

BOOST_AUTO_TEST_CASE(a_delay_of_zero_stays_zero)
{
    BOOST_TEST((first(3, backoff::exponential(0s)) == delays{0s, 0s, 0s}));
    BOOST_TEST((first(3, backoff::decorrelated_jitter(0s)) == delays{0s, 0s, 0s}));
    BOOST_TEST((first(2, backoff::constant(1s).capped(0s)) == delays{0s, 0s}));
}

BOOST_AUTO_TEST_CASE(senseless_figures_are_refused)
{
    using turnstile::system_error;
    BOOST_CHECK_EXCEPTION(backoff::constant(-1s), system_error, is_invalid);
    BOOST_CHECK_EXCEPTION(backoff::linear(1s, -1ns), system_error, is_invalid);
    BOOST_CHECK_EXCEPTION(backoff::exponential(1s, 0.5), system_error, is_invalid);
    BOOST_CHECK_EXCEPTION(backoff::exponential(1s, std::numeric_limits<double>::quiet_NaN()),
                          system_error, is_invalid);
    BOOST_CHECK_EXCEPTION(backoff::decorrelated_jitter(-1s), system_error, is_invalid);
    BOOST_CHECK_EXCEPTION(backoff::constant(1s).capped(-1s), system_error, is_invalid);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
