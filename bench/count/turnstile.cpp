// SPDX-License-Identifier: BSL-1.0
// The workloads of Turnstile.
#include "counted.hpp"

#include <turnstile/sync/auto_reset_event.hpp>

namespace bench {
namespace {

constexpr workload workloads[] = {
    {"timeout", &limit<timeout_after>},
    {"retry", &limit<first_attempt>},
    {"timeout_coroutine", &limit<limited_coroutine>},
    {"retry_coroutine", &limit<coroutine_through<turnstile::retry>>},
    {"breaker_coroutine", &limit<coroutine_through<turnstile::circuit_breaker>>},
    {"bulkhead_coroutine", &limit<coroutine_through<turnstile::bulkhead>>},
    {"pipeline_of_4", &limit<coroutine_through_pipeline<&four_stages>>},
    {"pipeline_of_6", &limit<coroutine_through_pipeline<&six_stages>>},
    {"breaker", &pass_circuit<turnstile_breaker<turnstile::circuit_breaker, in_a_row>>},
    {"breaker_count", &pass_circuit<turnstile_breaker<turnstile::circuit_breaker, last_hundred>>},
    {"bulkhead", &lock<turnstile_bulkhead<turnstile::bulkhead>>},
    {"lock", &lock<turnstile_mutex<turnstile::mutex>>},
    {"lock_local", &lock<turnstile_mutex<turnstile::local::mutex>>},
    {"contended", &crowded<turnstile_mutex<turnstile::mutex>>},
    {"contended_local", &crowded<turnstile_mutex<turnstile::local::mutex>>},
    {"acquire", &lock<turnstile_semaphore<turnstile::semaphore>>},
    {"acquire_local", &lock<turnstile_semaphore<turnstile::local::semaphore>>},
    {"semaphore", &crowded<turnstile_semaphore<turnstile::semaphore>, 10>},
    {"event", &wake<turnstile_event<turnstile::event>>},
    {"event_local", &wake<turnstile_event<turnstile::local::event>>},
    {"cancel", &cancel_some<turnstile_event<turnstile::event>>},
    {"cancel_permit", &cancel_some<turnstile_event<turnstile::auto_reset_event>>},
    {"cancel_permit_of_1000", &cancel_some<turnstile_event<turnstile::auto_reset_event>, 1000>},
    {"cancel_of_1000", &cancel_some<turnstile_event<turnstile::event>, 1000>},
    {"cancel_condition", &cancel_notified<turnstile::condition, turnstile::mutex, 100>},
    {"cancel_condition_of_1000", &cancel_notified<turnstile::condition, turnstile::mutex, 1000>},
    {"read", &lock<turnstile_reader<turnstile::shared_mutex>>},
    {"read_local", &lock<turnstile_reader<turnstile::local::shared_mutex>>},
    {"read_mostly", &crowd_of_readers<turnstile_read_write<turnstile::shared_mutex>>},
    {"turns", &alternate<condition_turns<turnstile::condition, turnstile::mutex>>},
    {"barrier", &meet_100<turnstile_barrier<turnstile::barrier>>},
    {"barrier_local", &meet_100<turnstile_barrier<turnstile::local::barrier>>},
    {"counter", &reach_one_of_1000<turnstile_counter<turnstile::counter>>},
    {"fanout", &fan_out_to_100<turnstile_broadcast<turnstile::broadcast<int>>>},
    {"fanout_local", &fan_out_to_100<turnstile_broadcast<turnstile::local::broadcast<int>>>},
    {"watch", &fan_out_to_100<turnstile_watch<turnstile::watch<int>>>},
    {"watch_local", &fan_out_to_100<turnstile_watch<turnstile::local::watch<int>>>},
    {"oneshot", &once<turnstile_once<turnstile::oneshot<int>>>},
    {"queue", &through_queue<turnstile_queue<turnstile::queue<std::int64_t>>>},
    {"queue_local", &through_queue<turnstile_queue<turnstile::local::queue<std::int64_t>>>},
    {"queue_4_to_4", &through_queue<turnstile_queue<turnstile::queue<std::int64_t>>, 4>},
};

} // namespace

std::span<const workload> workloads_of_turnstile() { return workloads; }

} // namespace bench
