// SPDX-License-Identifier: BSL-1.0
// The hit ratio of cache_eviction on generated traces: never more than two points below the better
// of LRU and W-TinyLFU with a fixed window. bench/hit_ratio has more traces and sizes.
#include "kit/eviction_simulation.hpp"
#include "kit/seed.hpp"

#include <turnstile/work/eviction_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace {

using turnstile::eviction_policy;

constexpr double tolerance = 2; // points
constexpr std::size_t length = 60'000;

void check(const kit::trace& t, std::initializer_list<std::size_t> sizes)
{
    for (const std::size_t size : sizes) {
        BOOST_TEST_CONTEXT("size " << size)
        {
            const double lru = kit::hit_ratio(t, size, eviction_policy::lru);
            const double better = std::max(lru, kit::fixed_window_hit_ratio(t, size));
            const double ours = kit::hit_ratio(t, size, eviction_policy::w_tiny_lfu);
            BOOST_TEST(ours >= better - tolerance);
            BOOST_TEST(ours <= kit::optimal_hit_ratio(t, size));
        }
    }
}

BOOST_AUTO_TEST_SUITE(cache_eviction_ratios)

BOOST_AUTO_TEST_CASE(the_simulated_policies_have_the_ratios_that_are_known)
{
    const kit::trace loop = kit::loop_trace(10, 1000);
    BOOST_TEST(kit::hit_ratio(loop, 10, eviction_policy::lru) == 99.0);
    BOOST_TEST(kit::hit_ratio(loop, 9, eviction_policy::lru) == 0.0);
    BOOST_TEST(kit::optimal_hit_ratio(loop, 10) == 99.0);
    BOOST_TEST(kit::optimal_hit_ratio({1, 2, 3, 1, 2, 3, 1, 2}, 2) == 50.0);
    BOOST_TEST(kit::fixed_window_hit_ratio(loop, 9) > 50.0);
}

BOOST_AUTO_TEST_CASE(zipf)
{
    kit::for_each_seed(2, [](std::uint64_t seed) {
        for (const double skew : {0.7, 0.9, 1.1})
            check(kit::zipf_trace(skew, length, seed), {16, 100, 1000});
    });
}

BOOST_AUTO_TEST_CASE(zipf_with_scans)
{
    kit::for_each_seed(4, [](std::uint64_t seed) {
        check(kit::scan_trace(length, seed), {16, 100, 1000});
    });
}

BOOST_AUTO_TEST_CASE(a_working_set_that_shifts)
{
    kit::for_each_seed(4, [](std::uint64_t seed) {
        check(kit::shift_trace(2 * length, seed), {16, 100, 500});
    });
}

BOOST_AUTO_TEST_CASE(a_loop_that_is_larger_than_the_cache)
{
    check(kit::loop_trace(600, length), {16, 100, 500});
}

BOOST_AUTO_TEST_CASE(recency_without_frequency)
{
    kit::for_each_seed(4, [](std::uint64_t seed) {
        check(kit::recency_trace(2 * length, seed), {16, 100, 300});
    });
}

BOOST_AUTO_TEST_CASE(recency_and_a_loop_in_turn)
{
    kit::for_each_seed(4, [](std::uint64_t seed) {
        check(kit::mixed_trace(4 * length, seed), {16, 200, 500});
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
