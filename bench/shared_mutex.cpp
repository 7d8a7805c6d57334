// SPDX-License-Identifier: BSL-1.0
// 100 coroutines, of which 10 are writers.
#include "support/enroll.hpp"
#include "support/shared_gates.hpp"
#include "support/workloads.hpp"

namespace bench {
namespace {

template <class Lock>
void enroll_crowd(const std::string& name)
{
    enroll(name, [](meter& m) { return read_mostly<Lock>(m, 500); });
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_crowd<turnstile_read_write<turnstile::shared_mutex>>("read_mostly/ours");
    enroll_crowd<turnstile_read_write<turnstile::local::shared_mutex>>("read_mostly/local");
    enroll_crowd<channel_read_write<channel>>("read_mostly/channel");
    enroll_crowd<channel_read_write<concurrent_channel>>("read_mostly/concurrent_channel");
    enroll_crowd<timer_read_write>("read_mostly/timer");
    return true;
}();

} // namespace
} // namespace bench
