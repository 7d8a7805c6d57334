// SPDX-License-Identifier: BSL-1.0
// 100 parties meet at a barrier: the time for each arrival.
#include "support/barriers.hpp"
#include "support/enroll.hpp"

namespace bench {
namespace {

template <class Barrier, class Int = std::int64_t>
void enroll_as(const std::string& name, int threads = 1)
{
    enroll(
        name, [=](meter& m) { return meet<Barrier, Int>(m, 100, 500, threads); }, threads);
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_as<turnstile_barrier<turnstile::barrier>>("barrier/ours");
    enroll_as<turnstile_barrier<turnstile::local::barrier>>("barrier/local");
    enroll_as<timer_barrier>("barrier/timer");

    using shared = std::atomic<std::int64_t>;
    enroll_as<turnstile_barrier<turnstile::barrier>, shared>("barrier_2_threads/ours", 2);
    enroll_as<locked_timer_barrier, shared>("barrier_2_threads/timer", 2);
    return true;
}();

} // namespace
} // namespace bench
