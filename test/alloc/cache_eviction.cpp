// SPDX-License-Identifier: BSL-1.0
// cache_eviction allocates only while the number of entries grows, and does without memory that it
// does not get.
#include "heap.hpp"
#include "sweep.hpp"

#include <turnstile/work/detail/cache_eviction.hpp>
#include <turnstile/work/eviction_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>

namespace {

using turnstile::eviction_policy;
using turnstile::detail::cache_eviction;
using turnstile::detail::eviction_entry;

// Twice as many keys as there is room for, each of them in turn.
void use(cache_eviction& machine, std::deque<eviction_entry>& entries, int rounds)
{
    for (int round = 0; round != rounds; ++round) {
        for (eviction_entry& e : entries) {
            e.is_tracked() ? machine.touch(e) : machine.insert(e);
            while (machine.next_victim())
                ;
        }
    }
}

std::deque<eviction_entry> make_entries(std::size_t count)
{
    std::deque<eviction_entry> out;
    for (std::size_t i = 0; i != count; ++i)
        out.emplace_back(i, 1);
    return out;
}

BOOST_AUTO_TEST_SUITE(cache_evictions)

BOOST_AUTO_TEST_CASE(a_full_cache_allocates_nothing)
{
    for (const eviction_policy policy : {eviction_policy::w_tiny_lfu, eviction_policy::lru}) {
        std::deque<eviction_entry> entries = make_entries(2000);
        cache_eviction machine(policy, 1000, 1);
        const std::size_t at_first = heap::allocations();
        use(machine, entries, 1);
        // Each doubling of the two tables is one allocation.
        BOOST_TEST(heap::allocations() - at_first <= 20U);
        const std::size_t before = heap::allocations();
        const std::ptrdiff_t in_use = heap::in_use();
        use(machine, entries, 20);
        machine.resize(500);
        while (machine.next_victim())
            ;
        machine.resize(1000);
        use(machine, entries, 5);
        BOOST_TEST(heap::allocations() == before);
        BOOST_TEST(heap::in_use() == in_use);
    }
}

BOOST_AUTO_TEST_CASE(a_table_that_cannot_grow_does_no_harm)
{
    std::deque<eviction_entry> entries = make_entries(200);
    heap::sweep([&](std::size_t k, heap::failure how) {
        cache_eviction machine(eviction_policy::w_tiny_lfu, 100, 1);
        heap::failing failing(k, how);
        use(machine, entries, 3);
        const bool happened = failing.happened();
        failing.stop();
        BOOST_TEST(machine.weight() == 100U);
        BOOST_TEST(machine.size() == 100U);
        return happened;
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
