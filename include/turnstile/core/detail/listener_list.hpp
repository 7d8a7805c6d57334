#pragma once

#include <turnstile/core/threading.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace turnstile {

/// Names a listener, to remove it by.
enum class listener_id : std::uint64_t {};

namespace detail {

// Functions that are told of events, one event after the other, each in the order in which
// they were added. An event is published under its owner's lock, which fixes the order, and
// dispatched after it. One thread dispatches at a time: what others publish meanwhile, or a
// listener itself, it tells next. So listeners never run under a lock, nor one inside another.
//
// Listeners come and go at any time, also from inside one. A new one is told what is
// published from then on; a removed one nothing more, but may just be running elsewhere.
template <class Event, class Threading>
class listener_list {
public:
    using event_type = Event;
    using function = std::function<void(const Event&)>;

    listener_id add(function f)
    {
        std::map<std::uint64_t, std::shared_ptr<function>> one;
        one.emplace(0, std::make_shared<function>(std::move(f)));
        auto node = one.extract(one.begin());
        const std::scoped_lock lock(mutex_);
        queue_.reserve(8); // events may come when memory is short
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
        const std::scoped_lock lock(mutex_);
        closed_.store(true, std::memory_order_release);
        removed.swap(functions_);
        somebody_.store(false, std::memory_order_relaxed);
        queue_.clear();
        next_ = 0;
    }

    bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }

    // Keeps the event for those who listen now; called under the owner's lock. Where there
    // is no memory for it the event is not told.
    void publish(const Event& event) noexcept
    {
        if (!somebody())
            return;
        const std::scoped_lock lock(mutex_);
        try {
            queue_.push_back({event, newest_});
        } catch (const std::bad_alloc&) {
        }
    }

    // Tells what was published; not to be called under a lock. The list must stay, whatever
    // the listeners do. What they throw is dropped: there is nobody to catch it.
    void dispatch() noexcept
    {
        std::unique_lock lock(mutex_);
        if (std::exchange(dispatching_, true))
            return;
        while (next_ != queue_.size()) {
            const published current = queue_[next_++];
            std::uint64_t last = 0;
            for (;;) {
                const auto it = functions_.upper_bound(last);
                if (it == functions_.end() || it->first > current.newest)
                    break;
                last = it->first;
                std::shared_ptr<function> f = it->second;
                lock.unlock();
                try {
                    (*f)(current.event);
                } catch (...) {
                }
                f.reset(); // it may have been removed
                lock.lock();
            }
        }
        queue_.clear();
        next_ = 0;
        dispatching_ = false;
    }

private:
    struct published {
        Event event;
        std::uint64_t newest; // of the listeners then
    };

    typename Threading::mutex_type mutex_;
    typename Threading::template cell<bool> somebody_{false};
    typename Threading::template cell<bool> closed_{false};
    std::map<std::uint64_t, std::shared_ptr<function>> functions_;
    std::uint64_t newest_ = 0;
    std::vector<published> queue_; // told up to next_
    std::size_t next_ = 0;
    bool dispatching_ = false;
};

} // namespace detail
} // namespace turnstile
