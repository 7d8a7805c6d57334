// SPDX-License-Identifier: BSL-1.0
// Two coroutines that take turns.
#include "support/enroll.hpp"
#include "support/turns.hpp"

namespace bench {
namespace {

template <class Turns>
void enroll_as(const std::string& name)
{
    enroll(name, [](meter& m) { return take_turns<Turns>(m, 50'000); });
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_as<condition_turns<turnstile::condition, turnstile::mutex>>("turns/ours");
    enroll_as<condition_turns<turnstile::local::condition, turnstile::local::mutex>>("turns/local");
    enroll_as<channel_turns<channel>>("turns/channel");
    enroll_as<channel_turns<concurrent_channel>>("turns/concurrent_channel");
    enroll_as<timer_turns>("turns/timer");
    return true;
}();

} // namespace
} // namespace bench
