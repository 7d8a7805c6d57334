// SPDX-License-Identifier: BSL-1.0
#include "kit/manual_clock.hpp"

#include <turnstile/core/clock.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

namespace {

using turnstile::nanoseconds;
using namespace std::chrono_literals;

static_assert(turnstile::clock_policy<turnstile::default_clock>);
static_assert(turnstile::clock_policy<kit::manual_clock>);
static_assert(!turnstile::clock_policy<int>);

constexpr nanoseconds longest = nanoseconds::max();
constexpr nanoseconds shortest = nanoseconds::min();

BOOST_AUTO_TEST_SUITE(clock_policy)

BOOST_AUTO_TEST_CASE(arithmetic_saturates_at_both_ends)
{
    using namespace turnstile;
    static_assert(saturating_add(1s, 2s) == 3s);
    static_assert(saturating_add(longest, 1ns) == longest);
    static_assert(saturating_add(shortest, -1ns) == shortest);
    static_assert(saturating_sub(3s, 1s) == 2s);
    static_assert(saturating_sub(shortest, 1ns) == shortest);
    static_assert(saturating_sub(longest, -1ns) == longest);
    static_assert(saturating_sub(0ns, shortest) == longest);
    static_assert(saturating_mul(2s, 3) == 6s);
    static_assert(saturating_mul(longest, 2) == longest);
    static_assert(saturating_mul(longest, -2) == shortest);
    static_assert(saturating_mul(shortest, -1) == longest);
    BOOST_TEST((saturating_mul(1s, 0) == 0s));
}

BOOST_AUTO_TEST_CASE(any_duration_converts_to_nanoseconds)
{
    using turnstile::saturating_nanoseconds;
    BOOST_TEST((saturating_nanoseconds(5ms) == 5'000'000ns));
    BOOST_TEST((saturating_nanoseconds(std::chrono::hours::max()) == longest));
    BOOST_TEST((saturating_nanoseconds(std::chrono::hours::min()) == shortest));
    BOOST_TEST((saturating_nanoseconds(std::chrono::duration<double>(0.5)) == 500ms));
    BOOST_TEST((saturating_nanoseconds(std::chrono::duration<double>(1e30)) == longest));
    BOOST_TEST((saturating_nanoseconds(std::chrono::duration<double>(-1e30)) == shortest));
    BOOST_TEST((saturating_nanoseconds(std::chrono::duration<double>(std::nan(""))) == 0ns));
    BOOST_TEST((saturating_nanoseconds(longest) == longest));
}

BOOST_AUTO_TEST_CASE(a_timer_follows_the_manual_clock)
{
    kit::manual_clock::reset();
    boost::asio::io_context io;
    kit::manual_timer timer(io, 10s);
    bool fired = false;
    timer.async_wait([&](auto) { fired = true; });
    kit::manual_clock::advance(io, 10s - 1ns);
    BOOST_TEST(!fired);
    kit::manual_clock::advance(io, 1ns);
    BOOST_TEST(fired);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
