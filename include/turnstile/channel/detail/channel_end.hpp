// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/assert.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <utility>

namespace turnstile::inline v0_1::detail {

// One of several ends of a channel, each of which may go first: an executor, and a share in
// the state, which is told when this end goes: by Role::leave(state). Movable, also while
// operations are pending, since those hold on to the state.
template <class Executor, class State, class Role>
class channel_end {
public:
    /// The executor that completions run on, unless their handler has its own.
    using executor_type = Executor;
    /// Who may call: `thread_safe` or `strand_confined`.
    using threading_policy = typename State::threading_policy;

    /// The executor given at construction. Thread safe.
    executor_type get_executor() const noexcept { return executor_; }

protected:
    channel_end(Executor executor, boost::intrusive_ptr<State> state, Role role = Role()) noexcept
        : executor_(std::move(executor)), state_(std::move(state)), role_(role)
    {
    }
    channel_end(channel_end&&) noexcept = default;
    // Leaves its place, then takes the other's.
    channel_end& operator=(channel_end&& other) noexcept
    {
        channel_end taken(std::move(other));
        std::swap(executor_, taken.executor_);
        state_.swap(taken.state_);
        std::swap(role_, taken.role_);
        return *this;
    }
    ~channel_end()
    {
        if (state_) // it has not been moved from
            role_.leave(*state_);
    }

    const Executor& executor() const noexcept { return executor_; }
    const Role& role() const noexcept { return role_; }
    State& state() const noexcept
    {
        BOOST_ASSERT_MSG(state_, "this end of a channel was moved from");
        BOOST_ASSERT_MSG(!State::is_confined || !state_->called_from_wrong_strand(),
                         "a strand_confined object was called from outside its strand");
        return *state_;
    }
    const boost::intrusive_ptr<State>& share() const noexcept { return state_; }

private:
    Executor executor_;
    boost::intrusive_ptr<State> state_;
    [[no_unique_address]] Role role_;
};

} // namespace turnstile::inline v0_1::detail
