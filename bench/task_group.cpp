// SPDX-License-Identifier: BSL-1.0
// The children of a group, beside a bare co_spawn; and a million children under a limit, beside a
// semaphore and co_spawn.
#include "support/children.hpp"
#include "support/enroll.hpp"

namespace bench {
namespace {

template <class Spawner>
void enroll_spawner(const std::string& competitor)
{
    enroll("child/" + competitor, [](meter& m) { return spawn_children<Spawner>(m, 20'000, 0); });
    enroll("child_yields/" + competitor,
           [](meter& m) { return spawn_children<Spawner>(m, 20'000, 1); });
}

template <class Limited>
void enroll_limited(const std::string& competitor)
{
    enroll("limited_children/" + competitor,
           [](meter& m) { return spawn_limited<Limited>(m, 1'000'000); });
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_spawner<group_spawner<turnstile::task_group<>>>("ours");
    enroll_spawner<group_spawner<turnstile::local::task_group<>>>("local");
    enroll_spawner<bare_spawner>("by_hand");
    enroll_spawner<strand_spawner>("on_strand");
    enroll_limited<limited_group<turnstile::task_group<>>>("ours");
    enroll_limited<limited_group<turnstile::local::task_group<>>>("local");
    enroll_limited<semaphore_and_spawn>("by_hand");
    return true;
}();

} // namespace
} // namespace bench
