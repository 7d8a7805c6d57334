// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/detail/post/buffer_allocator.hpp>
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

// Runs the timer's handler where the timer expires, without a detour through an executor:
// the handler takes the state's lock itself, or goes to its strand.
class on_the_spot {
public:
    explicit on_the_spot(asio::execution_context& context) noexcept : context_(&context) {}

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

    friend bool operator==(const on_the_spot& a, const on_the_spot& b) noexcept
    {
        return a.context_ == b.context_;
    }
    friend bool operator!=(const on_the_spot& a, const on_the_spot& b) noexcept
    {
        return !(a == b);
    }

private:
    asio::execution_context* context_;
};

// The timer that follows a clock. Asio's own, for which a clock needs at most a
// specialisation of asio::wait_traits; a test may put another one here.
template <class Clock>
struct deadline_timer {
    using type = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, on_the_spot>;
};

// The time of a clock in the nanoseconds that policies count in.
template <clock_policy Clock>
nanoseconds now_on() noexcept
{
    return saturating_nanoseconds(Clock::now().time_since_epoch());
}

// A wait_state that can be woken at a time: one timer for the earliest deadline of all who
// wait, however many they are.
//
//   wake_at(when)   under the lock: wake() is to be called at that time, and not at the one
//                   named before
//   try_wake_at(when)   the same for whoever is about to wait: false, and nothing is changed,
//                   if there is no memory for it; then it had better not wait
//   sleep()         under the lock: nobody waits for a time any more
//   wake(ready)     called under the lock, at the time named or later; or earlier, when the
//                   timer is on its way back from a deadline that is no longer the one. It
//                   lets those go who may, and calls wake_at() again if somebody is left
//   woken()         called after that, without the lock
//
// All this is for the derived state, whose lock (or strand) guards the timer. At most one
// operation of the timer is out at a time, in memory that is here. It is not moved for a
// later deadline, but left to expire; for an earlier one, or none, it is called back, and
// armed again when it arrives. So the timer is work for run() only while somebody waits.
//
// That operation holds a reference to the state. Whoever takes all waiters out (close, the
// object's destruction, the end of the context) calls it back: a state that overrides
// take_all() calls this one's. The timer itself goes with its context, which the state may
// outlive.
//
// Asio keeps timers in a heap of its own, which may have to grow. If there is no memory for
// that when a timer comes back to be armed again, the state posts itself to its executor (in
// memory that is here), to look again, until there is. On a strand without memory for that
// either, the deadline waits for the next call.
//
// Base is wait_state, or a state derived from it that is to have an alarm as well.
template <class Threading, clock_policy Clock = default_clock, class Base = wait_state<Threading>>
class TURNSTILE_EXPORT timed_state : public Base {
public:
    template <class Executor, class... Args>
    explicit timed_state(const Executor& executor, Args&&... args)
        : Base(executor, std::forward<Args>(args)...),
          alarm_(*this, asio::query(executor, asio::execution::context))
    {
    }

    static nanoseconds now() noexcept { return now_on<Clock>(); }

protected:
    void wake_at(nanoseconds when) noexcept
    {
        if (!alarm_.set(when))
            alarm_.look_again();
    }
    bool try_wake_at(nanoseconds when) noexcept { return alarm_.set(when); }
    void sleep() noexcept { alarm_.clear(); }

    virtual void wake(ready_list& ready) noexcept = 0;
    virtual void woken() noexcept {}

    void take_all(waiter_list& out) noexcept override
    {
        sleep();
        Base::take_all(out);
    }

private:
    using reference = boost::intrusive_ptr<timed_state>;

    void ring() noexcept
    {
        this->update([&](ready_list& ready) {
            if (alarm_.arrived())
                wake(ready);
        });
        woken();
    }

    void shut_down() noexcept override
    {
        Base::shut_down();
        this->guarded([&] { alarm_.end(); });
    }
    void forget_context() noexcept override
    {
        alarm_.end();
        Base::forget_context(); // last: what it drops may own the context
    }

    class alarm final : intrusive_task {
    public:
        alarm(timed_state& owner, asio::execution_context& context)
            : intrusive_task(&alarm::run_tick), owner_(owner),
              timer_(std::in_place, on_the_spot(context))
        {
        }

        // Whether it will ring.
        bool set(nanoseconds when) noexcept
        {
            settle_missed();
            wanted_ = when;
            if (phase_ == phase::armed && when < armed_for_)
                call_back();
            return phase_ != phase::idle || arm();
        }

        // As if it had rung right now; soon, that is.
        void look_again() noexcept
        {
            reference keep_alive(&owner_);
            if (timer_ && owner_.object_executor().post(*this)) {
                keep_alive.detach();
                phase_ = phase::returning;
            }
        }

        void clear() noexcept
        {
            settle_missed();
            wanted_ = never;
            if (phase_ == phase::armed)
                call_back();
        }

        // What was out is back; whether there is still a context to work with.
        bool arrived() noexcept
        {
            phase_ = phase::idle;
            wanted_ = never;
            return timer_.has_value();
        }

        // The context goes, and with it the timer.
        void end() noexcept
        {
            settle_missed();
            timer_.reset();
        }

    private:
        enum class phase { idle, armed, returning };
        static constexpr nanoseconds never = nanoseconds::max();
        static constexpr std::size_t memory_size = 128;

        // The timer's handler, which owns a reference. It is only ever moved: the counter of
        // a confined state is not to be touched outside its strand.
        class bell {
        public:
            using allocator_type = buffer_allocator<void, memory_size>;

            explicit bell(alarm& a) noexcept : alarm_(&a), keep_alive_(&a.owner_) {}

            allocator_type get_allocator() const noexcept
            {
                return allocator_type(alarm_->memory_);
            }
            template <class Error>
            void operator()(const Error&) noexcept
            {
                alarm_->expired(std::move(keep_alive_));
            }

        private:
            alarm* alarm_;
            reference keep_alive_;
        };

        bool arm() noexcept
        {
            if (!timer_)
                return false;
            try {
                using duration = typename Clock::duration;
                timer_->expires_at(
                    typename Clock::time_point(std::chrono::ceil<duration>(wanted_)));
                timer_->async_wait(bell(*this));
                phase_ = phase::armed;
                armed_for_ = wanted_;
                return true;
            } catch (...) {
                return false;
            }
        }

        void call_back() noexcept
        {
            phase_ = phase::returning;
            try {
                timer_->cancel();
            } catch (...) { // it expires in its own time
            }
        }

        void expired(reference keep_alive) noexcept
        {
            if constexpr (!Threading::is_confined) {
                owner_.ring();
            } else {
                keep_alive.detach(); // from here on it is the tick's, or kept until the next call
                if (!owner_.object_executor().post(*this))
                    missed_.store(true, std::memory_order_release);
            }
        }

        static void run_tick(intrusive_task& self, task_action action)
        {
            timed_state& owner = static_cast<alarm&>(self).owner_;
            const reference keep_alive(&owner, false);
            if (action == task_action::invoke)
                owner.ring();
        }

        void settle_missed() noexcept
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
        nanoseconds wanted_ = never;
        nanoseconds armed_for_ = never;
        std::atomic<bool> missed_{false}; // it expired, and there was no way into the strand
        alignas(std::max_align_t) std::byte memory_[memory_size];
    };

    alarm alarm_;
};

extern template class timed_state<thread_safe, default_clock>;
extern template class timed_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
