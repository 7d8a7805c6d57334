// SPDX-License-Identifier: BSL-1.0
// The base class of the ends of a channel: broadcast and its receivers, and the sender and the
// receiver of a oneshot.
//
// The ends of a channel share its state, and each of them may be destroyed first. The last end, or
// the last outstanding operation, frees the state. Role is a small type that distinguishes the
// ends; its leave(state) is called when the end is destroyed, and its waiting(state) counts the
// waiters of this end. An end may be moved while operations are outstanding, because they refer to
// the state and not to the end: their requests derive from channel_request.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/assert.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Executor, class State, class Role>
class channel_end {
public:
    /// The executor of the completions whose handler has no associated executor.
    using executor_type = Executor;
    /// The threading policy: `thread_safe` or `strand_confined`.
    using threading_policy = typename State::threading_policy;

    /// The executor given at construction. May be called on any thread.
    executor_type get_executor() const noexcept { return executor_; }

    /// The number of waiters at this end: a hint, outdated as soon as it is returned.
    [[nodiscard]] std::size_t waiting() const noexcept { return role_.waiting(state()); }

protected:
    channel_end(Executor executor, boost::intrusive_ptr<State> state, Role role = Role()) noexcept
        : executor_(std::move(executor)), state_(std::move(state)), role_(role)
    {
    }
    channel_end(channel_end&&) noexcept = default;
    // The previous end of *this leaves when `taken` is destroyed.
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
        if (state_) // null if the end was moved from
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
    const boost::intrusive_ptr<State>& shared_state() const noexcept { return state_; }

private:
    Executor executor_;
    boost::intrusive_ptr<State> state_;
    [[no_unique_address]] Role role_;
};

// The part of a request that refers to the state and to the executor of its object.
template <class Executor, class State>
struct channel_request {
    using executor_type = Executor;
    using threading = typename State::threading_policy;

    State* state_;
    const Executor* executor_;

    const Executor& executor() const noexcept { return *executor_; }
    State& state() const noexcept { return *state_; }
};

} // namespace turnstile::inline v0_1::detail
