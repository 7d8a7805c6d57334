// SPDX-License-Identifier: BSL-1.0
// The competitors of the work layer.
#include "../support/bound_operations.hpp"
#include "../support/caches.hpp"
#include "../support/children.hpp"
#include "../support/meter.hpp"
#include "../support/races.hpp"
#include "workload.hpp"

namespace bench {
namespace {

constexpr no_meter unmeasured;

template <class First, readiness Ready>
bool first_of_two(std::int64_t n)
{
    return take_first<First>(unmeasured, n, Ready);
}

template <class Spawner>
bool children(std::int64_t n)
{
    return spawn_children<Spawner>(unmeasured, n, 1);
}

bool unbound(std::int64_t n) { return calls<unbound_call>(unmeasured, n); }

bool both_operators(std::int64_t n) { return run_both<both_awaitables>(unmeasured, n); }

bool hit_by_hand(std::int64_t n) { return hit<locked_lru>(unmeasured, n, 1); }

constexpr workload workloads[] = {
    {"or_ready", &first_of_two<either_awaitable, readiness::at_once>},
    {"or_wait", &first_of_two<either_awaitable, readiness::later>},
    {"and", &both_operators},
    {"unbound", &unbound},
    {"bare_child", &children<bare_spawner>},
    {"strand_child", &children<strand_spawner>},
    {"hand_cache_hit", &hit_by_hand},
};

} // namespace

std::span<const workload> workloads_of_work_others() { return workloads; }

} // namespace bench
