// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/util/listener_list.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class T>
concept execution_context = std::derived_from<T, asio::execution_context> && requires(T& t)
{
    t.get_executor();
};

// What every object of the library has: an executor, and a state that outlives it for as
// long as operations are on their way. Neither copyable nor movable.
template <class Executor, class Threading, class State>
class io_object {
public:
    /// The executor that completions run on, unless their handler has its own.
    using executor_type = Executor;
    /// Who may call: `thread_safe` or `strand_confined`.
    using threading_policy = Threading;

    /// The executor given at construction. Thread safe.
    executor_type get_executor() const noexcept { return executor_; }

    /// The number of waiters: a hint, outdated as soon as it is returned.
    [[nodiscard]] std::size_t waiting() const noexcept { return state().waiting(); }

protected:
    template <class... Args>
    explicit io_object(Executor executor, Args&&... args)
        : executor_(std::move(executor)), state_(executor_, std::forward<Args>(args)...)
    {
    }
    ~io_object() = default;

    const Executor& executor() const noexcept { return executor_; }
    State& state() const noexcept { return *state_; }
    // The state, for an operation or a handle that will use it, and for destructors, which a
    // context that is being destroyed runs on any thread. Unlike state(), it does not check the
    // strand.
    State* state_pointer() const noexcept { return state_.get(); }

private:
    Executor executor_;
    owned_state<State> state_;
};

// An object that tells what happens to it, until it is destroyed. Its state has listeners().
template <class Executor, class Threading, class State>
class listening_object : public io_object<Executor, Threading, State> {
    using base = io_object<Executor, Threading, State>;

public:
    /// What listeners are told.
    using event_type = typename State::listeners_type::event_type;

    /// Calls `listener` at every event, in order and one at a time, on the thread that caused it
    /// or is just telling another; never under a lock, so it may call the object. It may
    /// destroy it, too, but not if it is an `async_` function that has caused the event. What it
    /// throws is dropped. If listeners are slower than events come, some are not told of: while
    /// one thread is telling it tells of no more than 4096 that others add. Thread safety: as the
    /// policy says.
    listener_id add_listener(std::function<void(const event_type&)> listener)
    {
        return this->state().listeners().add(std::move(listener));
    }
    /// Removes a listener, also from inside one; false if there is none of that name.
    bool remove_listener(listener_id id) noexcept { return this->state().listeners().remove(id); }
    /// How many events nobody was told of, though somebody listened: listeners were too slow,
    /// or there was no memory. Thread safety: as the policy says.
    std::uint64_t dropped_events() const noexcept { return this->state().listeners().dropped(); }

protected:
    using base::base;
    ~listening_object() { this->state_pointer()->listeners().close(); }
};

} // namespace turnstile::inline v0_1::detail
