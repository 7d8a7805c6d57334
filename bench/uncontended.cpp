// One coroutine acquires and releases, with nobody else there.
#include "support/enroll.hpp"
#include "support/workloads.hpp"

namespace bench {
namespace {

constexpr std::int64_t times = 50'000;

template <class Gate>
void enroll_as(const std::string& name, std::size_t permits)
{
    enroll(name, [=](meter& m) { return uncontended<Gate>(m, times, permits); });
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_as<turnstile_mutex<turnstile::mutex>>("lock/ours", 1);
    enroll_as<turnstile_mutex<turnstile::local::mutex>>("lock/local", 1);
    enroll_as<channel_gate<channel>>("lock/channel", 1);
    enroll_as<channel_gate<concurrent_channel>>("lock/concurrent_channel", 1);
    enroll_as<timer_gate>("lock/timer", 1);

    enroll_as<turnstile_semaphore<turnstile::semaphore>>("acquire/ours", 10);
    enroll_as<turnstile_semaphore<turnstile::local::semaphore>>("acquire/local", 10);
    enroll_as<channel_gate<channel>>("acquire/channel", 10);
    enroll_as<channel_gate<concurrent_channel>>("acquire/concurrent_channel", 10);
    enroll_as<timer_gate>("acquire/timer", 10);
    return true;
}();

} // namespace
} // namespace bench
