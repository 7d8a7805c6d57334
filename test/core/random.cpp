// SPDX-License-Identifier: BSL-1.0
#include "kit/joining_thread.hpp"

#include <turnstile/core/detail/random.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

BOOST_AUTO_TEST_SUITE(random_)

BOOST_AUTO_TEST_CASE(seeds_differ_from_call_to_call_and_thread_to_thread)
{
    constexpr std::size_t threads = 4;
    constexpr std::size_t calls = 1000;
    std::vector<std::vector<std::uint64_t>> seeds(threads);
    std::vector<kit::joining_thread> running;
    for (auto& mine : seeds) {
        running.emplace_back([&mine] {
            for (std::size_t i = 0; i != calls; ++i)
                mine.push_back(turnstile::detail::random_seed());
        });
    }
    running.clear();
    std::set<std::uint64_t> distinct;
    for (const auto& mine : seeds)
        distinct.insert(mine.begin(), mine.end());
    BOOST_TEST(distinct.size() == threads * calls);
}

BOOST_AUTO_TEST_SUITE_END()
