// SPDX-License-Identifier: BSL-1.0
// A clock whose timers complete inside the call that moves it, on any execution context. For the
// contract tests, where a grant may be the passing of time.
#pragma once

#include "kit/clock_types.hpp"

#include <turnstile/core/config.hpp>
#include <turnstile/detail/wait/timed_state.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace kit {

struct scripted_clock : clock_types<scripted_clock> {
    static time_point now() noexcept { return time_point(duration(elapsed().load())); }

    // Moves the clock, and completes nothing.
    static void shift(duration by) noexcept { elapsed() += by.count(); }
    // Moves the clock, then completes the timers that are due or were cancelled.
    static void advance(duration by);

private:
    static std::atomic<rep>& elapsed() noexcept
    {
        static std::atomic<rep> now = 1'000'000'000'000;
        return now;
    }
};

// A timer with at most one pending handler, which is all that timed_state needs.
class scripted_timer {
public:
    template <class Executor>
    explicit scripted_timer(const Executor&)
    {
        const std::scoped_lock lock(world().mutex);
        world().timers.push_back(this);
    }
    scripted_timer(const scripted_timer&) = delete;
    scripted_timer& operator=(const scripted_timer&) = delete;
    ~scripted_timer()
    {
        const std::scoped_lock lock(world().mutex);
        world().timers.remove(this);
    }

    void expires_at(scripted_clock::time_point when) { expiry_ = when; }

    template <class Handler>
    void async_wait(Handler handler)
    {
        const std::scoped_lock lock(world().mutex);
        static_assert(sizeof(holder<Handler>) <= sizeof(room_));
        pending_.reset(new (room_) holder<Handler>(std::move(handler)));
        cancelled_ = false;
    }

    void cancel()
    {
        const std::scoped_lock lock(world().mutex);
        cancelled_ = true;
    }

private:
    friend scripted_clock;

    // Stored in the timer: a test with a failing heap is not about this allocation.
    struct pending {
        virtual ~pending() = default;
        virtual void run() = 0;
    };
    template <class Handler>
    struct holder final : pending {
        explicit holder(Handler h) : handler(std::move(h)) {}
        void run() override
        {
            Handler h = std::move(handler);
            std::destroy_at(this);
            h(boost::system::error_code());
        }
        Handler handler;
    };
    struct in_place {
        void operator()(pending* p) const { std::destroy_at(p); }
    };
    struct all {
        std::mutex mutex;
        std::list<scripted_timer*> timers;
    };
    static all& world()
    {
        static all instance;
        return instance;
    }

    static pending* take_due()
    {
        const std::scoped_lock lock(world().mutex);
        for (scripted_timer* t : world().timers) {
            if (t->pending_ && (t->cancelled_ || t->expiry_ <= scripted_clock::now()))
                return t->pending_.release();
        }
        return nullptr;
    }

    scripted_clock::time_point expiry_;
    bool cancelled_ = false;
    alignas(std::max_align_t) std::byte room_[64];
    std::unique_ptr<pending, in_place> pending_;
};

inline void scripted_clock::advance(duration by)
{
    shift(by);
    while (auto* due = scripted_timer::take_due())
        due->run();
}

} // namespace kit

template <>
struct turnstile::detail::deadline_timer<kit::scripted_clock> {
    using type = kit::scripted_timer;
};
