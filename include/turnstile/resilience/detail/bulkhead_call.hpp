// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/resilience/detail/bulkhead_state.hpp>

namespace turnstile::inline v0_1::detail {

// A wait to be let in; the result says with whom.
template <class Executor, class State, class Threading, class Result>
struct bulkhead_request {
    using executor_type = Executor;
    using threading = Threading;
    using result_type = Result;
    using waiter_type = bulkhead_waiter;
    static constexpr request_traits traits{.refundable = true};
    static constexpr const char* stage = "bulkhead";
    static constexpr nanoseconds retry_after = nanoseconds::max(); // nobody can tell

    const Executor* home;
    State* state_ptr;

    const executor_type& executor() const noexcept { return *home; }
    State& state() const noexcept { return *state_ptr; }

    wait_decision try_now() const noexcept { return state_ptr->try_now(1, State::one_handle); }
    void give_back() const noexcept { state_ptr->give_back(); }
    void prepare(bulkhead_waiter& w) const noexcept { w.deadline = state_ptr->deadline(); }
    Result take_now() const noexcept { return Result(state_ptr, state_ptr->ticket()); }
};

} // namespace turnstile::inline v0_1::detail
