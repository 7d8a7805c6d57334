// SPDX-License-Identifier: BSL-1.0
// The workloads with sizes for counting: `n` operations on one thread.
#pragma once

#include "../support/barriers.hpp"
#include "../support/breakers.hpp"
#include "../support/cancelled_waits.hpp"
#include "../support/coroutine_calls.hpp"
#include "../support/counters.hpp"
#include "../support/fanout_workloads.hpp"
#include "../support/meter.hpp"
#include "../support/queues.hpp"
#include "../support/shared_gates.hpp"
#include "../support/timeouts.hpp"
#include "../support/turns.hpp"
#include "../support/workloads.hpp"
#include "workload.hpp"

#include <cstddef>
#include <cstdint>

namespace bench {

inline no_meter unmeasured;

template <class Gate>
bool lock(std::int64_t n)
{
    return uncontended<Gate>(unmeasured, n);
}

template <class Gate, std::size_t Permits = 1>
bool crowded(std::int64_t n)
{
    return contended<Gate>(unmeasured, {.permits = Permits, .times = n / 100});
}

// The workload adds a first round, which is not measured elsewhere, to `rounds`.
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

template <class Condition, class Mutex, std::size_t Others>
bool cancel_notified(std::int64_t n)
{
    return cancel_waits<Condition, Mutex>(Others, n);
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

} // namespace bench
