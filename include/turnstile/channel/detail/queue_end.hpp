// SPDX-License-Identifier: BSL-1.0
// The base of the counted ends of a queue, queue_sender and queue_receiver: an executor and a
// reference to the state of the queue, which counts the ends of each kind under its lock.
//
// Invariant: an end with a state is counted exactly once. Role::copy(state) counts a copy, and
// Role::remove(state) is called once for each counted end, without the lock, because the last one
// ends the queue. An end refers to the state, not to the queue, so it may outlive the queue.
#pragma once

#include <turnstile/core/error.hpp>

#include <boost/assert.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <optional>
#include <utility>

namespace turnstile::inline v0_1::detail {

struct queue_sender_role {
    static constexpr const char* empty_message = "queue_sender: it is empty";
    template <class State>
    static void copy(State& state) noexcept
    {
        state.copy_sender();
    }
    template <class State>
    static void remove(State& state) noexcept
    {
        state.remove_sender();
    }
};

struct queue_receiver_role {
    static constexpr const char* empty_message = "queue_receiver: it is empty";
    template <class State>
    static void copy(State& state) noexcept
    {
        state.copy_receiver();
    }
    template <class State>
    static void remove(State& state) noexcept
    {
        state.remove_receiver();
    }
};

// The Origin of the requests of an end (queue_request.hpp).
template <class Executor, class State>
class queue_end_origin {
public:
    queue_end_origin(Executor executor, boost::intrusive_ptr<State> state) noexcept
        : executor_(std::move(executor)), state_(std::move(state))
    {
    }

    const queue_end_origin* operator->() const noexcept { return this; }
    const Executor& executor() const noexcept { return executor_; }
    State& state() const noexcept { return *state_; }

private:
    Executor executor_;
    boost::intrusive_ptr<State> state_;
};

template <class Executor, class State, class Role>
class queue_end {
public:
    /// The executor on which operations complete unless the handler has an associated executor.
    using executor_type = Executor;
    /// The threading policy: `thread_safe` or `strand_confined`.
    using threading_policy = typename State::threading_policy;

    /// An empty handle.
    queue_end() noexcept = default;

    queue_end(const queue_end& other) noexcept : executor_(other.executor_), state_(other.state_)
    {
        if (state_)
            Role::copy(*state_);
    }
    /// Leaves `other` empty.
    queue_end(queue_end&& other) noexcept
        : executor_(std::exchange(other.executor_, std::nullopt)), state_(std::move(other.state_))
    {
    }
    /// Releases the handle first.
    queue_end& operator=(queue_end other) noexcept
    {
        executor_.swap(other.executor_);
        state_.swap(other.state_);
        return *this;
    }
    ~queue_end() { release(); }

    /// Returns whether it is an end of a queue.
    explicit operator bool() const noexcept { return state_ != nullptr; }

    /// Lets go of the queue, as the destructor does, and leaves the handle empty. Does nothing if
    /// it is empty.
    void release() noexcept
    {
        executor_.reset();
        if (const auto left = std::exchange(state_, nullptr))
            Role::remove(*left);
    }

    /// The executor of the queue.
    ///
    /// @par Exceptions
    /// `system_error` with `errc::invalid_argument` if the handle is empty.
    executor_type get_executor() const
    {
        throw_if_empty();
        return *executor_;
    }

protected:
    using origin_type = queue_end_origin<Executor, State>;

    // The caller has counted the end.
    queue_end(const Executor& executor, State& state) noexcept : executor_(executor), state_(&state)
    {
    }

    origin_type origin() const { return {get_executor(), &state()}; }
    State& state() const
    {
        throw_if_empty();
        return *checked();
    }
    // Null if the handle is empty.
    State* checked() const noexcept
    {
        BOOST_ASSERT_MSG(!State::is_confined || !state_ || !state_->called_from_wrong_strand(),
                         "a strand_confined object was called from outside its strand");
        return state_.get();
    }

private:
    void throw_if_empty() const
    {
        if (!state_)
            throw_error(errc::invalid_argument, Role::empty_message);
    }

    std::optional<Executor> executor_;
    boost::intrusive_ptr<State> state_;
};

} // namespace turnstile::inline v0_1::detail
