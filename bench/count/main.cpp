// Runs one workload so many times on one thread, for valgrind to count the instructions:
// count <workload> <n>. See bench/instructions.
#include "support/barriers.hpp"
#include "support/breakers.hpp"
#include "support/counters.hpp"
#include "support/fanout_workloads.hpp"
#include "support/meter.hpp"
#include "support/queues.hpp"
#include "support/shared_gates.hpp"
#include "support/timeouts.hpp"
#include "support/turns.hpp"
#include "support/workloads.hpp"

#include <cstdlib>
#include <iostream>
#include <string_view>

namespace bench {
namespace {

no_meter unmeasured;

template <class Gate>
bool lock(std::int64_t n)
{
    return uncontended<Gate>(unmeasured, n);
}

template <bool (*Workload)(std::int64_t)>
bool among_threads(std::int64_t n)
{
    have_had_threads();
    return Workload(n);
}

template <class Gate, std::size_t Permits = 1>
bool crowded(std::int64_t n)
{
    return contended<Gate>(unmeasured, {.permits = Permits, .times = n / 100});
}

// With no rounds there is a first one all the same.
template <class Event>
bool wake(std::int64_t n)
{
    return broadcast<Event>(unmeasured, 100, static_cast<int>(n / 100) - 1);
}

template <class Event, std::size_t Waiters = 100>
bool cancel_some(std::int64_t n)
{
    return cancel<Event>(unmeasured,
                         {.waiters = Waiters, .batch = 50, .rounds = static_cast<int>(n / 50) - 1});
}

template <class Lock>
bool crowd_of_readers(std::int64_t n)
{
    return read_mostly<Lock>(unmeasured, n / 100);
}

template <class Turns>
bool alternate(std::int64_t n)
{
    return take_turns<Turns>(unmeasured, n);
}

template <class Barrier>
bool meet_100(std::int64_t n)
{
    return meet<Barrier>(unmeasured, 100, n / 100);
}

template <class Counter>
bool reach_one_of_1000(std::int64_t n)
{
    return reach<Counter>(unmeasured,
                          {.waiters = 1000, .batch = 50, .rounds = static_cast<int>(n / 50) - 1});
}

template <class Fanout>
bool fan_out_to_100(std::int64_t n)
{
    return fan_out<Fanout>(unmeasured, 100, static_cast<int>(n / 100));
}

template <class Once>
bool once(std::int64_t n)
{
    return hand_over_once<Once>(unmeasured, static_cast<int>(n));
}

template <class Queue, std::int64_t Sides = 1>
bool through_queue(std::int64_t n)
{
    return transfer<Queue>(unmeasured, {.sides = Sides, .items = n / Sides});
}

bool nested_call(std::int64_t n) { return loop(unmeasured, n, &empty_coroutine); }

bool post(std::int64_t n)
{
    return loop(unmeasured, n, [] { return asio::post(asio::use_awaitable); });
}

template <class Breaker>
bool pass_circuit(std::int64_t n)
{
    return permits<Breaker>(unmeasured, n);
}

template <class Limit>
bool limit(std::int64_t n)
{
    return calls<Limit>(unmeasured, n);
}

struct workload {
    std::string_view name;
    bool (*run)(std::int64_t n);
};

constexpr workload workloads[] = {
    {"timeout", &limit<timeout_after>},
    {"timer_timeout", &limit<timer_by_hand>},
    {"retry", &limit<first_attempt>},
    {"breaker", &pass_circuit<turnstile_breaker<turnstile::circuit_breaker, in_a_row>>},
    {"breaker_count", &pass_circuit<turnstile_breaker<turnstile::circuit_breaker, last_hundred>>},
    {"hand_breaker", &pass_circuit<hand_made_breaker>},
    {"bulkhead", &lock<turnstile_bulkhead<turnstile::bulkhead>>},
    {"lock", &lock<turnstile_mutex<turnstile::mutex>>},
    {"lock_among_threads", &among_threads<&lock<turnstile_mutex<turnstile::mutex>>>},
    {"lock_local", &lock<turnstile_mutex<turnstile::local::mutex>>},
    {"channel_lock", &lock<channel_gate<channel>>},
    {"contended", &crowded<turnstile_mutex<turnstile::mutex>>},
    {"contended_among_threads", &among_threads<&crowded<turnstile_mutex<turnstile::mutex>>>},
    {"contended_local", &crowded<turnstile_mutex<turnstile::local::mutex>>},
    {"channel_contended", &crowded<channel_gate<channel>>},
    {"semaphore", &crowded<turnstile_semaphore<turnstile::semaphore>, 10>},
    {"channel_semaphore", &crowded<channel_gate<channel>, 10>},
    {"event", &wake<turnstile_event<turnstile::event>>},
    {"event_local", &wake<turnstile_event<turnstile::local::event>>},
    {"channel_event", &wake<channel_event<channel>>},
    {"timer_event", &wake<timer_event>},
    {"cancel", &cancel_some<turnstile_event<turnstile::event>>},
    {"cancel_of_1000", &cancel_some<turnstile_event<turnstile::event>, 1000>},
    {"channel_cancel", &cancel_some<channel_event<channel>>},
    {"read", &lock<turnstile_reader<turnstile::shared_mutex>>},
    {"read_among_threads", &among_threads<&lock<turnstile_reader<turnstile::shared_mutex>>>},
    {"read_local", &lock<turnstile_reader<turnstile::local::shared_mutex>>},
    {"read_mostly", &crowd_of_readers<turnstile_read_write<turnstile::shared_mutex>>},
    {"channel_read_mostly", &crowd_of_readers<channel_read_write<channel>>},
    {"turns", &alternate<condition_turns<turnstile::condition, turnstile::mutex>>},
    {"channel_turns", &alternate<channel_turns<channel>>},
    {"timer_turns", &alternate<timer_turns>},
    {"barrier", &meet_100<turnstile_barrier<turnstile::barrier>>},
    {"barrier_local", &meet_100<turnstile_barrier<turnstile::local::barrier>>},
    {"timer_barrier", &meet_100<timer_barrier>},
    {"counter", &reach_one_of_1000<turnstile_counter<turnstile::counter>>},
    {"fanout", &fan_out_to_100<turnstile_broadcast<turnstile::broadcast<int>>>},
    {"fanout_local", &fan_out_to_100<turnstile_broadcast<turnstile::local::broadcast<int>>>},
    {"channel_fanout", &fan_out_to_100<channel_for_each<int_channel>>},
    {"watch", &fan_out_to_100<turnstile_watch<turnstile::watch<int>>>},
    {"watch_local", &fan_out_to_100<turnstile_watch<turnstile::local::watch<int>>>},
    {"timer_watch", &fan_out_to_100<timer_watch>},
    {"oneshot", &once<turnstile_once<turnstile::oneshot<int>>>},
    {"channel_oneshot", &once<channel_once<int_channel>>},
    {"queue", &through_queue<turnstile_queue<turnstile::queue<std::int64_t>>>},
    {"queue_among_threads",
     &among_threads<&through_queue<turnstile_queue<turnstile::queue<std::int64_t>>>>},
    {"queue_local", &through_queue<turnstile_queue<turnstile::local::queue<std::int64_t>>>},
    {"queue_4_to_4", &through_queue<turnstile_queue<turnstile::queue<std::int64_t>>, 4>},
    {"channel_queue", &through_queue<channel_queue<item_channel>>},
    {"channel_queue_4_to_4", &through_queue<channel_queue<item_channel>, 4>},
    {"nested_call", &nested_call},
    {"post", &post},
};

int list()
{
    for (const workload& w : workloads)
        std::cout << w.name << '\n';
    return EXIT_SUCCESS;
}

int run(std::string_view name, std::int64_t n)
{
    for (const workload& w : workloads) {
        if (w.name != name)
            continue;
        if (w.run(n))
            return EXIT_SUCCESS;
        std::cerr << name << ": wrong result\n";
        return EXIT_FAILURE;
    }
    std::cerr << "there is no workload " << name << "; see --list\n";
    return EXIT_FAILURE;
}

} // namespace
} // namespace bench

int main(int argc, char** argv)
{
    if (argc == 2 && argv[1] == std::string_view("--list"))
        return bench::list();
    if (argc == 3)
        return bench::run(argv[1], std::strtoll(argv[2], nullptr, 10));
    std::cerr << "usage: count --list, or count <workload> <n>, n a multiple of 100\n";
    return EXIT_FAILURE;
}
