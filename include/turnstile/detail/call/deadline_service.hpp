// SPDX-License-Identifier: BSL-1.0
// The deadlines of the calls on an execution context, with one timer for all of them. The
// supervisors of timeout, retry and hedge use it (supervision.hpp). Most limits are removed before
// they expire. The timer is therefore set only for an earlier deadline, and left alone when a
// deadline is removed, so that in the usual case neither starting nor stopping a limit is a system
// call.
//
// The timer is outstanding work of the context, and must not keep run() from returning when no
// deadline is left. When the last one is removed, a task is posted that looks again, and cancels
// the timer if there is still none. One call with a limit after another thus keeps the timer.
//
// deadline_entry is a deadline, a member of the call that it limits:
// - idle: it belongs to the call.
// - waiting: it is in the tree of the service, ordered by time.
// - fired: the service has taken it out, and has posted it to the executor of the call, which
//   passes it to arrive(). Meanwhile the call may stop it, or start it again.
//
// Invariants: at most one wait of the timer is outstanding, in memory of the service. Starting and
// stopping take O(log n), and allocate nothing. An entry is posted or destroyed without the lock. A
// call exists as long as its entry is waiting or fired. If the timer cannot be set again, because
// Asio has no memory for it, the first entry arrives early and tries.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/util/synchronization.hpp>
#include <turnstile/detail/wait/timed_state.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/intrusive/set_hook.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

namespace turnstile::inline v0_1::detail {

class deadline_tree;

// As a task it runs on the executor of the call after it has fired; or it is destroyed, fired or
// waiting, with its context.
class deadline_entry : public intrusive_task,
                       public boost::intrusive::set_base_hook<
                           boost::intrusive::link_mode<boost::intrusive::normal_link>,
                           boost::intrusive::optimize_size<true>> {
protected:
    explicit deadline_entry(run_function run) noexcept : intrusive_task(run) {}
    ~deadline_entry() = default;

private:
    friend class deadline_tree;
    friend class deadline_scheduler;

    enum class phase : unsigned char { idle, waiting, fired };
    enum class effect : unsigned char { expire, stop, restart };

    // Posts the task to the executor of the call. Returns false if there is no memory for it.
    virtual bool post() noexcept = 0;

    nanoseconds when_{};
    deadline_entry* next_ = nullptr; // of those that fire together
    phase phase_ = phase::idle;
    effect effect_ = effect::expire; // of a fired entry, when it arrives
};

// The service without its timer, which depends on the clock. Compiled in src/.
class TURNSTILE_EXPORT deadline_scheduler : public asio::execution_context::service {
public:
    // Starts an idle entry, or restarts it. Returns whether it was idle and is not any more.
    // Throws std::bad_alloc if the timer has no memory; the entry is then unchanged.
    bool start(deadline_entry& entry, nanoseconds when);

    struct stopped {
        bool was_waiting; // so it is idle now; a fired entry arrives later
        bool needs_look;  // it was the last one: the caller calls look_again()
    };
    stopped stop(deadline_entry& entry) noexcept;
    // Posts the second look to an executor of the context.
    void look_again(const posting_executor& executor) noexcept;

    // Stops an entry by letting it arrive soon. Returns false if it is idle.
    bool recall(deadline_entry& entry) noexcept;

    enum class arrival { expired, stopped, restarted };
    // Ends the flight of a fired entry. It is idle afterwards, or waits again if it was restarted.
    arrival arrive(deadline_entry& entry) noexcept;

    // The number of waiting entries, for tests.
    std::size_t size() noexcept;

protected:
    explicit deadline_scheduler(asio::execution_context& context);
    ~deadline_scheduler();

    // The wait of the timer has expired, or was cancelled.
    void wait_ended(bool has_expired) noexcept;

private:
    enum class timer_phase {
        idle,      // no wait is outstanding
        armed,     // a wait is outstanding
        returning, // the wait was cancelled; wait_ended() follows
    };
    class second_look final : public intrusive_task {
    public:
        explicit second_look(deadline_scheduler& s) noexcept : intrusive_task(&run), self_(&s) {}

    private:
        static void run(intrusive_task& task, task_action action);

        deadline_scheduler* self_;
    };

    // The timer. The last three functions are called under the lock.
    virtual nanoseconds now() const noexcept = 0;
    virtual bool arm_timer(nanoseconds when) noexcept = 0; // false without memory
    virtual void cancel_timer() noexcept = 0;
    virtual void destroy_timer() noexcept = 0;

    bool arm() noexcept;
    void arm_or_fire(deadline_entry*& fired) noexcept;
    void disarm() noexcept;
    void fire(deadline_entry* first) noexcept;
    void shutdown() override;

    spin_mutex mutex_;
    timer_phase timer_phase_ = timer_phase::idle;
    bool is_look_posted_ = false;
    bool is_shut_down_ = false;
    nanoseconds armed_for_{};
    std::unique_ptr<deadline_tree> tree_;
    second_look look_;
};

template <clock_policy Clock>
class TURNSTILE_EXPORT deadline_service final : public deadline_scheduler {
public:
    using key_type = deadline_service;
    static inline asio::execution_context::id id;

    explicit deadline_service(asio::execution_context& context)
        : deadline_scheduler(context), timer_(std::in_place, inline_executor(context))
    {
    }

private:
    static constexpr std::size_t memory_size = 128;

    struct expiry_handler {
        using allocator_type = buffer_allocator<void, memory_size>;

        deadline_service* self;

        allocator_type get_allocator() const noexcept { return allocator_type(self->memory_); }
        template <class Error>
        void operator()(const Error& ec) const noexcept
        {
            self->wait_ended(!ec);
        }
    };

    nanoseconds now() const noexcept override { return now_on<Clock>(); }
    bool arm_timer(nanoseconds when) noexcept override
    {
        try {
            using duration = typename Clock::duration;
            timer_->expires_at(typename Clock::time_point(std::chrono::ceil<duration>(when)));
            timer_->async_wait(expiry_handler{this});
            return true;
        } catch (...) {
            return false;
        }
    }
    void cancel_timer() noexcept override
    {
        try {
            timer_->cancel();
        } catch (...) { // the wait expires at its time
        }
    }
    void destroy_timer() noexcept override { timer_.reset(); }

    std::optional<typename deadline_timer<Clock>::type> timer_; // none after the shutdown
    alignas(std::max_align_t) std::byte memory_[memory_size];
};

extern template class deadline_service<default_clock>;

} // namespace turnstile::inline v0_1::detail
