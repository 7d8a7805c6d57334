// SPDX-License-Identifier: BSL-1.0
// One event wakes many coroutines: the time for each coroutine.
#include "support/enroll.hpp"
#include "support/workloads.hpp"

namespace bench {
namespace {

template <class Event>
void enroll_as(const std::string& competitor)
{
    enroll("broadcast_1000/" + competitor, [](meter& m) { return broadcast<Event>(m, 1000, 20); });
    enroll("broadcast_100000/" + competitor,
           [](meter& m) { return broadcast<Event>(m, 100'000, 1); });
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_as<turnstile_event<turnstile::event>>("ours");
    enroll_as<turnstile_event<turnstile::local::event>>("local");
    enroll_as<channel_event<channel>>("channel");
    enroll_as<channel_event<concurrent_channel>>("concurrent_channel");
    enroll_as<timer_event>("timer");
    return true;
}();

} // namespace
} // namespace bench
