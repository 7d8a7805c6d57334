#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/detail/wait_state.hpp>

#include <boost/assert.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <utility>

namespace turnstile::detail {

// One of several ends of a channel, each of which may go first: an executor, and a share in
// the state. What the going of this end means to the others, the state is told by whoever
// derives from this. Movable, also while operations are pending: those hold on to the state.
template <class Executor, class State>
class channel_end {
public:
    /// The executor that completions run on, unless their handler has its own.
    using executor_type = Executor;
    /// Who may call: `thread_safe` or `strand_confined`.
    using threading_policy = typename State::threading_policy;

    /// The executor given at construction. Thread safe.
    executor_type get_executor() const noexcept { return executor_; }

protected:
    channel_end(Executor executor, boost::intrusive_ptr<State> state) noexcept
        : executor_(std::move(executor)), state_(std::move(state))
    {
    }
    channel_end(channel_end&&) noexcept = default;
    channel_end& operator=(channel_end&&) noexcept = default;
    ~channel_end() = default;

    const Executor& executor() const noexcept { return executor_; }
    // Whether it has not been moved from.
    bool has_state() const noexcept { return state_ != nullptr; }
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
};

} // namespace turnstile::detail
