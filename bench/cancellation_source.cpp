// SPDX-License-Identifier: BSL-1.0
// The cost of binding an operation to a cancellation source, and of cancelling 100,000 operations.
#include "support/bound_operations.hpp"
#include "support/enroll.hpp"

namespace bench {
namespace {

template <class Call>
void enroll_call(const std::string& competitor)
{
    enroll("bind/" + competitor, [](meter& m) { return calls<Call>(m, 20'000); });
}

template <class Stop, class Event>
void enroll_stop(const std::string& competitor)
{
    enroll("cancel_bound/" + competitor,
           [](meter& m) { return cancel_all<Stop, Event>(m, 100'000, 1); });
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_call<bound_call<turnstile::cancellation_source>>("ours");
    enroll_call<bound_call<turnstile::local::cancellation_source>>("local");
    enroll_call<unbound_call>("floor");
    enroll_stop<source_stop<turnstile::cancellation_source>, turnstile::event>("ours");
    enroll_stop<source_stop<turnstile::local::cancellation_source>, turnstile::local::event>(
        "local");
    enroll_stop<signals_by_hand, turnstile::event>("by_hand");
    return true;
}();

} // namespace
} // namespace bench
