// SPDX-License-Identifier: BSL-1.0
// The workloads of the work layer.
#include "../support/bound_operations.hpp"
#include "../support/caches.hpp"
#include "../support/children.hpp"
#include "../support/meter.hpp"
#include "../support/races.hpp"
#include "workload.hpp"

#include <cstdint>

namespace bench {
namespace {

constexpr no_meter unmeasured;

template <class First, readiness Ready>
bool first_of_two(std::int64_t n)
{
    return take_first<First>(unmeasured, n, Ready);
}

template <class Both>
bool both(std::int64_t n)
{
    return run_both<Both>(unmeasured, n);
}

template <class Call>
bool call(std::int64_t n)
{
    return calls<Call>(unmeasured, n);
}

template <class Spawner>
bool children(std::int64_t n)
{
    return spawn_children<Spawner>(unmeasured, n, 1);
}

template <class Cache>
bool cache_hit(std::int64_t n)
{
    return hit<turnstile_cache<Cache>>(unmeasured, n, 1);
}

constexpr workload workloads[] = {
    {"select_ready", &first_of_two<selected, readiness::at_once>},
    {"select_wait", &first_of_two<selected, readiness::later>},
    {"all", &both<all_of_both>},
    {"bind", &call<bound_call<turnstile::cancellation_source>>},
    {"child", &children<group_spawner<turnstile::task_group<>>>},
    {"child_local", &children<group_spawner<turnstile::local::task_group<>>>},
    {"cache_hit", &cache_hit<turnstile::cache<cache_key, std::uint64_t>>},
    {"cache_hit_local", &cache_hit<turnstile::local::cache<cache_key, std::uint64_t>>},
};

} // namespace

std::span<const workload> workloads_of_work() { return workloads; }

} // namespace bench
