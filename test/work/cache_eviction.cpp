// SPDX-License-Identifier: BSL-1.0
// The rules of cache_eviction: which entry is the victim, and what weights, erasing and resizing
// change. Its hit ratios are tested in cache_eviction_ratio.cpp.
#include "kit/seed.hpp"

#include <turnstile/detail/util/random.hpp>
#include <turnstile/work/detail/cache_eviction.hpp>
#include <turnstile/work/eviction_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

namespace {

using turnstile::eviction_policy;
using turnstile::to_string;
using turnstile::detail::cache_eviction;
using turnstile::detail::eviction_entry;
using turnstile::detail::random_source;

static_assert(to_string(eviction_policy::w_tiny_lfu) == "w_tiny_lfu");
static_assert(to_string(eviction_policy::lru) == "lru");
static_assert(sizeof(eviction_entry) <= 2 * sizeof(void*) + 16);

constexpr auto both = {eviction_policy::w_tiny_lfu, eviction_policy::lru};

// A machine with entries whose hashes are 0, 1, 2...
struct fixture {
    fixture(eviction_policy policy, std::uint64_t max_weight) : machine(policy, max_weight, 1) {}
    ~fixture()
    {
        machine.clear([](eviction_entry&) noexcept {});
    }

    eviction_entry& insert(std::uint64_t weight = 1)
    {
        eviction_entry& e = entries.emplace_back(entries.size(), weight);
        machine.insert(e);
        return e;
    }
    // The hashes of the victims, in order.
    std::vector<std::uint64_t> evict()
    {
        std::vector<std::uint64_t> out;
        while (const eviction_entry* victim = machine.next_victim()) {
            BOOST_TEST(!victim->is_tracked());
            out.push_back(victim->hash());
        }
        return out;
    }
    // Inserts an entry and evicts, that many times.
    void fill(std::size_t count)
    {
        for (std::size_t i = 0; i != count; ++i) {
            insert();
            evict();
        }
    }
    // Compares what the machine counts with its entries.
    void check()
    {
        std::uint64_t weight = 0;
        std::size_t size = 0;
        machine.for_each([&](const eviction_entry& e) {
            weight += e.weight();
            ++size;
        });
        BOOST_TEST(machine.weight() == weight);
        BOOST_TEST(machine.size() == size);
        BOOST_TEST(machine.weight() <= machine.max_weight());
        BOOST_TEST(size == static_cast<std::size_t>(std::count_if(
                               entries.begin(), entries.end(),
                               [](const eviction_entry& e) { return e.is_tracked(); })));
    }

    std::deque<eviction_entry> entries;
    cache_eviction machine;
};

using hashes = std::vector<std::uint64_t>;

BOOST_AUTO_TEST_SUITE(cache_evictions)

BOOST_AUTO_TEST_CASE(nothing_is_evicted_while_there_is_room)
{
    for (const eviction_policy policy : both) {
        fixture f(policy, 10);
        for (int i = 0; i != 10; ++i)
            f.insert();
        BOOST_TEST(f.evict().empty());
        BOOST_TEST(f.machine.weight() == 10);
        BOOST_TEST(f.machine.size() == 10);
        f.check();
    }
}

BOOST_AUTO_TEST_CASE(lru_evicts_the_entry_that_was_not_used_for_the_longest_time)
{
    fixture f(eviction_policy::lru, 3);
    eviction_entry& first = f.insert();
    f.insert();
    f.insert();
    f.machine.touch(first);
    f.insert();
    f.insert();
    BOOST_TEST(f.evict() == hashes({1, 2}), boost::test_tools::per_element());
    f.check();
}

BOOST_AUTO_TEST_CASE(a_scan_does_not_displace_entries_that_are_used)
{
    fixture f(eviction_policy::w_tiny_lfu, 100);
    f.fill(100);
    for (int round = 0; round != 7; ++round) {
        for (int i = 0; i != 100; ++i)
            f.machine.touch(f.entries[static_cast<std::size_t>(i)]);
    }
    f.fill(1000);
    std::size_t kept = 0;
    for (std::size_t i = 0; i != 100; ++i)
        kept += f.entries[i].is_tracked() ? 1 : 0;
    BOOST_TEST(kept >= 98);
    f.check();
}

BOOST_AUTO_TEST_CASE(a_key_that_comes_back_often_is_admitted)
{
    fixture f(eviction_policy::w_tiny_lfu, 100);
    f.fill(100);
    eviction_entry frequent(12345, 1);
    bool stays = false;
    for (int visit = 0; visit != 5 && !stays; ++visit) {
        f.machine.insert(frequent);
        f.evict();
        f.fill(5);
        stays = frequent.is_tracked();
    }
    BOOST_TEST(stays);
    if (stays)
        f.machine.erase(frequent);
}

BOOST_AUTO_TEST_CASE(recorded_misses_make_a_key_frequent)
{
    for (const bool recorded : {false, true}) {
        fixture f(eviction_policy::w_tiny_lfu, 100);
        f.fill(100);
        for (int i = 0; i != 3 && recorded; ++i)
            f.machine.record_miss(12345);
        eviction_entry e(12345, 1);
        f.machine.insert(e);
        f.evict();
        f.fill(50);
        BOOST_TEST(e.is_tracked() == recorded);
        if (e.is_tracked())
            f.machine.erase(e);
    }
}

BOOST_AUTO_TEST_CASE(an_erased_key_keeps_its_frequency)
{
    fixture f(eviction_policy::w_tiny_lfu, 100);
    f.fill(100);
    eviction_entry e(12345, 1);
    f.machine.insert(e);
    for (int i = 0; i != 4; ++i)
        f.machine.touch(e);
    f.machine.erase(e);
    BOOST_TEST(!e.is_tracked());
    f.machine.insert(e);
    f.evict();
    f.fill(50);
    BOOST_TEST(e.is_tracked());
    if (e.is_tracked())
        f.machine.erase(e);
}

BOOST_AUTO_TEST_CASE(an_entry_that_is_heavier_than_the_cache_is_the_first_victim)
{
    for (const eviction_policy policy : both) {
        fixture f(policy, 10);
        f.fill(10);
        f.insert(11);
        f.insert(std::numeric_limits<std::uint64_t>::max());
        BOOST_TEST(f.machine.weight() == 10);
        BOOST_TEST(f.machine.size() == 12);
        BOOST_TEST(f.evict() == hashes({10, 11}), boost::test_tools::per_element());
        f.check();
    }
}

BOOST_AUTO_TEST_CASE(entries_without_weight_are_never_evicted)
{
    for (const eviction_policy policy : both) {
        fixture f(policy, 10);
        eviction_entry& weightless = f.insert(0);
        f.fill(100);
        f.machine.touch(weightless);
        f.machine.resize(0);
        f.evict();
        BOOST_TEST(weightless.is_tracked());
        BOOST_TEST(f.machine.size() == 1);
        BOOST_TEST(f.machine.weight() == 0);
        f.check();
    }
}

BOOST_AUTO_TEST_CASE(the_largest_weights_do_not_overflow)
{
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    for (const eviction_policy policy : both) {
        fixture f(policy, largest);
        BOOST_TEST(f.machine.max_weight() >= eviction_entry::max_weight);
        for (int i = 0; i != 20'000; ++i) {
            f.insert(largest);
            BOOST_TEST_REQUIRE(f.machine.weight() <= std::uint64_t(1) << 62);
        }
        f.evict();
        f.check();
        f.machine.resize(1);
        f.evict();
        BOOST_TEST(f.machine.size() == 0);
    }
}

BOOST_AUTO_TEST_CASE(a_heavy_entry_must_be_used_more_often_than_all_that_it_displaces)
{
    fixture f(eviction_policy::w_tiny_lfu, 100);
    f.fill(100);
    for (std::size_t i = 0; i != 100; ++i)
        f.machine.touch(f.entries[i]);
    eviction_entry& heavy = f.insert(50);
    BOOST_TEST(f.evict() == hashes({100}), boost::test_tools::per_element());
    BOOST_TEST(!heavy.is_tracked());
    f.check();
}

BOOST_AUTO_TEST_CASE(a_changed_weight_is_not_a_use)
{
    for (const eviction_policy policy : both) {
        fixture f(policy, 10);
        f.fill(10);
        f.machine.reweigh(f.entries[4], 3);
        BOOST_TEST(f.machine.weight() == 12);
        f.evict();
        f.check();
        f.machine.reweigh(f.entries[9], 0);
        f.machine.reweigh(f.entries[9], 1);
        f.evict();
        f.check();
        eviction_entry& last = f.insert();
        f.machine.reweigh(last, 1000);
        BOOST_TEST(f.machine.next_victim() == &last);
        f.evict();
        f.check();
    }
}

BOOST_AUTO_TEST_CASE(an_entry_keeps_its_place_when_its_weight_changes)
{
    fixture f(eviction_policy::lru, 4);
    for (int i = 0; i != 3; ++i)
        f.insert();
    f.machine.reweigh(f.entries[0], 3);
    f.machine.reweigh(f.entries[1], 2);
    BOOST_TEST(f.evict() == hashes({0}), boost::test_tools::per_element());
    BOOST_TEST(f.machine.weight() == 3);
    f.check();
}

BOOST_AUTO_TEST_CASE(a_smaller_maximum_evicts_and_a_larger_one_makes_room)
{
    for (const eviction_policy policy : both) {
        fixture f(policy, 1000);
        f.fill(1500);
        f.machine.resize(100);
        BOOST_TEST(f.evict().size() == 900);
        BOOST_TEST(f.machine.weight() == 100);
        f.check();
        f.machine.resize(200);
        f.fill(100);
        BOOST_TEST(f.machine.weight() == 200);
        f.check();
        f.machine.resize(0);
        f.evict();
        BOOST_TEST(f.machine.size() == 0);
        f.insert();
        BOOST_TEST(f.evict().size() == 1);
    }
}

BOOST_AUTO_TEST_CASE(clear_passes_each_entry_once)
{
    for (const eviction_policy policy : both) {
        fixture f(policy, 10);
        f.insert(0);
        f.fill(10);
        f.machine.touch(f.entries[5]);
        f.insert(20);
        const std::size_t size = f.machine.size();
        std::size_t cleared = 0;
        f.machine.clear([&](eviction_entry& e) noexcept {
            BOOST_TEST(!e.is_tracked());
            ++cleared;
        });
        BOOST_TEST(cleared == size);
        BOOST_TEST(f.machine.size() == 0);
        BOOST_TEST(f.machine.weight() == 0);
        f.fill(20);
        f.check();
    }
}

// All functions in random order, with entries in every segment and weights of every kind.
BOOST_AUTO_TEST_CASE(weights_and_sizes_agree_after_any_sequence_of_calls)
{
    kit::for_each_seed(20, [](std::uint64_t seed) {
        for (const eviction_policy policy : both) {
            random_source random(seed);
            fixture f(policy, 1 + random.next() % 300);
            const auto weight = [&] { return random.next() % 20 == 0 ? 400 : random.next() % 5; };
            for (int step = 0; step != 5000; ++step) {
                const std::uint64_t what = random.next() % 100;
                eviction_entry* e = nullptr;
                if (!f.entries.empty()) {
                    const std::size_t back =
                        random.next() % std::min<std::size_t>(f.entries.size(), 200);
                    e = &f.entries[f.entries.size() - 1 - back];
                }
                if (what < 40 || !e)
                    f.insert(weight());
                else if (what < 80 && e->is_tracked())
                    f.machine.touch(*e);
                else if (what < 88 && e->is_tracked())
                    f.machine.reweigh(*e, weight());
                else if (what < 96 && e->is_tracked())
                    f.machine.erase(*e);
                else if (what < 98)
                    f.machine.record_miss(e->hash());
                else
                    f.machine.resize(random.next() % 300);
                f.evict();
            }
            f.check();
        }
    });
}

BOOST_AUTO_TEST_CASE(equal_seeds_give_equal_victims)
{
    std::vector<hashes> victims;
    for (int run = 0; run != 2; ++run) {
        fixture f(eviction_policy::w_tiny_lfu, 50);
        random_source random(3);
        hashes& all = victims.emplace_back();
        for (int i = 0; i != 2000; ++i) {
            eviction_entry& e = f.insert();
            for (std::uint64_t hits = random.next() % 8; hits != 0; --hits)
                f.machine.touch(e);
            const hashes some = f.evict();
            all.insert(all.end(), some.begin(), some.end());
        }
    }
    BOOST_TEST(victims[0] == victims[1], boost::test_tools::per_element());
    BOOST_TEST(victims[0].size() == 1950);
}

// An attacker who knows the seed could make every key look as frequent as the hottest ones.
BOOST_AUTO_TEST_CASE(entries_with_the_largest_frequency_do_not_stay_forever)
{
    fixture f(eviction_policy::w_tiny_lfu, 100);
    for (int i = 0; i != 100; ++i) {
        eviction_entry& e = f.insert();
        for (int hits = 0; hits != 15; ++hits)
            f.machine.touch(e);
    }
    f.evict();
    std::size_t displaced = 0;
    // Fewer accesses than make the frequencies age.
    for (int i = 0; i != 1000; ++i) {
        eviction_entry& e = f.insert();
        for (int hits = 0; hits != 15; ++hits)
            f.machine.touch(e);
        for (const std::uint64_t hash : f.evict())
            displaced += hash < 100 ? 1 : 0;
    }
    BOOST_TEST(displaced > 0);
}

BOOST_AUTO_TEST_CASE(the_window_grows_for_recency_and_shrinks_for_loops)
{
    fixture f(eviction_policy::w_tiny_lfu, 200);
    const std::uint64_t smallest = f.machine.max_window();
    BOOST_TEST(smallest == 2);
    random_source random(5);
    // Every third access is of a new key, the others are of one of the last 150 keys.
    for (int i = 0; i != 20'000; ++i) {
        if (i % 3 == 0 || f.entries.size() < 150) {
            f.insert();
        } else {
            eviction_entry& e = f.entries[f.entries.size() - 1 - random.next() % 150];
            e.is_tracked() ? f.machine.touch(e) : f.machine.insert(e);
        }
        f.evict();
    }
    BOOST_TEST(f.machine.max_window() > 50);
    f.check();

    std::deque<eviction_entry> loop;
    for (std::uint64_t i = 0; i != 250; ++i)
        loop.emplace_back(1'000'000 + i, 1);
    for (int round = 0; round != 100; ++round) {
        for (eviction_entry& e : loop) {
            e.is_tracked() ? f.machine.touch(e) : f.machine.insert(e);
            f.evict();
        }
    }
    BOOST_TEST(f.machine.max_window() < 20);
    f.machine.clear([](eviction_entry&) noexcept {});
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
