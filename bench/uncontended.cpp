// SPDX-License-Identifier: BSL-1.0
// One coroutine acquires and releases, without another user; in a process that has never had a
// second thread, and in a process that has.
#include "support/enroll.hpp"
#include "support/shared_gates.hpp"
#include "support/workloads.hpp"

namespace bench {
namespace {

constexpr std::int64_t times = 50'000;

template <class Gate>
void enroll_gate(const std::string& workload, const std::string& competitor, std::size_t permits)
{
    enroll(workload + "/" + competitor,
           [=](meter& m) { return uncontended<Gate>(m, times, permits); });
}

template <class Ours, class Local>
void enroll_all(const std::string& workload, std::size_t permits)
{
    enroll_gate<Ours>(workload, "ours", permits);
    enroll_gate<Local>(workload, "local", permits);
    enroll_gate<channel_gate<channel>>(workload, "channel", permits);
    enroll_gate<channel_gate<concurrent_channel>>(workload, "concurrent_channel", permits);
    enroll_gate<timer_gate>(workload, "timer", permits);
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_all<turnstile_mutex<turnstile::mutex>, turnstile_mutex<turnstile::local::mutex>>("lock",
                                                                                            1);
    enroll_all<turnstile_semaphore<turnstile::semaphore>,
               turnstile_semaphore<turnstile::local::semaphore>>("acquire", 10);
    enroll_all<turnstile_reader<turnstile::shared_mutex>,
               turnstile_reader<turnstile::local::shared_mutex>>("read", 1000);
    return true;
}();

} // namespace
} // namespace bench
