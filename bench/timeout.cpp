// SPDX-License-Identifier: BSL-1.0
// The cost of a time limit, of a retry that is not needed, and of pipelines.
#include "support/coroutine_calls.hpp"
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
    enroll_as<limited_coroutine>("timeout_coroutine/ours");
    enroll_as<spawned_coroutine>("timeout_coroutine/co_spawn");
    enroll_as<direct_coroutine>("timeout_coroutine/floor");
    enroll_as<coroutine_through<turnstile::retry>>("retry_coroutine/ours");
    enroll_as<coroutine_through_pipeline<&four_stages>>("pipeline_4/ours");
    enroll_as<coroutine_through_pipeline<&six_stages>>("pipeline_6/ours");
    enroll_as<spawned_coroutine>("pipeline_6/co_spawn");
    return true;
}();

} // namespace
} // namespace bench
