// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/adaptive_limit.hpp>

#include <boost/test/unit_test.hpp>

#include <limits>

namespace {

using namespace std::chrono_literals;
using turnstile::aimd_machine;
using turnstile::aimd_options;
using turnstile::gradient_machine;
using turnstile::gradient_options;
using turnstile::limit_sample;
using turnstile::nanoseconds;

template <class Limit, class Options, class Change>
bool refused(Options options, Change change)
{
    change(options);
    try {
        Limit limit(options);
    } catch (const turnstile::system_error& e) {
        return e.code() == turnstile::errc::invalid_argument;
    }
    return false;
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Samples of calls that fill the limit, one round after the other.
template <class Limit>
struct rounds {
    Limit& limit;
    nanoseconds now = 1h;

    // Every call that the limit allows, all at once.
    void full(nanoseconds latency, bool dropped = false)
    {
        const auto in_flight = limit.limit();
        const nanoseconds started = now;
        now += latency;
        for (auto i = in_flight; i != 0; --i)
            limit.update({started, now, in_flight, dropped});
    }
    void full(int times, nanoseconds latency)
    {
        for (int i = 0; i != times; ++i)
            full(latency);
    }
};
template <class Limit>
rounds(Limit&) -> rounds<Limit>;

BOOST_AUTO_TEST_SUITE(adaptive_limit)

BOOST_AUTO_TEST_CASE(bad_options_are_refused)
{
    const auto bad_aimd = [](auto change) { return refused<aimd_machine>(aimd_options(), change); };
    BOOST_TEST(!bad_aimd([](auto&) {}));
    BOOST_TEST(bad_aimd([](auto& o) { o.minimum = 0; }));
    BOOST_TEST(bad_aimd([](auto& o) { o.maximum = o.minimum - 1; }));
    BOOST_TEST(bad_aimd([](auto& o) { o.maximum = turnstile::limit_bound; }));
    BOOST_TEST(!bad_aimd([](auto& o) { o.maximum = turnstile::limit_bound - 1; }));
    BOOST_TEST(bad_aimd([](auto& o) { o.timeout = 0s; }));
    for (double bad : {0.0, -1.0, nan})
        BOOST_TEST(bad_aimd([=](auto& o) { o.increase = bad; }));
    for (double bad : {0.0, 1.0, nan})
        BOOST_TEST(bad_aimd([=](auto& o) { o.backoff = bad; }));

    const auto bad_gradient = [](auto change) {
        return refused<gradient_machine>(gradient_options(), change);
    };
    BOOST_TEST(!bad_gradient([](auto&) {}));
    BOOST_TEST(bad_gradient([](auto& o) { o.minimum = 0; }));
    BOOST_TEST(bad_gradient([](auto& o) { o.maximum = 0; }));
    BOOST_TEST(bad_gradient([](auto& o) { o.maximum = std::uint64_t(-1); }));
    BOOST_TEST(bad_gradient([](auto& o) { o.window = 0; }));
    for (double bad : {0.9, nan})
        BOOST_TEST(bad_gradient([=](auto& o) { o.tolerance = bad; }));
    for (double bad : {0.0, 1.1, nan})
        BOOST_TEST(bad_gradient([=](auto& o) { o.smoothing = bad; }));
    for (double bad : {-1.0, nan})
        BOOST_TEST(bad_gradient([=](auto& o) { o.head_room = bad; }));
}

BOOST_AUTO_TEST_CASE(it_starts_within_its_bounds)
{
    BOOST_TEST(aimd_machine({.minimum = 5, .maximum = 10}, 7).limit() == 7U);
    BOOST_TEST(aimd_machine({.minimum = 5, .maximum = 10}, 1).limit() == 5U);
    BOOST_TEST(gradient_machine({.minimum = 5, .maximum = 10}, 99).limit() == 10U);
}

// -------------------------------------------------------------------------- AIMD ----

BOOST_AUTO_TEST_CASE(aimd_grows_by_one_for_each_full_round)
{
    aimd_machine limit({.maximum = 25}, 10);
    rounds r{limit};
    r.full(10, 10ms); // a little less than one each, since the limit grows meanwhile
    BOOST_TEST(limit.limit() == 19U);
    r.full(10, 10ms);
    BOOST_TEST(limit.limit() == 25U);
}

BOOST_AUTO_TEST_CASE(aimd_does_not_grow_when_it_is_not_used)
{
    aimd_machine limit({}, 10);
    for (int i = 0; i != 1000; ++i)
        limit.update({1h, 1h + 1ms, 4, false});
    BOOST_TEST(limit.limit() == 10U);
    for (int i = 0; i != 20; ++i)
        limit.update({1h, 1h + 1ms, 6, false});
    BOOST_TEST(limit.limit() == 11U);
}

BOOST_AUTO_TEST_CASE(aimd_backs_off_once_for_all_that_were_dropped_together)
{
    aimd_machine limit({.backoff = 0.5}, 100);
    rounds r{limit};
    r.full(10ms, true);
    BOOST_TEST(limit.limit() == 50U);
    r.full(10ms, true);
    BOOST_TEST(limit.limit() == 25U);
}

BOOST_AUTO_TEST_CASE(aimd_takes_a_call_over_the_timeout_for_dropped)
{
    aimd_machine limit({.backoff = 0.5, .timeout = 100ms}, 100);
    limit.update({1h, 1h + 100ms, 100, false});
    BOOST_TEST(limit.limit() == 100U);
    limit.update({2h, 2h + 100ms + 1ns, 1, false}); // even with one outstanding call
    BOOST_TEST(limit.limit() == 50U);
}

BOOST_AUTO_TEST_CASE(aimd_stays_above_its_minimum)
{
    aimd_machine limit({.minimum = 3}, 20);
    rounds r{limit};
    for (int i = 0; i != 100; ++i)
        r.full(10ms, true);
    BOOST_TEST(limit.limit() == 3U);
}

// ---------------------------------------------------------------------- gradient ----

BOOST_AUTO_TEST_CASE(gradient_grows_while_the_latency_is_as_usual)
{
    gradient_machine limit({.maximum = 60}, 20);
    rounds r{limit};
    r.full(5, 10ms); // a fifth of the head room each
    BOOST_TEST(limit.limit() == 24U);
    BOOST_TEST((limit.usual_latency() == 10ms));
    r.full(60, 10ms);
    BOOST_TEST(limit.limit() == 60U);
}

BOOST_AUTO_TEST_CASE(gradient_shrinks_when_calls_take_longer_and_nothing_has_failed)
{
    gradient_machine limit({.maximum = 60}, 60);
    rounds r{limit};
    r.full(20, 10ms);
    r.full(20, 50ms);
    BOOST_TEST(limit.limit() < 20U);
    r.full(100, 10ms);
    BOOST_TEST(limit.limit() == 60U);
}

BOOST_AUTO_TEST_CASE(gradient_moves_once_for_each_round)
{
    gradient_machine limit({.smoothing = 1.0, .head_room = 10}, 20);
    rounds r{limit};
    r.full(10ms); // half of them make a round; the others started under the earlier limit
    BOOST_TEST(limit.limit() == 30U);
    for (int i = 0; i != 100; ++i)
        limit.update({1h, 1h + 1s, 30, false});
    BOOST_TEST(limit.limit() == 30U);
}

BOOST_AUTO_TEST_CASE(gradient_tolerates_what_it_is_told_to)
{
    gradient_machine limit({.maximum = 60, .tolerance = 3.0}, 60);
    rounds r{limit};
    r.full(20, 10ms);
    r.full(1, 30ms);
    BOOST_TEST(limit.limit() == 60U);
    r.full(1, 100ms);
    BOOST_TEST(limit.limit() < 60U);
}

BOOST_AUTO_TEST_CASE(gradient_does_not_move_when_it_is_not_used)
{
    gradient_machine limit({}, 20);
    for (int i = 0; i != 100; ++i)
        limit.update({1h + i * 1s, 1h + i * 1s + 10ms * i, 9, false});
    BOOST_TEST(limit.limit() == 20U);
    BOOST_TEST((limit.usual_latency() > 10ms)); // it has learned the latency
}

BOOST_AUTO_TEST_CASE(gradient_shrinks_once_for_all_that_were_dropped_together)
{
    gradient_machine limit({.smoothing = 1.0}, 100);
    rounds r{limit};
    r.full(10ms, true);
    BOOST_TEST(limit.limit() == 50U);
}

BOOST_AUTO_TEST_CASE(gradient_gets_over_a_slow_time)
{
    gradient_machine limit({.maximum = 60, .window = 10000}, 60);
    rounds r{limit};
    r.full(50, 1s); // the slow latency has become the usual one
    BOOST_TEST((limit.usual_latency() > 900ms));
    r.full(100, 10ms);
    BOOST_TEST((limit.usual_latency() < 30ms));
}

BOOST_AUTO_TEST_CASE(a_clock_that_stands_still_does_no_harm)
{
    gradient_machine gradient({}, 20);
    aimd_machine aimd({}, 20);
    for (int i = 0; i != 100; ++i) {
        gradient.update({1h, 1h, 20, false});
        gradient.update({1h, 30min, 20, false});
        aimd.update({1h, 30min, 20, false});
    }
    BOOST_TEST(gradient.limit() > 20U);
    BOOST_TEST(aimd.limit() > 20U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
