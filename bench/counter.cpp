// SPDX-License-Identifier: BSL-1.0
// A counter with many waiters, each with a threshold of its own; and a latch.
#include "support/counters.hpp"
#include "support/enroll.hpp"

namespace bench {
namespace {

// A competitor that wakes all waiters gets fewer changes.
template <class Counter, bool WakesAll>
void enroll_as(const std::string& competitor)
{
    enroll("counter_1/" + competitor, [](meter& m) {
        return reach<Counter>(m, {.counters = 256, .waiters = 1, .batch = 256, .rounds = 20});
    });
    enroll("counter_1000/" + competitor, [](meter& m) {
        return reach<Counter>(
            m, {.waiters = 1000, .batch = WakesAll ? 16 : 256, .rounds = WakesAll ? 1 : 20});
    });
    enroll("counter_100000/" + competitor, [](meter& m) {
        return reach<Counter>(
            m, {.waiters = 100'000, .batch = WakesAll ? 1 : 256, .rounds = WakesAll ? 1 : 20});
    });
}

template <class Latch>
void enroll_latch(const std::string& competitor)
{
    enroll("latch/" + competitor, [](meter& m) { return countdown<Latch>(m, 100, 50); });
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_as<turnstile_counter<turnstile::counter>, false>("ours");
    enroll_as<turnstile_counter<turnstile::local::counter>, false>("local");
    enroll_as<timer_counter, true>("timer");

    enroll_latch<turnstile_latch<turnstile::latch>>("ours");
    enroll_latch<turnstile_latch<turnstile::local::latch>>("local");
    enroll_latch<channel_latch<channel>>("channel");
    enroll_latch<channel_latch<concurrent_channel>>("concurrent_channel");
    enroll_latch<timer_latch>("timer");
    return true;
}();

} // namespace
} // namespace bench
