// SPDX-License-Identifier: BSL-1.0
// The base of every public object: an executor, and the state, which may outlive the object while
// completions are on their way. listening_object is the base of objects that publish events. Both
// are neither copyable nor movable, because handles and waiters refer to the state.
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

template <class Executor, class Threading, class State>
class io_object {
public:
    /// The executor on which operations complete unless the handler has an associated executor.
    using executor_type = Executor;
    /// The threading policy: `thread_safe` or `strand_confined`.
    using threading_policy = Threading;

    /// Returns the executor that was passed to the constructor. Thread safe for every policy.
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
    // The state without the check of the strand in state(): for an operation or a handle that
    // stores the pointer, and for destructors, which a context that is being destroyed runs on any
    // thread.
    State* state_pointer() const noexcept { return state_.get(); }

private:
    Executor executor_;
    owned_state<State> state_;
};

// An object with listeners. Its state is an observable_state.
template <class Executor, class Threading, class State>
class listening_object : public io_object<Executor, Threading, State> {
    using base = io_object<Executor, Threading, State>;

public:
    /// The argument of a listener.
    using event_type = typename State::listeners_type::event_type;

    /// Adds a function that is called for every later event, in the order of the events, and never
    /// for two events at a time. It runs on the thread that raised the event, or on one that is
    /// already dispatching events, and never under a lock: it may call the object. It may also
    /// destroy the object, unless an initiating function has raised the event. Exceptions of the
    /// listener are ignored. While one thread dispatches events, other threads can add up to 4096
    /// events; further ones are dropped and counted by `dropped_events()`.
    listener_id add_listener(std::function<void(const event_type&)> listener)
    {
        return this->state().listeners().add(std::move(listener));
    }
    /// Removes a listener; a listener may call it. Returns false if `id` is not registered.
    bool remove_listener(listener_id id) noexcept { return this->state().listeners().remove(id); }
    /// Returns the number of events that were dropped although a listener was registered, because
    /// the listeners were too slow or no memory was available.
    std::uint64_t dropped_events() const noexcept { return this->state().listeners().dropped(); }

protected:
    using base::base;
    ~listening_object() { this->state_pointer()->listeners().close(); }
};

} // namespace turnstile::inline v0_1::detail
