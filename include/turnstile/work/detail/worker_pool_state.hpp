// SPDX-License-Identifier: BSL-1.0
// The state of a worker_pool: the queued jobs, the workers, and the waiters of async_submit,
// async_run, async_idle and async_shutdown. It depends neither on the type of the jobs nor on the
// handler, which are in worker_pool_worker.hpp, nor on the clock: timed_worker_pool_state adds it.
//
// A worker runs one job after the other for as long as jobs are queued. Its phases:
//   idle      In idle_. It has no strand and no reference to the state.
//   posted    It was posted to the executor of the pool, to take a job.
//   running   It runs jobs on its strand; in busy_ or late_ while it has one.
//   leaving   It found no further job. It is idle when its operation has completed (left()), and
//             its task has run if that is posted.
// A worker that is not idle is active. At most `workers_` are, unless the pool was made smaller
// since. Its task is posted to the executor of the pool, and dispatched from there to its strand:
// to begin, or to emit the cancellation of its job; once at a time (is_posted_).
//
// A place is a queued job, or a granted async_submit that has not entered its job (reserved_). It
// enters when it completes, so cancelling it before that submits nothing.
//
// Invariants: the strand, the posted task and the operation of a worker hold references to the
// state or outstanding work. The timer is set only while a job can time out, or jobs are left when
// a shutdown has a deadline. No job is destroyed, and no function of the user called, under the
// lock.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/work/detail/worker_pool_job.hpp>
#include <turnstile/work/worker_pool_options.hpp>

#include <boost/asio/cancellation_type.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class worker_pool_state;
template <class Threading>
class pool_worker;

using worker_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

// Runs a task of a worker on its strand. If it is destroyed instead, the state is notified.
template <class Threading>
class TURNSTILE_EXPORT strand_call {
public:
    // Adopts a reference to the state.
    strand_call(worker_pool_state<Threading>& s, pool_worker<Threading>& w) noexcept
        : pool_(&s, false), worker_(&w)
    {
    }
    strand_call(strand_call&&) noexcept = default;
    strand_call& operator=(strand_call&&) = delete;
    ~strand_call();
    void operator()();

private:
    boost::intrusive_ptr<worker_pool_state<Threading>> pool_;
    pool_worker<Threading>* worker_;
};

template <class Threading>
class TURNSTILE_EXPORT pool_worker : public worker_hook, public intrusive_task {
public:
    enum class phase_type : unsigned char { idle, posted, running, leaving };
    using state_type = worker_pool_state<Threading>;

    explicit pool_worker(state_type& s) noexcept : intrusive_task(&pool_worker::run_task), pool_(&s)
    {
    }
    virtual ~pool_worker() = default;

    // Dispatches the call to the strand, which it takes if it has none. Called on the executor of
    // the pool. Throws if there is no memory for it.
    virtual void dispatch(strand_call<Threading> call) = 0;
    virtual void give_back_strand() noexcept = 0;
    // Takes and runs jobs. Called on the strand. The worker may be destroyed when it returns.
    virtual void run() noexcept = 0;
    // Emits the cancellation signal of the running job. Called on the strand.
    virtual void emit() noexcept = 0;

    state_type& pool() const noexcept { return *pool_; }
    // The running job; used on the strand.
    pool_job* job() const noexcept { return job_; }

private:
    friend class worker_pool_state<Threading>;
    static void run_task(intrusive_task& task, task_action action);

    state_type* pool_; // owns the worker
    pool_job* job_ = nullptr;
    // The lock of the state guards the members below.
    nanoseconds started_{};                     // of the running job
    nanoseconds deadline_ = nanoseconds::max(); // of the running job
    pool_worker* next_posted_ = nullptr; // the next one to be posted after the lock is released
    phase_type phase_ = phase_type::idle;
    bool is_posted_ = false;
    bool is_cancelled_ = false; // the running job is cancelled, and the signal was not emitted
    bool is_late_ = false;      // the running job has reached its deadline
    bool is_left_ = false;      // leaving, and only the posted task is awaited
};

enum class pool_wait : unsigned char { submit, run, idle, shutdown };

struct pool_waiter : waiter {
    using waiter::waiter;
    ~pool_waiter()
    {
        if (!is_entered)
            delete job;
    }
    pool_wait kind = pool_wait::submit;
    bool is_entered = false; // the job of `run` is queued or running
    pool_job* job = nullptr; // of `run`
};

// The options that do not depend on the job.
struct pool_limits {
    std::size_t capacity;
    nanoseconds job_timeout;
    bool by_priority;
};

template <class Threading>
class TURNSTILE_EXPORT worker_pool_state : public wait_state<Threading> {
public:
    using worker = pool_worker<Threading>;
    using worker_list = boost::intrusive::list<worker>;

    bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }

    // Takes a place. Refused with errc::closed or errc::rejected.
    wait_decision take_place() noexcept;
    void give_place_back() noexcept;
    // Enters a job in a place that was taken before; the state then owns it. Refused with
    // errc::closed if the jobs were discarded meanwhile.
    wait_decision enter(pool_job& j) noexcept;
    // Both. Pending if there is no place.
    wait_decision try_enter(pool_job& j) noexcept;

    wait_decision try_idle() noexcept;
    // Begins to shut down, and discards jobs. Pending if jobs are left.
    wait_decision try_shut_down(shutdown_mode mode, nanoseconds deadline) noexcept;
    bool was_cut_off() noexcept;

    void set_paused(bool paused) noexcept;
    bool is_paused() noexcept;
    void resize(std::size_t workers);
    worker_pool_stats stats() noexcept;
    std::size_t capacity() const noexcept { return capacity_; }
    // The pool is being destroyed: discards and cancels all jobs. Returns false if some were left
    // that no shutdown had cut off, and the context runs.
    bool abandon() noexcept;

    // For the workers. Takes the first job; null if there is none, and the worker is leaving then.
    pool_job* take_first(worker& w) noexcept;
    // Ends the running job, and takes the next one; null if there is none, and the worker is
    // leaving then. With `yields` it is posted instead, to continue behind other work.
    pool_job* end_job(worker& w, std::exception_ptr thrown, bool yields) noexcept;
    // A leaving worker has left: it is idle, or destroyed.
    void left(worker& w) noexcept;
    // The operation of a worker was destroyed. Its job, if any, ends, and is not reported.
    void dropped(worker& w) noexcept;
    // On the strand of the worker: begins, or emits a cancellation.
    void run_on_strand(worker& w) noexcept;
    // The posted task of a worker was destroyed, or could not be posted.
    void drop_posted(worker& w) noexcept;

protected:
    template <class Executor>
    worker_pool_state(const Executor& executor, const pool_limits& limits)
        : wait_state<Threading>(executor), capacity_(limits.capacity),
          job_timeout_(limits.job_timeout), jobs_(limits.by_priority)
    {
    }
    ~worker_pool_state() override;

    void take_all(waiter_list& out) noexcept override;
    void shut_down() noexcept override;
    void forget_context() noexcept override;
    // The timer has expired: cancels jobs that are too late.
    void expire(ready_list& ready) noexcept;
    // Then, without the lock.
    void finish_change() noexcept;

private:
    // The parts of the derived classes. The first five are called without the lock.
    virtual std::unique_ptr<worker> make_worker() = 0;
    virtual void report_error(pool_job& j, std::exception_ptr thrown) noexcept = 0;
    virtual void discard(pool_job& j) noexcept = 0;
    virtual void keep_exception(pool_job& j, std::exception_ptr thrown) noexcept = 0;
    virtual void forget_executor() noexcept = 0; // it must not outlive its context
    virtual nanoseconds time() const noexcept = 0;
    virtual void set_timer(nanoseconds when) noexcept = 0;
    virtual void clear_timer() noexcept = 0;

    friend worker;
    using phase_type = typename worker::phase_type;
    static constexpr nanoseconds never = nanoseconds::max();

    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void return_handle(waiter& w, ready_list& ready) noexcept override;

    // The functions below are called under the lock.
    bool has_room() const noexcept { return jobs_.size() + reserved_ < capacity_; }
    // A posted worker does nothing without a job.
    bool is_idle() const noexcept
    {
        return jobs_.empty() && reserved_ == 0 && active_ == posted_ && discarding_ == 0;
    }
    bool has_jobs() const noexcept { return !jobs_.empty() || running() != 0; }
    bool may_take() const noexcept { return !paused_ && !jobs_.empty(); }
    wait_decision take_place_locked() noexcept;
    void enter_locked(pool_job& j, nanoseconds now) noexcept;
    void enter_of(pool_waiter& w, nanoseconds now) noexcept;
    void wake_workers() noexcept;
    void add(worker& w) noexcept;
    void append(worker& w) noexcept;
    void settle(ready_list& ready) noexcept;
    pool_job* take_job(worker& w, nanoseconds now) noexcept;
    void leave_job(worker& w, nanoseconds now) noexcept;
    void retire_worker(worker& w) noexcept;
    std::size_t running() const noexcept { return busy_.size() + late_.size(); }
    void close_locked(ready_list& ready) noexcept;
    void discard_locked(ready_list& ready, wait_decision callers) noexcept;
    void cancel_job(worker& w) noexcept;
    void cancel_all() noexcept;
    void arm(nanoseconds when) noexcept;
    void disarm() noexcept;
    void cut_off(ready_list& ready) noexcept;
    void post_locked() noexcept;
    // The worker has no task any more; whether it has left.
    bool unpost(worker& w) noexcept;

    // Without the lock.
    template <class F>
    auto change(F&& f) noexcept;
    void finish(worker* posted, bool has_rest) noexcept;
    void finish_rest() noexcept;
    bool post(worker& w) noexcept;
    void become_idle(worker& w) noexcept;
    void fail_job(worker& w, pool_job& j, std::exception_ptr& thrown) noexcept;
    enum class after_job : unsigned char { next, yield, leave };
    pool_job* finish_job(worker& w, pool_job* j, std::exception_ptr thrown,
                         after_job after) noexcept;

    const std::size_t capacity_;
    const nanoseconds job_timeout_;
    policy_atomic<Threading, bool> closed_{false};
    // The lock guards all members below.
    bool paused_ = false;
    bool discards_ = false;     // queued jobs were discarded, and no job enters
    bool cut_off_ = false;      // the deadline of a shutdown has passed while jobs were left
    bool abandoned_ = false;    // the pool was destroyed
    bool is_shut_down_ = false; // the context is being destroyed
    std::size_t workers_ = 0;
    std::size_t made_ = 0; // the number of workers, of all phases
    std::size_t active_ = 0;
    std::size_t posted_ = 0; // the workers in the phase `posted`
    std::size_t reserved_ = 0;
    std::size_t discarding_ = 0; // jobs on their way to on_discard
    nanoseconds shutdown_at_ = never;
    nanoseconds timer_at_ = never;
    worker_pool_stats totals_;
    pool_jobs jobs_;
    worker_list idle_;
    worker_list busy_; // in the order in which their jobs started
    worker_list late_; // their jobs have reached their deadlines
    nanoseconds latest_deadline_ = nanoseconds::min();
    waiter_list places_;
    waiter_list runs_; // their jobs are queued or running; queue_ has `idle` and `shutdown`
    // The work that is done after the lock is released.
    worker* first_posted_ = nullptr;
    worker* last_posted_ = nullptr;
    bool has_rest_ = false;        // one of the next two lists is not empty
    queue_node_list rest_of_jobs_; // to be discarded
    worker_list rest_of_workers_;  // to be destroyed
};

// The state with its timer. The core's functions are reached through it.
template <class Threading, clock_policy Clock>
class timed_worker_pool_state : public timed_state<Threading, Clock, worker_pool_state<Threading>> {
    using base = timed_state<Threading, Clock, worker_pool_state<Threading>>;

public:
    using base::base;

private:
    nanoseconds time() const noexcept final { return base::now(); }
    void set_timer(nanoseconds when) noexcept final { this->wake_at(when); }
    void clear_timer() noexcept final { this->sleep(); }
    void wake(ready_list& ready) noexcept final { this->expire(ready); }
    void woken() noexcept final { this->finish_change(); }
};

extern template class strand_call<thread_safe>;
extern template class strand_call<strand_confined>;
extern template class pool_worker<thread_safe>;
extern template class pool_worker<strand_confined>;
extern template class worker_pool_state<thread_safe>;
extern template class worker_pool_state<strand_confined>;
extern template class timed_state<thread_safe, default_clock, worker_pool_state<thread_safe>>;
extern template class timed_state<strand_confined, default_clock,
                                  worker_pool_state<strand_confined>>;

} // namespace turnstile::inline v0_1::detail
