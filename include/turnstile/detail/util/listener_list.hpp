// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/threading.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1 {

/// Names a listener, to remove it by.
enum class listener_id : std::uint64_t {};

namespace detail {

// Functions that are told of events, one event after the other, each in the order in which
// they were added. An event is published under its owner's lock, which fixes the order, and
// dispatched after it. One thread dispatches at a time: what others publish meanwhile, or a
// listener itself, it tells next. So listeners never run under a lock, nor one inside another.
//
// Nobody is kept telling for others for ever, nor do events pile up: beyond `most_added` while
// one thread dispatches, and `most_kept` before that, the newest are dropped, and counted.
//
// Nor are listeners and events destroyed under a lock, but for events that were moved from.
//
// Listeners come and go at any time, also from inside one. A new one is told what is
// published from then on; a removed one nothing more, but may just be running elsewhere.
template <class Event, class Threading>
class listener_list {
public:
    using event_type = Event;
    using function = std::function<void(const Event&)>;
    static_assert(std::is_nothrow_move_constructible_v<Event>, "events are moved under a lock");

    static constexpr std::size_t most_added = 4096; // others may add much while one is preempted
    static constexpr std::size_t most_kept = 65'536;

    listener_id add(function f)
    {
        std::map<std::uint64_t, std::shared_ptr<function>> one;
        one.emplace(0, std::make_shared<function>(std::move(f)));
        auto node = one.extract(one.begin());
        const std::scoped_lock lock(mutex_);
        queue_.reserve(usual_room); // events may come when memory is short
        node.key() = ++newest_;
        functions_.insert(std::move(node));
        somebody_.store(true, std::memory_order_relaxed);
        return listener_id(newest_);
    }

    // Whether anybody listens: a hint, where events are dear.
    bool somebody() const noexcept { return somebody_.load(std::memory_order_relaxed); }

    // False if there is none of that name. Its function is destroyed here, or when it returns.
    bool remove(listener_id id) noexcept
    {
        typename decltype(functions_)::node_type removed;
        const std::scoped_lock lock(mutex_);
        removed = functions_.extract(static_cast<std::uint64_t>(id));
        somebody_.store(!functions_.empty(), std::memory_order_relaxed);
        return !removed.empty();
    }

    // The owner is destroyed, and nobody is told anything more.
    void close() noexcept
    {
        decltype(functions_) removed;
        decltype(queue_) untold;
        const std::scoped_lock lock(mutex_);
        closed_.store(true, std::memory_order_release);
        removed.swap(functions_);
        untold.swap(queue_);
        somebody_.store(false, std::memory_order_relaxed);
        forget_all();
    }

    bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }

    // Keeps the event for those who listen now; called under the owner's lock. Where there
    // is no room for it, or no memory, the event is not told.
    void publish(const Event& event) noexcept
    {
        if (!somebody())
            return;
        const std::scoped_lock lock(mutex_);
        try {
            if (queue_.size() < room_)
                queue_.push_back({event, newest_});
            else
                ++dropped_;
        } catch (...) {
            ++dropped_;
        }
        has_pending_events_.store(!queue_.empty(), std::memory_order_relaxed);
    }

    // Whether there is something to dispatch, or somebody who does; under the owner's lock.
    bool has_pending_events() const noexcept { return has_pending_events_.load(std::memory_order_relaxed); }

    // How many events nobody was told of, though somebody listened.
    std::uint64_t dropped() noexcept
    {
        const std::scoped_lock lock(mutex_);
        return dropped_;
    }

    // Tells what was published; not to be called under a lock. The list must stay, whatever
    // the listeners do. What they throw is dropped: there is nobody to catch it.
    void dispatch() noexcept
    {
        std::unique_lock lock(mutex_);
        if (std::exchange(dispatching_, true))
            return;
        room_ = queue_.size() + most_added;
        while (next_ != queue_.size()) {
            std::optional<published> current(std::move(queue_[next_++]));
            std::uint64_t last = 0;
            for (;;) {
                const auto it = functions_.upper_bound(last);
                if (it == functions_.end() || it->first > current->newest)
                    break;
                last = it->first;
                std::shared_ptr<function> f = it->second;
                lock.unlock();
                try {
                    (*f)(current->event);
                } catch (...) {
                }
                f.reset(); // it may have been removed
                lock.lock();
            }
            lock.unlock();
            current.reset(); // it may be the last to refer to something of the user's
            lock.lock();
        }
        forget_all();
        room_ = most_kept;
        dispatching_ = false;
    }

private:
    static constexpr std::size_t usual_room = 8;
    static constexpr std::size_t most_kept_empty = 256;

    struct published {
        Event event;
        std::uint64_t newest; // of the listeners then
    };

    // And gives back the memory of an unusual number of events.
    void forget_all() noexcept
    {
        queue_.clear();
        next_ = 0;
        has_pending_events_.store(false, std::memory_order_relaxed);
        if (queue_.capacity() <= most_kept_empty)
            return;
        try {
            std::vector<published> usual;
            usual.reserve(usual_room);
            queue_.swap(usual);
        } catch (const std::bad_alloc&) { // then it stays
        }
    }

    typename Threading::mutex_type mutex_;
    policy_atomic<Threading, bool> somebody_{false};
    policy_atomic<Threading, bool> closed_{false};
    policy_atomic<Threading, bool> has_pending_events_{false};
    std::map<std::uint64_t, std::shared_ptr<function>> functions_;
    std::uint64_t newest_ = 0;
    std::vector<published> queue_; // told up to next_
    std::size_t next_ = 0;
    std::size_t room_ = most_kept;
    std::uint64_t dropped_ = 0;
    bool dispatching_ = false;
};

} // namespace detail
} // namespace turnstile::inline v0_1
