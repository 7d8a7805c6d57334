// SPDX-License-Identifier: BSL-1.0
// 100 coroutines lock one mutex, and yield while they hold it.
#include "support/enroll.hpp"
#include "support/workloads.hpp"

namespace bench {
namespace {

template <class Gate>
void enroll_as(const std::string& name, int threads)
{
    const crowd size{.permits = 1, .times = 500, .threads = threads};
    enroll(
        name, [=](meter& m) { return contended<Gate>(m, size); }, threads);
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_as<turnstile_mutex<turnstile::mutex>>("mutex/ours", 1);
    enroll_as<turnstile_mutex<turnstile::local::mutex>>("mutex/local", 1);
    enroll_as<channel_gate<channel>>("mutex/channel", 1);
    enroll_as<channel_gate<concurrent_channel>>("mutex/concurrent_channel", 1);
    enroll_as<timer_gate>("mutex/timer", 1);

    enroll_as<turnstile_mutex<turnstile::mutex>>("mutex_2_threads/ours", 2);
    enroll_as<channel_gate<concurrent_channel>>("mutex_2_threads/concurrent_channel", 2);
    return true;
}();

} // namespace
} // namespace bench
