// SPDX-License-Identifier: BSL-1.0
// Broadcast, watch and oneshot: the time for each received value.
#include "support/enroll.hpp"
#include "support/fanout_workloads.hpp"

namespace bench {
namespace {

template <class Fanout>
void enroll_fan_out(const std::string& name)
{
    enroll(name, [](meter& m) { return fan_out<Fanout>(m, 100, 200); });
}

template <class Once>
void enroll_once(const std::string& competitor)
{
    enroll("oneshot/" + competitor, [](meter& m) { return hand_over_once<Once>(m, 20'000); });
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_fan_out<turnstile_broadcast<turnstile::broadcast<int>>>("fanout_100/ours");
    enroll_fan_out<turnstile_broadcast<turnstile::local::broadcast<int>>>("fanout_100/local");
    enroll_fan_out<channel_for_each<int_channel>>("fanout_100/channel");
    enroll_fan_out<channel_for_each<concurrent_int_channel>>("fanout_100/concurrent_channel");

    enroll_fan_out<turnstile_watch<turnstile::watch<int>>>("watch_100/ours");
    enroll_fan_out<turnstile_watch<turnstile::local::watch<int>>>("watch_100/local");
    enroll_fan_out<channel_for_each<int_channel>>("watch_100/channel");
    enroll_fan_out<channel_for_each<concurrent_int_channel>>("watch_100/concurrent_channel");
    enroll_fan_out<timer_watch>("watch_100/timer");

    enroll_once<turnstile_once<turnstile::oneshot<int>>>("ours");
    enroll_once<turnstile_once<turnstile::local::oneshot<int>>>("local");
    enroll_once<channel_once<int_channel>>("channel");
    enroll_once<channel_once<concurrent_int_channel>>("concurrent_channel");
    return true;
}();

} // namespace
} // namespace bench
