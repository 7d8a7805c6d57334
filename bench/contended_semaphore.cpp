// SPDX-License-Identifier: BSL-1.0
// 100 coroutines acquire one of 10 permits, and yield while they hold it.
#include "support/enroll.hpp"
#include "support/workloads.hpp"

#include <atomic>

namespace bench {
namespace {

template <class Gate, class Int = std::int64_t>
void enroll_as(const std::string& name, int threads = 1)
{
    const crowd size{.permits = 10, .times = 500, .threads = threads};
    enroll(
        name, [=](meter& m) { return contended<Gate, Int>(m, size); }, threads);
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_as<turnstile_semaphore<turnstile::semaphore>>("semaphore/ours");
    enroll_as<turnstile_semaphore<turnstile::local::semaphore>>("semaphore/local");
    enroll_as<channel_gate<channel>>("semaphore/channel");
    enroll_as<channel_gate<concurrent_channel>>("semaphore/concurrent_channel");
    enroll_as<timer_gate>("semaphore/timer");

    using shared = std::atomic<std::int64_t>;
    enroll_as<turnstile_semaphore<turnstile::semaphore>, shared>("semaphore_2_threads/ours", 2);
    enroll_as<channel_gate<concurrent_channel>, shared>("semaphore_2_threads/concurrent_channel",
                                                        2);
    return true;
}();

} // namespace
} // namespace bench
