// SPDX-License-Identifier: BSL-1.0
//
// The common part of basic_timeout, basic_retry and basic_hedge: an executor, listeners, and a
// state that the object shares with its outstanding calls. The state outlives the object as long as
// calls are outstanding; the listeners are closed with the object.
#pragma once

#include <turnstile/core/threading.hpp>
#include <turnstile/detail/util/block_cache.hpp>
#include <turnstile/detail/util/listener_list.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The base of the state that one object shares with its calls: counters and listeners.
template <class Event>
class supervised_state {
public:
    using counter = std::atomic<std::uint64_t>;
    using listeners_type = listener_list<Event, thread_safe>;

    static void count(counter& c) noexcept { c.fetch_add(1, std::memory_order_relaxed); }
    static std::uint64_t read(const counter& c) noexcept
    {
        return c.load(std::memory_order_relaxed);
    }

    // Publishes the event and calls the listeners.
    void tell(const Event& event) noexcept
    {
        if (!listeners_.has_listeners())
            return;
        listeners_.publish(event);
        listeners_.dispatch();
    }
    listeners_type& listeners() noexcept { return listeners_; }

private:
    listeners_type listeners_;
};

// The base of the objects. Neither copyable nor movable.
template <class Executor, class State>
class supervising_object {
public:
    /// The executor of handlers without an associated executor.
    using executor_type = Executor;
    /// The argument of listeners.
    using event_type = typename State::listeners_type::event_type;

    supervising_object(const supervising_object&) = delete;
    supervising_object& operator=(const supervising_object&) = delete;

    /// The executor given at construction.
    executor_type get_executor() const noexcept { return executor_; }

    /// Registers a listener. It is called for each event, one at a time, on the thread that raised
    /// the event, or on one that is already dispatching events. It is never called under a lock, so
    /// it may call the object, or destroy it. Exceptions that it throws are dropped.
    listener_id add_listener(std::function<void(const event_type&)> listener)
    {
        return state_->listeners().add(std::move(listener));
    }
    /// Removes a listener, also from inside a listener. Returns false if `id` is not registered.
    bool remove_listener(listener_id id) noexcept { return state_->listeners().remove(id); }
    /// The number of events that were dropped although a listener was registered: listeners were
    /// too slow (while one thread dispatches, at most 4096 events are added), or memory was
    /// exhausted.
    std::uint64_t dropped_events() const noexcept { return state_->listeners().dropped(); }

protected:
    template <class... Args>
    explicit supervising_object(const Executor& executor, Args&&... args)
        : executor_(executor), state_(std::allocate_shared<State>(cached_allocator<State>(),
                                                                  std::forward<Args>(args)...))
    {
    }
    ~supervising_object() { state_->listeners().close(); }

    const std::shared_ptr<State>& state() const noexcept { return state_; }

private:
    Executor executor_;
    std::shared_ptr<State> state_;
};

} // namespace turnstile::inline v0_1::detail
