// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/threading.hpp>
#include <turnstile/detail/util/listener_list.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

// What the calls of one timeout, retry or hedge share.
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

// What timeout, retry and hedge have in common: an executor for handlers that have none, and a
// state that calls under way share, and keep. Neither copyable nor movable.
template <class Executor, class State>
class supervising_object {
public:
    using executor_type = Executor;
    /// What listeners are told.
    using event_type = typename State::listeners_type::event_type;

    supervising_object(const supervising_object&) = delete;
    supervising_object& operator=(const supervising_object&) = delete;

    /// The executor given at construction. Thread safe.
    executor_type get_executor() const noexcept { return executor_; }

    /// Calls `listener` at every event, one at a time, where the call it is about runs, or where
    /// another is just being told; never under a lock, so it may call the object, or destroy
    /// it. What it throws is dropped. Thread safe.
    listener_id add_listener(std::function<void(const event_type&)> listener)
    {
        return state_->listeners().add(std::move(listener));
    }
    /// Removes a listener, also from inside one; false if there is none of that name.
    bool remove_listener(listener_id id) noexcept { return state_->listeners().remove(id); }
    /// How many events nobody was told of, though somebody listened: listeners were too slow
    /// (one call tells of no more than 4096 events of others), or there was no memory. Thread safe.
    std::uint64_t dropped_events() const noexcept { return state_->listeners().dropped(); }

protected:
    template <class... Args>
    explicit supervising_object(const Executor& executor, Args&&... args)
        : executor_(executor), state_(std::make_shared<State>(std::forward<Args>(args)...))
    {
    }
    ~supervising_object() { state_->listeners().close(); }

    const std::shared_ptr<State>& state() const noexcept { return state_; }

private:
    Executor executor_;
    std::shared_ptr<State> state_;
};

} // namespace turnstile::inline v0_1::detail
