// SPDX-License-Identifier: BSL-1.0
// The listeners of one object, and the queue of events that they have not received yet. Every
// object with events has a listener_list in its state. The state publishes an event under its own
// lock, which determines the order of the events, and dispatches after it has released the lock.
// core/listener.hpp describes it for users.
//
// One thread dispatches at a time. It also dispatches the events that other threads, or the
// listeners themselves, publish in the meantime. Two limits bound the queue: `max_queued` before a
// dispatch, and `max_added` for the events that are added while one thread dispatches, so that no
// thread is kept dispatching the events of others. Above the limit the newest events are dropped
// and counted.
//
// Invariants:
// - A listener runs without any lock, and never inside another listener.
// - No listener and no event is destroyed under a lock, except events that were moved from.
#pragma once

#include <turnstile/core/listener.hpp>
#include <turnstile/core/threading.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Event, class Threading>
class listener_list {
public:
    using event_type = Event;
    using function = std::function<void(const Event&)>;
    static_assert(std::is_nothrow_move_constructible_v<Event>, "events are moved under a lock");

    // Large, because the dispatching thread may be preempted while other threads add events.
    static constexpr std::size_t max_added = 4096;
    static constexpr std::size_t max_queued = 65'536;

    listener_id add(function f)
    {
        std::map<std::uint64_t, std::shared_ptr<function>> one;
        one.emplace(0, std::make_shared<function>(std::move(f)));
        auto node = one.extract(one.begin());
        const std::scoped_lock lock(mutex_);
        queue_.reserve(initial_capacity); // events may come when memory is short
        node.key() = ++last_id_;
        functions_.insert(std::move(node));
        has_listeners_.store(true, std::memory_order_relaxed);
        return listener_id(last_id_);
    }

    // A hint, for callers for which it is expensive to make an event.
    bool has_listeners() const noexcept { return has_listeners_.load(std::memory_order_relaxed); }

    // Returns false if `id` is not registered. The function is destroyed here, or, if it is
    // running, when it returns.
    bool remove(listener_id id) noexcept
    {
        typename decltype(functions_)::node_type removed;
        const std::scoped_lock lock(mutex_);
        removed = functions_.extract(static_cast<std::uint64_t>(id));
        has_listeners_.store(!functions_.empty(), std::memory_order_relaxed);
        return !removed.empty();
    }

    // The object is destroyed: no listener is called from here on.
    void close() noexcept
    {
        decltype(functions_) removed;
        decltype(queue_) undelivered;
        const std::scoped_lock lock(mutex_);
        closed_.store(true, std::memory_order_release);
        removed.swap(functions_);
        undelivered.swap(queue_);
        has_listeners_.store(false, std::memory_order_relaxed);
        clear_queue();
    }

    bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }

    // Queues the event for the listeners that are registered at this moment. The caller holds the
    // lock of the state. Without room or memory for the event, it is dropped.
    void publish(const Event& event) noexcept
    {
        if (!has_listeners())
            return;
        const std::scoped_lock lock(mutex_);
        try {
            if (queue_.size() < max_queue_size_)
                queue_.push_back({event, last_id_});
            else
                ++dropped_;
        } catch (...) {
            ++dropped_;
        }
        has_pending_events_.store(!queue_.empty(), std::memory_order_relaxed);
    }

    // Whether events are queued, or being dispatched. The caller holds the lock of the state.
    bool has_pending_events() const noexcept
    {
        return has_pending_events_.load(std::memory_order_relaxed);
    }

    // The number of events that were dropped.
    std::uint64_t dropped() noexcept
    {
        const std::scoped_lock lock(mutex_);
        return dropped_;
    }

    // Calls the listeners for the queued events. The caller holds no lock, and keeps the list alive
    // even if a listener destroys the object. An exception of a listener has no caller to reach,
    // and is dropped.
    void dispatch() noexcept
    {
        std::unique_lock lock(mutex_);
        if (std::exchange(dispatching_, true))
            return;
        max_queue_size_ = queue_.size() + max_added;
        while (next_ != queue_.size()) {
            {
                const published current(std::move(queue_[next_++]));
                std::uint64_t last = 0;
                for (;;) {
                    const auto it = functions_.upper_bound(last);
                    if (it == functions_.end() || it->first > current.last_listener)
                        break;
                    last = it->first;
                    std::shared_ptr<function> f = it->second;
                    lock.unlock();
                    try {
                        (*f)(current.event);
                    } catch (...) {
                    }
                    f.reset(); // destroys the function if it was removed meanwhile
                    lock.lock();
                }
                lock.unlock(); // the event may own an object of the user
            }
            lock.lock();
        }
        clear_queue();
        max_queue_size_ = max_queued;
        dispatching_ = false;
    }

private:
    static constexpr std::size_t initial_capacity = 8;
    static constexpr std::size_t max_idle_capacity = 256;

    struct published {
        Event event;
        std::uint64_t last_listener; // the last listener that receives the event
    };

    // Also frees the memory of an unusually long queue.
    void clear_queue() noexcept
    {
        queue_.clear();
        next_ = 0;
        has_pending_events_.store(false, std::memory_order_relaxed);
        if (queue_.capacity() <= max_idle_capacity)
            return;
        try {
            std::vector<published> small;
            small.reserve(initial_capacity);
            queue_.swap(small);
        } catch (const std::bad_alloc&) { // the long queue keeps its memory
        }
    }

    typename Threading::mutex_type mutex_;
    policy_atomic<Threading, bool> has_listeners_{false};
    policy_atomic<Threading, bool> closed_{false};
    policy_atomic<Threading, bool> has_pending_events_{false};
    std::map<std::uint64_t, std::shared_ptr<function>> functions_; // by listener_id
    std::uint64_t last_id_ = 0;
    std::vector<published> queue_;
    std::size_t next_ = 0; // the first event of the queue that is not dispatched
    std::size_t max_queue_size_ = max_queued;
    std::uint64_t dropped_ = 0;
    bool dispatching_ = false;
};

} // namespace turnstile::inline v0_1::detail
