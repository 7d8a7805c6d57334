// SPDX-License-Identifier: BSL-1.0
// The state of a resource_pool, without the type of the resource: the machine, the waiters of
// async_acquire and async_close, and the one timer. It carries out the actions of the machine in a
// task that it posts to the pool's executor, the pump, so that no operation is made under the lock
// or inside a call of the user. resource_pool_state_waits.hpp has the part that deals with waiters;
// typed_pool_state makes the slots and the calls, which depend on the resource.
//
// Invariants: waiters of async_acquire are granted in the order of their arrival. A granted waiter
// has a leased slot, or the cause of its failure. Slots are released, and resources destroyed,
// without the lock. Leases hold no reference to the state; they share that of the object
// (wait_state::keep_for_handles()).
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/util/random.hpp>
#include <turnstile/detail/wait/observable_state.hpp>
#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/resilience/latency_estimator.hpp>
#include <turnstile/work/detail/resource_pool_call.hpp>
#include <turnstile/work/detail/resource_pool_machine.hpp>
#include <turnstile/work/resource_pool_options.hpp>

#include <boost/asio/error.hpp>
#include <boost/assert/source_location.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/intrusive/set_hook.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// Why a wait has failed: the code, and the exception if there is one.
struct pool_failure {
    error_code code;
    std::exception_ptr exception{};
};

enum class resource_wait : unsigned char { acquire, close };

struct resource_waiter : waiter {
    using waiter::waiter;

    resource_wait kind = resource_wait::acquire;
    nanoseconds deadline = nanoseconds::max();
    nanoseconds since{};
    boost::source_location where;
    pool_slot* slot = nullptr; // of a granted waiter
    pool_failure failed;       // of a granted waiter without a slot
    boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
        deadline_hook;
};

struct earlier_deadline {
    bool operator()(const resource_waiter& a, const resource_waiter& b) const noexcept
    {
        return a.deadline < b.deadline;
    }
};

// A wait_state whose pool ends with its context.
template <class Threading>
class TURNSTILE_EXPORT pool_waits : public wait_state<Threading> {
public:
    using wait_state<Threading>::wait_state;

protected:
    virtual void end_pool() noexcept = 0;
    void shut_down() noexcept override
    {
        end_pool();
        wait_state<Threading>::shut_down();
    }
};

template <class Threading, clock_policy Clock>
class TURNSTILE_EXPORT resource_pool_state
    : public observable_state<Threading, resource_pool_event,
                              timed_state<Threading, Clock, pool_waits<Threading>>>,
      private resource_pool_machine::observer,
      private intrusive_task {
    using base = observable_state<Threading, resource_pool_event,
                                  timed_state<Threading, Clock, pool_waits<Threading>>>;

public:
    using threading = Threading;

    template <class Executor>
    resource_pool_state(const Executor& executor, const resource_pool_options& options,
                        resource_pool_machine::abilities has)
        : base(executor), intrusive_task(&resource_pool_state::run_task),
          machine_(options, has, *this, random_seed()), times_out_(machine_.needs_clock())
    {
    }
    // No cycle keeps the state: calls and the posted pump refer to it, and it refers to neither.

    // Creates the resources of the initial size.
    void open() noexcept
    {
        change([](ready_list&) {});
    }

    // Waits. try_acquire() stores a slot, or the cause of a failure.
    TURNSTILE_HOT wait_decision try_acquire(pool_slot*& slot, pool_failure& failed,
                                            const boost::source_location& where) noexcept
    {
        const nanoseconds now = quick_now();
        return this->guarded([&] {
            if (acquiring_ == 0) {
                slot = take(now, where);
                if (slot) [[likely]]
                    return wait_decision::granted();
            }
            return refusal(failed);
        });
    }
    wait_decision try_close() noexcept;

    // The ends of leases.
    TURNSTILE_HOT void give_back(pool_slot& s) noexcept
    {
        const nanoseconds now = quick_now();
        const bool done = this->guarded([&] {
            return acquiring_ == 0 && !is_orphaned_ &&
                   machine_.give_back_quickly(s, now, armed_for_);
        });
        if (!done) [[unlikely]]
            hand_over(s);
    }
    void give_back_unused(pool_slot& s) noexcept
    {
        end_lease([&] { machine_.give_back(s, base::now(), false); });
    }
    void discard(pool_slot& s) noexcept
    {
        end_lease([&] { machine_.discard(s, base::now()); });
    }
    void detach(pool_slot& s) noexcept
    {
        end_lease([&] { machine_.detach(s); });
    }

    // The calls of the pool's functions.
    bool add(pool_slot& s) noexcept
    {
        return change([&](ready_list&) { return machine_.add(s, base::now()); });
    }
    bool resize(std::size_t max_size) noexcept
    {
        return change([&](ready_list&) { return machine_.resize(max_size, base::now()); });
    }
    void evict_idle() noexcept
    {
        change([&](ready_list&) { machine_.evict_idle(base::now()); });
    }
    void suspend() noexcept
    {
        change([&](ready_list&) { machine_.set_suspended(true); });
    }
    void resume() noexcept
    {
        change([&](ready_list& ready) {
            machine_.set_suspended(false);
            expire(ready);
        });
    }
    void close() noexcept
    {
        change([&](ready_list& ready) { close_locked(ready); });
    }
    // The pool is being destroyed: cancels all operations, and destroys all idle resources.
    void abandon() noexcept;

    bool is_closed() noexcept
    {
        return this->guarded([&] { return machine_.is_closed(); });
    }
    bool is_suspended() noexcept
    {
        return this->guarded([&] { return machine_.is_suspended(); });
    }
    std::size_t max_size() noexcept
    {
        return this->guarded([&] { return machine_.max_size(); });
    }
    error_code last_error() noexcept
    {
        return this->guarded([&] { return cause().code; });
    }
    resource_pool_stats stats() noexcept;

    // For calls, on their strand.
    pool_call_step next_step(pool_call& call) noexcept;
    bool ends_with_drop(pool_call& call) noexcept;
    // The operation has ended, or was dropped. `is_good`: created, usable, reset.
    void end_call(pool_call& call, std::exception_ptr exception, bool is_good) noexcept;

protected:
    ~resource_pool_state() override = default;

    virtual pool_slot_ptr make_slot() = 0;
    virtual pool_call_ptr make_call(const pool_slot_ptr& slot, slot_phase phase) = 0;

private:
    using deadline_set = boost::intrusive::multiset<
        resource_waiter,
        boost::intrusive::member_hook<resource_waiter, decltype(resource_waiter::deadline_hook),
                                      &resource_waiter::deadline_hook>,
        boost::intrusive::compare<earlier_deadline>, boost::intrusive::constant_time_size<false>>;
    static constexpr nanoseconds never = nanoseconds::max();

    // Hooks of the base classes.
    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override { settle_in_update(ready); }
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void return_handle(waiter& w, ready_list& ready) noexcept override;
    bool keep_for_handles() noexcept override;
    void take_all(waiter_list& out) noexcept override;
    void wake(ready_list& ready) noexcept override;
    void end_pool() noexcept override;
    void on_event(const resource_pool_event& event) noexcept override
    {
        this->listeners_.publish(event);
    }

    nanoseconds quick_now() const noexcept
    {
        return times_out_ ? base::now() : nanoseconds::zero();
    }

    // Runs f(ready) under the lock, decides what follows, and destroys what was released.
    template <class F>
    auto change(F&& f) noexcept
    {
        struct after_unlock {
            ~after_unlock() { state->finish(released); }
            boost::intrusive_ptr<resource_pool_state> state;
            slot_work_list released{};
        } after{this};
        return this->update_and_notify([&](ready_list& ready) {
            struct at_end {
                ~at_end()
                {
                    state.settle(ready);
                    state.machine_.take_released(released);
                }
                resource_pool_state& state;
                ready_list& ready;
                slot_work_list& released;
            } const end{*this, ready, after.released};
            return f(ready);
        });
    }
    template <class F>
    void end_lease(F end) noexcept;
    // Returns a slot to the first waiter directly, or to the machine.
    void hand_over(pool_slot& s) noexcept;

    // Under the lock.
    pool_slot* take(nanoseconds now, const boost::source_location& where) noexcept
    {
        pool_slot* const s = machine_.take(now);
        if (s) [[likely]] {
            if (machine_.reports_leaks()) {
                s->where = where;
                set_timer();
            }
            ++quick_waits_;
        }
        return s;
    }
    void settle(ready_list& ready) noexcept;
    void settle_in_update(ready_list& ready) noexcept;
    void set_timer() noexcept;
    void schedule_pump() noexcept;
    void expire(ready_list& ready) noexcept;
    void close_locked(ready_list& ready) noexcept;
    void grant(resource_waiter& w, ready_list& ready) noexcept;
    void fail(resource_waiter& w, const pool_failure& why, ready_list& ready) noexcept;
    void fail_after_creation(ready_list& ready) noexcept;
    // The cause of the last failed creation, until one succeeds.
    pool_failure cause() const noexcept
    {
        return creation_timed_out_ ? pool_failure{errc::timed_out} : cause_;
    }
    // The failure of a caller whose limit has passed.
    pool_failure timed_out() const noexcept
    {
        return machine_.is_down() ? cause() : pool_failure{errc::timed_out};
    }
    // The caller destroys the one before, without the lock.
    void set_cause(pool_failure& failed) noexcept
    {
        std::swap(cause_, failed);
        creation_timed_out_ = false;
    }
    void leave(resource_waiter& w) noexcept;
    static resource_waiter& front(waiter_list& list) noexcept
    {
        return static_cast<resource_waiter&>(list.front());
    }

    TURNSTILE_NOINLINE wait_decision refusal(pool_failure& failed) noexcept;

    // Without the lock.
    void finish(slot_work_list& released) noexcept;
    void run_pump() noexcept;
    bool start_creation() noexcept;
    bool start_operation() noexcept;
    void launch(pool_call_ptr call) noexcept;
    static void run_task(intrusive_task& task, task_action action);

    resource_pool_machine machine_; // the lock guards it and the members below
    const bool times_out_;
    bool pump_is_posted_ = false;
    bool is_orphaned_ = false;
    bool is_abandoned_ = false; // no operation is started any more
    bool is_shut_down_ = false;
    std::size_t acquiring_ = 0; // waiters of async_acquire, which are in queue_
    std::uint64_t quick_waits_ = 0;
    std::uint64_t timed_out_ = 0;
    std::uint64_t rejected_ = 0;
    nanoseconds armed_for_ = never; // the time that the timer is set to
    pool_failure cause_;
    bool creation_timed_out_ = false; // after cause_, which stays until it can be destroyed
    waiter_list closers_;             // waiters of async_close
    deadline_set deadlines_;
    latency_estimator slow_waits_{std::numeric_limits<std::uint32_t>::max()};
};

extern template class timed_state<thread_safe, default_clock, pool_waits<thread_safe>>;
extern template class timed_state<strand_confined, default_clock, pool_waits<strand_confined>>;
extern template class resource_pool_state<thread_safe, default_clock>;
extern template class resource_pool_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail

#include <turnstile/work/detail/resource_pool_state_calls.hpp>
#include <turnstile/work/detail/resource_pool_state_waits.hpp>
