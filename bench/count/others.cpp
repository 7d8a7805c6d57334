// SPDX-License-Identifier: BSL-1.0
// The workloads of the competitors, and the floors.
#include "counted.hpp"

namespace bench {
namespace {

bool nested_call(std::int64_t n) { return loop(unmeasured, n, &empty_coroutine); }

bool post(std::int64_t n)
{
    return loop(unmeasured, n, [] { return asio::post(asio::use_awaitable); });
}

constexpr workload workloads[] = {
    {"timer_timeout", &limit<timer_by_hand>},
    {"posted_operation", &limit<no_limit>},
    {"coroutine", &limit<direct_coroutine>},
    {"spawned_coroutine", &limit<spawned_coroutine>},
    {"hand_breaker", &pass_circuit<hand_made_breaker>},
    {"channel_lock", &lock<channel_gate<channel>>},
    {"channel_contended", &crowded<channel_gate<channel>>},
    {"channel_semaphore", &crowded<channel_gate<channel>, 10>},
    {"channel_event", &wake<channel_event<channel>>},
    {"timer_event", &wake<timer_event>},
    {"channel_cancel", &cancel_some<channel_event<channel>>},
    {"channel_read_mostly", &crowd_of_readers<channel_read_write<channel>>},
    {"channel_turns", &alternate<channel_turns<channel>>},
    {"timer_turns", &alternate<timer_turns>},
    {"timer_barrier", &meet_100<timer_barrier>},
    {"channel_fanout", &fan_out_to_100<channel_for_each<int_channel>>},
    {"timer_watch", &fan_out_to_100<timer_watch>},
    {"channel_oneshot", &once<channel_once<int_channel>>},
    {"channel_queue", &through_queue<channel_queue<item_channel>>},
    {"channel_queue_4_to_4", &through_queue<channel_queue<item_channel>, 4>},
    {"nested_call", &nested_call},
    {"post", &post},
};

} // namespace

std::span<const workload> workloads_of_others() { return workloads; }

} // namespace bench
