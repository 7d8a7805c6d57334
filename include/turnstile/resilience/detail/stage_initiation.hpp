// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace turnstile::inline v0_1::detail {

// What starts the calls of a stage: it has the stage's executor, as every initiation, and
// the stage's state.
template <class Executor, class State>
class stage_initiation {
public:
    using executor_type = Executor;

    stage_initiation(const Executor& executor, State& state) noexcept
        : executor_(executor), state_(&state)
    {
    }

    executor_type get_executor() const noexcept { return executor_; }

protected:
    Executor executor_;
    State* state_;
};

} // namespace turnstile::inline v0_1::detail
