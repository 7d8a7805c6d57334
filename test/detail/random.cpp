// SPDX-License-Identifier: BSL-1.0
#include "kit/threads.hpp"

#include <turnstile/detail/util/random.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace {

// Returns the value of z before z ^= z >> n.
std::uint64_t undo_shift(std::uint64_t z, int n)
{
    std::uint64_t before = z;
    for (int known = n; known < 64; known += n)
        before = z ^ (before >> n);
    return before;
}

// Returns the state of a random_source after it returned `number`.
std::uint64_t state_after(std::uint64_t number)
{
    std::uint64_t z = undo_shift(number, 31) * 0x319642b2d24d8ec3U;
    z = undo_shift(z, 27) * 0x96de1b173f119089U;
    return undo_shift(z, 30);
}

BOOST_AUTO_TEST_SUITE(random)

BOOST_AUTO_TEST_CASE(seeds_differ_between_calls_and_between_threads)
{
    constexpr int threads = 4;
    constexpr std::size_t calls = 1000;
    std::vector<std::vector<std::uint64_t>> seeds(threads);
    kit::on_threads(
        [&](int thread) {
            for (std::size_t i = 0; i != calls; ++i)
                seeds[static_cast<std::size_t>(thread)].push_back(turnstile::detail::random_seed());
        },
        threads);
    std::set<std::uint64_t> distinct;
    for (const auto& mine : seeds)
        distinct.insert(mine.begin(), mine.end());
    BOOST_TEST(distinct.size() == threads * calls);
}

// Each seed follows from the one before, without the system's source, which is slow.
BOOST_AUTO_TEST_CASE(a_thread_reads_the_systems_source_only_once)
{
    std::uint64_t before = turnstile::detail::random_seed();
    for (int i = 0; i != 10; ++i) {
        turnstile::detail::random_source same(state_after(before));
        before = turnstile::detail::random_seed();
        BOOST_TEST(same.next() == before);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
