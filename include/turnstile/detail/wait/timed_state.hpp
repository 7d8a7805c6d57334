// SPDX-License-Identifier: BSL-1.0
// A wait_state with one timer, for the earliest deadline of all its waiters. The rate limiter, the
// circuit breaker and the bulkhead derive from it. These functions are for the derived state, whose
// lock (or strand) guards the timer:
//
//   wake_at(when)       Under the lock: calls wake() at `when`, and not at the time that was set
//                       before.
//   try_wake_at(when)   The same for a waiter that is about to queue. Returns false, and changes
//                       nothing, if there is no memory for the timer; the waiter must not queue.
//   sleep()             Under the lock: no waiter has a deadline.
//   wake(ready)         A hook, called under the lock at the time that was set, or later; or
//                       earlier, if the timer was set to another deadline before. It grants the
//                       waiters that can proceed, and calls wake_at() again if others are left.
//   woken()             A hook, called after wake(), without the lock.
//
// Invariants: at most one wait of the timer is outstanding, in memory that the state contains. For
// a later deadline that wait is left to expire; for an earlier one, or none, it is cancelled, and
// started again when its handler has run. So the timer is outstanding work only while waiters have
// a deadline. The wait holds a reference to the state. take_all() cancels it, so a state that
// overrides take_all() calls this one. The timer itself is destroyed with its context, which the
// state may outlive.
//
// Asio stores timers in a heap, which may have to grow. If there is no memory for that when the
// timer is started again, the state posts itself to its executor, in memory that it contains, and
// retries. On a strand, which may have no memory for the post either, the retry waits for the next
// call of the object.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The executor of the timer: it runs the timer's handler at once, on the thread on which the timer
// expires. The handler locks the state itself, or posts to its strand.
class inline_executor {
public:
    explicit inline_executor(asio::execution_context& context) noexcept : context_(&context) {}

    asio::execution_context& query(asio::execution::context_t) const noexcept { return *context_; }
    static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept
    {
        return asio::execution::blocking.always;
    }
    template <class F>
    void execute(F&& f) const
    {
        std::decay_t<F>(std::forward<F>(f))();
    }

    friend bool operator==(const inline_executor& a, const inline_executor& b) noexcept
    {
        return a.context_ == b.context_;
    }
    friend bool operator!=(const inline_executor& a, const inline_executor& b) noexcept
    {
        return !(a == b);
    }

private:
    asio::execution_context* context_;
};

// The timer for a clock: Asio's, which may need a specialisation of asio::wait_traits for the
// clock. Tests specialise it for a timer of their own.
template <class Clock>
struct deadline_timer {
    using type = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, inline_executor>;
};

// The time of a clock, in nanoseconds since its epoch.
template <clock_policy Clock>
nanoseconds now_on() noexcept
{
    return saturating_nanoseconds(Clock::now().time_since_epoch());
}

// Base is wait_state, or a state derived from it.
template <class Threading, clock_policy Clock = default_clock, class Base = wait_state<Threading>>
class TURNSTILE_EXPORT timed_state : public Base {
public:
    template <class Executor, class... Args>
    explicit timed_state(const Executor& executor, Args&&... args)
        : Base(executor, std::forward<Args>(args)...),
          timer_(*this, asio::query(executor, asio::execution::context))
    {
    }

    static nanoseconds now() noexcept { return now_on<Clock>(); }

protected:
    void wake_at(nanoseconds when) noexcept
    {
        if (!timer_.set(when))
            timer_.retry_soon();
    }
    bool try_wake_at(nanoseconds when) noexcept { return timer_.set(when); }
    void sleep() noexcept { timer_.clear(); }

    virtual void wake(ready_list& ready) noexcept = 0;
    virtual void woken() noexcept {}

    void take_all(waiter_list& out) noexcept override
    {
        sleep();
        Base::take_all(out);
    }

private:
    using reference = boost::intrusive_ptr<timed_state>;

    void timer_returned() noexcept
    {
        this->update([&](ready_list& ready) {
            if (timer_.reset_after_return())
                wake(ready);
        });
        woken();
    }

    void shut_down() noexcept override
    {
        Base::shut_down();
        this->guarded([&] { timer_.shut_down(); });
    }
    void forget_context() noexcept override
    {
        timer_.shut_down();
        Base::forget_context(); // last: the executor that it gives up may own the context
    }

    // The timer with its deadline. As an intrusive_task it posts the expiry to the strand of a
    // confined state, or a retry.
    class wake_timer final : intrusive_task {
    public:
        wake_timer(timed_state& owner, asio::execution_context& context)
            : intrusive_task(&wake_timer::run_posted), owner_(owner),
              timer_(std::in_place, inline_executor(context))
        {
        }

        // Returns whether timer_returned() will follow.
        bool set(nanoseconds when) noexcept
        {
            handle_missed_expiry();
            deadline_ = when;
            if (phase_ == phase::armed && when < armed_for_)
                cancel();
            return phase_ != phase::idle || arm();
        }

        // Posts a call of timer_returned().
        void retry_soon() noexcept
        {
            reference keep_alive(&owner_);
            if (timer_ && owner_.object_executor().post(*this)) {
                keep_alive.detach();
                phase_ = phase::returning;
            }
        }

        void clear() noexcept
        {
            handle_missed_expiry();
            deadline_ = never;
            if (phase_ == phase::armed)
                cancel();
        }

        // The outstanding wait or post has ended. Returns false if the context was destroyed.
        bool reset_after_return() noexcept
        {
            phase_ = phase::idle;
            deadline_ = never;
            return timer_.has_value();
        }

        // The context is being destroyed, or the state gives it up.
        void shut_down() noexcept
        {
            handle_missed_expiry();
            timer_.reset();
        }

    private:
        enum class phase {
            idle,      // nothing is outstanding
            armed,     // the timer waits until armed_for_
            returning, // the wait was cancelled, or a retry is posted; timer_returned() follows
        };
        static constexpr nanoseconds never = nanoseconds::max();
        static constexpr std::size_t memory_size = 128;

        // The timer's completion handler, with a reference to the state. It is only moved, never
        // copied: the reference count of a confined state must not change outside its strand.
        class expiry_handler {
        public:
            using allocator_type = buffer_allocator<void, memory_size>;

            explicit expiry_handler(wake_timer& t) noexcept : timer_(&t), keep_alive_(&t.owner_) {}

            allocator_type get_allocator() const noexcept
            {
                return allocator_type(timer_->memory_);
            }
            template <class Error>
            void operator()(const Error&) noexcept
            {
                timer_->wait_ended(std::move(keep_alive_));
            }

        private:
            wake_timer* timer_;
            reference keep_alive_;
        };

        bool arm() noexcept
        {
            if (!timer_)
                return false;
            try {
                using duration = typename Clock::duration;
                timer_->expires_at(
                    typename Clock::time_point(std::chrono::ceil<duration>(deadline_)));
                timer_->async_wait(expiry_handler(*this));
                phase_ = phase::armed;
                armed_for_ = deadline_;
                return true;
            } catch (...) {
                return false;
            }
        }

        void cancel() noexcept
        {
            phase_ = phase::returning;
            try {
                timer_->cancel();
            } catch (...) { // the wait expires at its time
            }
        }

        // The wait has expired, or was cancelled.
        void wait_ended(reference keep_alive) noexcept
        {
            if constexpr (!Threading::is_confined) {
                owner_.timer_returned();
            } else {
                // run_posted() adopts the reference, or handle_missed_expiry() at the next call.
                keep_alive.detach();
                if (!owner_.object_executor().post(*this))
                    missed_.store(true, std::memory_order_release);
            }
        }

        static void run_posted(intrusive_task& self, task_action action)
        {
            timed_state& owner = static_cast<wake_timer&>(self).owner_;
            const reference keep_alive(&owner, false);
            if (action == task_action::invoke)
                owner.timer_returned();
        }

        // Ends a wait whose expiry could not be posted to the strand, and drops its reference.
        void handle_missed_expiry() noexcept
        {
            if constexpr (Threading::is_confined) {
                if (!missed_.load(std::memory_order_acquire))
                    return;
                missed_.store(false, std::memory_order_relaxed);
                phase_ = phase::idle;
                const reference keep_alive(&owner_, false);
            }
        }

        timed_state& owner_;
        std::optional<typename deadline_timer<Clock>::type> timer_;
        phase phase_ = phase::idle;
        nanoseconds deadline_ = never;
        nanoseconds armed_for_ = never;
        std::atomic<bool> missed_{false}; // the expiry could not be posted to the strand
        alignas(std::max_align_t) std::byte memory_[memory_size];
    };

    wake_timer timer_;
};

extern template class timed_state<thread_safe, default_clock>;
extern template class timed_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
