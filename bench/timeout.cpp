// SPDX-License-Identifier: BSL-1.0
// The cost of a time limit, and of a retry that is not needed.
#include "support/enroll.hpp"
#include "support/timeouts.hpp"

namespace bench {
namespace {

template <class Limit>
void enroll_as(const std::string& name)
{
    enroll(name, [](meter& m) { return calls<Limit>(m, 20'000); });
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_as<timeout_after>("timeout/ours");
    enroll_as<timer_by_hand>("timeout/timer");
#if BENCH_HAS_CANCEL_AFTER
    enroll_as<cancel_after>("timeout/cancel_after");
#endif
    enroll_as<no_limit>("timeout/floor");
    enroll_as<first_attempt>("retry/ours");
    enroll_as<no_limit>("retry/floor");
    return true;
}();

} // namespace
} // namespace bench
