// SPDX-License-Identifier: BSL-1.0
// Calls through a closed circuit, and through a bulkhead with free permits.
#include "support/breakers.hpp"
#include "support/enroll.hpp"

namespace bench {
namespace {

constexpr std::int64_t times = 50'000;

template <class Breaker>
void enroll_permits(const std::string& name)
{
    enroll(name, [](meter& m) { return permits<Breaker>(m, times * 10); });
}

template <class Calls>
void enroll_calls(const std::string& name)
{
    enroll(name, [](meter& m) { return calls<Calls>(m, times); });
}

template <class Gate>
void enroll_gate(const std::string& name)
{
    enroll("bulkhead/" + name, [](meter& m) { return uncontended<Gate>(m, times, 10); });
    enroll("bulkhead_contended/" + name,
           [](meter& m) { return contended<Gate>(m, {.permits = 10, .times = 200}); });
}

template <class Window>
void enroll_window(const std::string& name)
{
    enroll_permits<turnstile_breaker<turnstile::circuit_breaker, Window>>(name + "/ours");
    enroll_permits<turnstile_breaker<turnstile::local::circuit_breaker, Window>>(name + "/local");
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_window<in_a_row>("breaker");
    enroll_permits<hand_made_breaker>("breaker/by_hand");
    enroll_window<last_hundred>("breaker_count");
    enroll_window<last_seconds>("breaker_time");
    enroll_permits<turnstile_keyed_breaker<turnstile::keyed_circuit_breaker<int>, last_hundred>>(
        "breaker_keys/ours");
    enroll_permits<
        turnstile_keyed_breaker<turnstile::local::keyed_circuit_breaker<int>, last_hundred>>(
        "breaker_keys/local");
    enroll_permits<hand_made_keyed_breaker>("breaker_keys/by_hand");

    enroll_calls<stage_calls<turnstile::circuit_breaker>>("breaker_call/ours");
    enroll_calls<stage_calls<turnstile::local::circuit_breaker>>("breaker_call/local");
    enroll_calls<stage_calls<turnstile::bulkhead>>("bulkhead_call/ours");
    enroll_calls<stage_calls<turnstile::local::bulkhead>>("bulkhead_call/local");
    enroll_calls<direct_calls>("floor/direct_call");

    enroll_gate<turnstile_bulkhead<turnstile::bulkhead>>("ours");
    enroll_gate<turnstile_bulkhead<turnstile::local::bulkhead>>("local");
    enroll_gate<channel_gate<channel>>("channel");
    enroll_gate<channel_gate<concurrent_channel>>("concurrent_channel");
    return true;
}();

} // namespace
} // namespace bench
