// SPDX-License-Identifier: BSL-1.0
// Cancels one waiter among many.
#include "support/enroll.hpp"
#include "support/workloads.hpp"

namespace bench {
namespace {

// A competitor that searches the queue for the cancelled waiter gets fewer rounds.
template <class Event, bool Searches>
void enroll_as(const std::string& competitor)
{
    enroll("cancel_1/" + competitor, [](meter& m) {
        return cancel<Event>(m, {.events = 256, .waiters = 1, .batch = 256, .rounds = 20});
    });
    enroll("cancel_1000/" + competitor, [](meter& m) {
        return cancel<Event>(m, {.waiters = 1000, .batch = 256, .rounds = Searches ? 4 : 20});
    });
    enroll("cancel_100000/" + competitor, [](meter& m) {
        return cancel<Event>(
            m, {.waiters = 100'000, .batch = Searches ? 8 : 256, .rounds = Searches ? 1 : 20});
    });
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_as<turnstile_event<turnstile::event>, false>("ours");
    enroll_as<turnstile_event<turnstile::local::event>, false>("local");
    enroll_as<channel_event<channel>, true>("channel");
    enroll_as<channel_event<concurrent_channel>, true>("concurrent_channel");
    enroll_as<timer_event, true>("timer");
    return true;
}();

} // namespace
} // namespace bench
