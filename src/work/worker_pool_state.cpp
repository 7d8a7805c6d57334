// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/operation.hpp>
#include <turnstile/work/detail/worker_pool_state.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>

namespace turnstile::inline v0_1::detail {
namespace {

// The exception of an error code, or bad_alloc without memory for it.
std::exception_ptr exception_with(const error_code& ec) noexcept
{
    try {
        return std::make_exception_ptr(system_error(ec));
    } catch (...) { // the message of a system_error is in memory
        return std::current_exception();
    }
}

void delete_all(queue_node_list& jobs) noexcept
{
    while (!jobs.empty())
        delete static_cast<pool_job*>(take_front(jobs));
}

template <class List>
void delete_workers(List& workers) noexcept
{
    workers.clear_and_dispose([](auto* w) { delete w; });
}

nanoseconds time_between(nanoseconds from, nanoseconds to) noexcept
{
    return std::max(saturating_sub(to, from), nanoseconds::zero());
}

} // namespace

template <class Threading>
strand_call<Threading>::~strand_call()
{
    if (pool_)
        pool_->drop_posted(*worker_);
}

template <class Threading>
void strand_call<Threading>::operator()()
{
    const auto keep_alive = std::move(pool_);
    keep_alive->run_on_strand(*worker_);
}

// On the executor of the pool.
template <class Threading>
void pool_worker<Threading>::run_task(intrusive_task& task, task_action action)
{
    auto& self = static_cast<pool_worker&>(task);
    strand_call<Threading> call(*self.pool_, self);
    if (action == task_action::destroy)
        return;
    try {
        self.dispatch(std::move(call));
    } catch (...) {
        // The strand has no memory: the call was destroyed, and has notified the state.
    }
}

template <class Threading>
worker_pool_state<Threading>::~worker_pool_state()
{
    while (!jobs_.empty())
        delete &jobs_.take_next();
    delete_workers(idle_);
}

// Runs f(ready) under the lock, and does the rest when the lock is released.
template <class Threading>
template <class F>
auto worker_pool_state<Threading>::change(F&& f) noexcept
{
    struct after_unlock {
        ~after_unlock()
        {
            if (posted || has_rest) [[unlikely]]
                state.finish(posted, has_rest);
        }
        worker_pool_state& state;
        worker* posted = nullptr;
        bool has_rest = false;
    } after{*this};
    return this->update([&](ready_list& ready) {
        struct at_end {
            ~at_end()
            {
                after.posted = std::exchange(state.first_posted_, nullptr);
                state.last_posted_ = nullptr;
                after.has_rest = std::exchange(state.has_rest_, false);
            }
            worker_pool_state& state;
            after_unlock& after;
        } const end{*this, after};
        return f(ready);
    });
}

template <class Threading>
void worker_pool_state<Threading>::finish(worker* posted, bool has_rest) noexcept
{
    while (posted) {
        worker& w = *std::exchange(posted, posted->next_posted_); // may run before post returns
        if (!post(w)) [[unlikely]]
            drop_posted(w);
    }
    if (has_rest)
        finish_rest();
}

template <class Threading>
void worker_pool_state<Threading>::finish_rest() noexcept
{
    const wait_state_ptr<Threading> keep_alive(this);
    worker_list surplus;
    queue_node_list discarded;
    this->guarded([&] {
        surplus.swap(rest_of_workers_);
        discarded.swap(rest_of_jobs_);
    });
    delete_workers(surplus);
    if (discarded.empty())
        return;
    std::size_t count = 0;
    for (; !discarded.empty(); ++count) {
        const pool_job_ptr j(static_cast<pool_job*>(take_front(discarded)));
        discard(*j);
    }
    change([&](ready_list& ready) {
        discarding_ -= count;
        settle(ready);
    });
}

template <class Threading>
void worker_pool_state<Threading>::finish_change() noexcept
{
    change([](ready_list&) {});
}

template <class Threading>
bool worker_pool_state<Threading>::post(worker& w) noexcept
{
    boost::intrusive_ptr<worker_pool_state> reference(this);
    if (!this->object_executor().post(w)) [[unlikely]]
        return false;
    reference.detach(); // run_task() adopts it
    return true;
}

// For the hooks, which are called under the lock: a post runs no function of the user.
template <class Threading>
void worker_pool_state<Threading>::post_locked() noexcept
{
    worker* posted = std::exchange(first_posted_, nullptr);
    last_posted_ = nullptr;
    while (posted) {
        worker& w = *std::exchange(posted, posted->next_posted_);
        if (!post(w) && unpost(w)) [[unlikely]]
            retire_worker(w); // it has not begun, and has no strand
    }
}

template <class Threading>
void worker_pool_state<Threading>::append(worker& w) noexcept
{
    w.is_posted_ = true;
    w.next_posted_ = nullptr;
    (last_posted_ ? last_posted_->next_posted_ : first_posted_) = &w;
    last_posted_ = &w;
}

// An idle worker begins.
template <class Threading>
void worker_pool_state<Threading>::add(worker& w) noexcept
{
    w.phase_ = phase_type::posted;
    ++posted_;
    ++active_;
    append(w);
}

// One worker for each queued job, at most.
template <class Threading>
void worker_pool_state<Threading>::wake_workers() noexcept
{
    while (may_take() && posted_ < jobs_.size() && active_ < workers_ && !idle_.empty()) {
        worker& w = idle_.front();
        idle_.pop_front();
        add(w);
    }
}

template <class Threading>
void worker_pool_state<Threading>::retire_worker(worker& w) noexcept
{
    w.phase_ = phase_type::idle;
    --active_;
    if (made_ > workers_) {
        --made_;
        rest_of_workers_.push_back(w);
        has_rest_ = true;
    } else {
        idle_.push_front(w);
    }
}

template <class Threading>
void worker_pool_state<Threading>::become_idle(worker& w) noexcept
{
    w.give_back_strand();
    change([&](ready_list& ready) {
        retire_worker(w);
        settle(ready);
    });
}

template <class Threading>
void worker_pool_state<Threading>::left(worker& w) noexcept
{
    const bool has_left = change([&](ready_list&) {
        w.is_left_ = w.is_posted_;
        return !w.is_posted_;
    });
    if (has_left)
        become_idle(w);
}

template <class Threading>
bool worker_pool_state<Threading>::unpost(worker& w) noexcept
{
    w.is_posted_ = false;
    if (w.phase_ == phase_type::posted) {
        --posted_;
        w.phase_ = phase_type::leaving;
        return true;
    }
    return w.phase_ == phase_type::leaving && std::exchange(w.is_left_, false);
}

template <class Threading>
void worker_pool_state<Threading>::drop_posted(worker& w) noexcept
{
    if (!change([&](ready_list&) { return unpost(w); }))
        return;
    w.give_back_strand();
    change([&](ready_list& ready) {
        retire_worker(w);
        if (is_idle()) // otherwise a worker would be woken, and find as little memory
            settle(ready);
    });
}

template <class Threading>
void worker_pool_state<Threading>::run_on_strand(worker& w) noexcept
{
    enum { nothing, begins, emits, has_left } action = nothing;
    change([&](ready_list&) {
        if (w.phase_ == phase_type::posted) {
            w.is_posted_ = false;
            action = begins;
        } else if (unpost(w)) {
            action = has_left;
        } else if (w.job_ && std::exchange(w.is_cancelled_, false)) {
            action = emits;
        }
    });
    if (action == begins)
        w.run();
    else if (action == emits)
        w.emit();
    else if (action == has_left)
        become_idle(w);
}

template <class Threading>
pool_job* worker_pool_state<Threading>::take_first(worker& w) noexcept
{
    const nanoseconds now = time();
    return change([&](ready_list& ready) -> pool_job* {
        --posted_;
        pool_job* const j = take_job(w, now);
        settle(ready);
        return j;
    });
}

template <class Threading>
pool_job* worker_pool_state<Threading>::take_job(worker& w, nanoseconds now) noexcept
{
    if (!may_take() || active_ > workers_) {
        w.phase_ = phase_type::leaving;
        return nullptr;
    }
    w.phase_ = phase_type::running;
    pool_job& j = jobs_.take_next();
    totals_.wait_time = saturating_add(totals_.wait_time, time_between(j.submitted, now));
    j.runner = &w;
    w.job_ = &j;
    w.started_ = now;
    w.is_cancelled_ = false;
    w.is_late_ = false;
    busy_.push_back(w);
    if (job_timeout_ != never) {
        // In order, although another thread may have read its clock before.
        latest_deadline_ = std::max(latest_deadline_, saturating_add(now, job_timeout_));
        w.deadline_ = latest_deadline_;
        arm(w.deadline_);
    }
    return &j;
}

// The failed job of a worker: replaces the exception of a job that was too late, and reports it,
// unless there is a caller that does.
template <class Threading>
void worker_pool_state<Threading>::fail_job(worker& w, pool_job& j,
                                            std::exception_ptr& thrown) noexcept
{
    bool is_late = false;
    bool is_reported = false;
    this->guarded([&] {
        is_late = w.is_late_;
        is_reported = !j.has_caller && !abandoned_ && !is_shut_down_;
    });
    if (is_late && failure(thrown).is_cancelled())
        thrown = exception_with(errc::timed_out);
    if (is_reported)
        report_error(j, thrown);
}

template <class Threading>
pool_job* worker_pool_state<Threading>::end_job(worker& w, std::exception_ptr thrown,
                                                bool yields) noexcept
{
    pool_job* j = w.job_;
    if (thrown) [[unlikely]]
        fail_job(w, *j, thrown);
    if (!j->has_caller)
        delete std::exchange(j, nullptr);
    return finish_job(w, j, std::move(thrown), yields ? after_job::yield : after_job::next);
}

template <class Threading>
void worker_pool_state<Threading>::dropped(worker& w) noexcept
{
    pool_job* j = w.job_;
    if (!j)
        return left(w);
    if (!j->has_caller)
        delete std::exchange(j, nullptr);
    finish_job(w, j, exception_with(asio::error::operation_aborted), after_job::leave);
    left(w);
}

// `j` is the job of a caller, or null. A job whose caller has left is destroyed before it ends.
template <class Threading>
pool_job* worker_pool_state<Threading>::finish_job(worker& w, pool_job* j,
                                                   std::exception_ptr thrown,
                                                   after_job after) noexcept
{
    const nanoseconds now = time();
    if (j)
        keep_exception(*j, thrown);
    for (;;) {
        pool_job_ptr orphan;
        pool_job* next = nullptr;
        change([&](ready_list& ready) {
            if (pool_job* ended = std::exchange(j, nullptr)) {
                pool_waiter* caller = std::exchange(ended->caller, nullptr);
                if (!caller)
                    return orphan.reset(ended);
                caller->is_entered = false;
                caller->waiter_hook::unlink();
                caller->grant();
                ready.push_back(*caller);
            }
            ++(thrown ? totals_.failed : totals_.done);
            leave_job(w, now);
            if (after == after_job::next) {
                next = take_job(w, now);
            } else if (after == after_job::leave) {
                w.phase_ = phase_type::leaving;
            } else {
                w.phase_ = phase_type::posted;
                ++posted_;
                if (!w.is_posted_)
                    append(w);
            }
            settle(ready);
        });
        if (!orphan)
            return next;
        if (thrown && !failure(thrown).is_cancelled() &&
            !this->guarded([&] { return abandoned_ || is_shut_down_; }))
            report_error(*orphan, thrown);
    }
}

template <class Threading>
void worker_pool_state<Threading>::leave_job(worker& w, nanoseconds now) noexcept
{
    totals_.run_time = saturating_add(totals_.run_time, time_between(w.started_, now));
    w.job_ = nullptr;
    (w.is_late_ ? late_ : busy_).erase(worker_list::s_iterator_to(w));
}

template <class Threading>
wait_decision worker_pool_state<Threading>::take_place_locked() noexcept
{
    if (closed_.load(std::memory_order_relaxed))
        return wait_decision::refused(errc::closed);
    if (!has_room() || !places_.empty())
        return wait_decision::refused(errc::rejected);
    return wait_decision::granted();
}

template <class Threading>
wait_decision worker_pool_state<Threading>::take_place() noexcept
{
    return this->guarded([&] {
        const wait_decision d = take_place_locked();
        if (d.is_granted())
            ++reserved_;
        return d;
    });
}

template <class Threading>
void worker_pool_state<Threading>::give_place_back() noexcept
{
    change([&](ready_list& ready) {
        --reserved_;
        settle(ready);
    });
}

template <class Threading>
wait_decision worker_pool_state<Threading>::enter(pool_job& j) noexcept
{
    const nanoseconds now = time();
    return change([&](ready_list& ready) {
        --reserved_;
        if (discards_) {
            settle(ready);
            return wait_decision::refused(errc::closed);
        }
        enter_locked(j, now);
        return wait_decision::granted();
    });
}

template <class Threading>
wait_decision worker_pool_state<Threading>::try_enter(pool_job& j) noexcept
{
    const nanoseconds now = time();
    return change([&](ready_list&) {
        const wait_decision d = take_place_locked();
        if (d.is_granted())
            enter_locked(j, now);
        return d.is_refused() && d.code() == errc::rejected ? wait_decision::pending() : d;
    });
}

template <class Threading>
void worker_pool_state<Threading>::enter_locked(pool_job& j, nanoseconds now) noexcept
{
    j.submitted = now;
    jobs_.insert(j);
    wake_workers();
}

// The job of async_run.
template <class Threading>
void worker_pool_state<Threading>::enter_of(pool_waiter& w, nanoseconds now) noexcept
{
    w.is_entered = true;
    w.job->caller = &w;
    runs_.push_back(w);
    enter_locked(*w.job, now);
}

template <class Threading>
void worker_pool_state<Threading>::settle(ready_list& ready) noexcept
{
    while (!places_.empty() && has_room()) {
        auto& w = static_cast<pool_waiter&>(take_front(places_));
        if (w.kind == pool_wait::run) {
            enter_of(w, time());
            continue;
        }
        ++reserved_;
        w.grant();
        ready.push_back(w);
    }
    wake_workers();
    disarm();
    if (is_idle())
        this->decide_each(this->queue_, ready, [](waiter& w) { w.grant(); });
}

template <class Threading>
bool worker_pool_state<Threading>::admit(waiter& w) noexcept
{
    auto& p = static_cast<pool_waiter&>(w);
    if (p.kind == pool_wait::idle || p.kind == pool_wait::shutdown) {
        p.decide(is_idle() ? wait_decision::granted() : wait_decision::pending());
        if (p.is_pending())
            this->queue_.push_back(w);
        return !p.is_pending();
    }
    const wait_decision d = take_place_locked();
    if (d.is_refused() && d.code() == errc::rejected) {
        places_.push_back(w);
        return false;
    }
    if (p.kind == pool_wait::run && d.is_granted()) {
        enter_of(p, time());
        post_locked();
        return false;
    }
    p.decide(d);
    if (d.is_granted())
        ++reserved_;
    return true;
}

// A pending waiter was cancelled. Its job leaves the queue, or is cancelled.
template <class Threading>
void worker_pool_state<Threading>::remove(waiter& w) noexcept
{
    w.waiter_hook::unlink();
    auto& p = static_cast<pool_waiter&>(w);
    if (!p.is_entered)
        return;
    p.is_entered = false;
    pool_job& j = *p.job;
    j.caller = nullptr;
    if (!j.runner) {
        jobs_.erase(j);
        ++totals_.discarded;
        return; // the waiter owns it
    }
    p.job = nullptr;
    cancel_job(*static_cast<worker*>(j.runner));
}

template <class Threading>
void worker_pool_state<Threading>::reconsider(ready_list& ready) noexcept
{
    settle(ready);
    post_locked();
}

template <class Threading>
void worker_pool_state<Threading>::take_back(waiter& w, ready_list& ready) noexcept
{
    return_handle(w, ready);
    reconsider(ready);
}

template <class Threading>
void worker_pool_state<Threading>::return_handle(waiter& w, ready_list&) noexcept
{
    if (static_cast<pool_waiter&>(w).kind == pool_wait::submit)
        --reserved_;
}

template <class Threading>
void worker_pool_state<Threading>::take_all(waiter_list& out) noexcept
{
    timer_at_ = never; // the caller stops the timer
    for (waiter& w : runs_) {
        auto& p = static_cast<pool_waiter&>(w);
        if (std::exchange(p.is_entered, false))
            std::exchange(p.job, nullptr)->caller = nullptr;
    }
    out.splice(out.end(), this->queue_);
    out.splice(out.end(), places_);
    out.splice(out.end(), runs_);
}

template <class Threading>
void worker_pool_state<Threading>::cancel_job(worker& w) noexcept
{
    if (is_shut_down_)
        return;
    w.is_cancelled_ = true;
    if (!w.is_posted_)
        append(w);
}

template <class Threading>
void worker_pool_state<Threading>::cancel_all() noexcept
{
    for (worker& w : busy_)
        cancel_job(w);
    for (worker& w : late_)
        cancel_job(w);
}

template <class Threading>
void worker_pool_state<Threading>::close_locked(ready_list& ready) noexcept
{
    closed_.store(true, std::memory_order_release);
    this->decide_each(places_, ready, [](waiter& w) { w.fail(errc::closed); });
}

template <class Threading>
void worker_pool_state<Threading>::discard_locked(ready_list& ready, wait_decision callers) noexcept
{
    discards_ = true;
    while (!jobs_.empty()) {
        pool_job& j = jobs_.take_next();
        ++totals_.discarded;
        if (pool_waiter* caller = std::exchange(j.caller, nullptr)) {
            caller->is_entered = false;
            caller->waiter_hook::unlink();
            caller->decide(callers);
            ready.push_back(*caller);
        } else {
            rest_of_jobs_.push_back(j);
            has_rest_ = true;
            ++discarding_;
        }
    }
}

template <class Threading>
void worker_pool_state<Threading>::cut_off(ready_list& ready) noexcept
{
    // Otherwise only workers are left that have ended their last jobs.
    cut_off_ = cut_off_ || has_jobs();
    discard_locked(ready, wait_decision::refused(errc::closed));
    cancel_all();
}

template <class Threading>
wait_decision worker_pool_state<Threading>::try_idle() noexcept
{
    return this->guarded(
        [&] { return is_idle() ? wait_decision::granted() : wait_decision::pending(); });
}

template <class Threading>
wait_decision worker_pool_state<Threading>::try_shut_down(shutdown_mode mode,
                                                          nanoseconds deadline) noexcept
{
    const nanoseconds now = time();
    return change([&](ready_list& ready) {
        close_locked(ready);
        paused_ = false;
        if (mode == shutdown_mode::discard)
            discard_locked(ready, wait_decision::refused(errc::closed));
        if (!is_idle() && deadline != never) {
            shutdown_at_ = std::min(shutdown_at_, saturating_add(now, deadline));
            if (shutdown_at_ <= now)
                cut_off(ready);
            else
                arm(shutdown_at_);
        }
        settle(ready);
        return is_idle() ? wait_decision::granted() : wait_decision::pending();
    });
}

template <class Threading>
bool worker_pool_state<Threading>::was_cut_off() noexcept
{
    return this->guarded([&] { return cut_off_; });
}

template <class Threading>
bool worker_pool_state<Threading>::abandon() noexcept
{
    return change([&](ready_list& ready) {
        const bool expected =
            !has_jobs() || cut_off_ || is_shut_down_ || this->object_executor().has_stopped();
        close_locked(ready);
        abandoned_ = true;
        if (!is_shut_down_) {
            discard_locked(ready, wait_decision::aborted());
            cancel_all();
        }
        return expected;
    });
}

template <class Threading>
void worker_pool_state<Threading>::shut_down() noexcept
{
    queue_node_list dropped;
    this->guarded([&] {
        is_shut_down_ = true;
        closed_.store(true, std::memory_order_release);
        while (!jobs_.empty()) {
            pool_job& j = jobs_.take_next();
            if (pool_waiter* caller = std::exchange(j.caller, nullptr))
                caller->is_entered = false; // and owns the job
            else
                dropped.push_back(j);
        }
    });
    delete_all(dropped);
    forget_executor();
    wait_state<Threading>::shut_down();
}

template <class Threading>
void worker_pool_state<Threading>::forget_context() noexcept
{
    forget_executor();
    wait_state<Threading>::forget_context(); // last: the executor may own the context
}

template <class Threading>
void worker_pool_state<Threading>::arm(nanoseconds when) noexcept
{
    if (when >= timer_at_)
        return;
    timer_at_ = when;
    set_timer(when);
}

template <class Threading>
void worker_pool_state<Threading>::disarm() noexcept
{
    if (timer_at_ == never || (job_timeout_ != never && !busy_.empty()) ||
        (shutdown_at_ != never && !is_idle()))
        return;
    timer_at_ = never;
    clear_timer();
}

template <class Threading>
void worker_pool_state<Threading>::expire(ready_list& ready) noexcept
{
    timer_at_ = never;
    const nanoseconds now = time();
    if (shutdown_at_ <= now) {
        shutdown_at_ = never;
        if (!is_idle())
            cut_off(ready);
    }
    if (shutdown_at_ != never && !is_idle())
        arm(shutdown_at_);
    if (job_timeout_ == never)
        return;
    while (!busy_.empty() && busy_.front().deadline_ <= now) {
        worker& w = busy_.front();
        w.is_late_ = true;
        late_.splice(late_.end(), busy_, busy_.begin());
        ++totals_.timed_out;
        cancel_job(w);
    }
    if (!busy_.empty())
        arm(busy_.front().deadline_);
}

template <class Threading>
void worker_pool_state<Threading>::set_paused(bool paused) noexcept
{
    change([&](ready_list&) {
        paused_ = paused && !closed_.load(std::memory_order_relaxed);
        wake_workers();
    });
}

template <class Threading>
bool worker_pool_state<Threading>::is_paused() noexcept
{
    return this->guarded([&] { return paused_; });
}

template <class Threading>
void worker_pool_state<Threading>::resize(std::size_t workers)
{
    if (workers == 0)
        throw_error(errc::invalid_argument, "worker_pool: workers must not be 0");
    struct fresh_workers {
        ~fresh_workers() { delete_workers(list); }
        worker_list list;
    } fresh;
    for (bool is_done = false; !is_done;) {
        const std::size_t made = this->guarded([&] { return made_; });
        while (made + fresh.list.size() < workers)
            fresh.list.push_back(*make_worker().release());
        is_done = change([&](ready_list&) {
            const bool enough = made_ + fresh.list.size() >= workers;
            if (!enough)
                return false; // it was made smaller meanwhile
            workers_ = workers;
            for (; made_ < workers; ++made_)
                idle_.splice(idle_.end(), fresh.list, fresh.list.begin());
            for (; made_ > workers && !idle_.empty(); --made_) {
                rest_of_workers_.splice(rest_of_workers_.end(), idle_, idle_.begin());
                has_rest_ = true;
            }
            wake_workers();
            return true;
        });
    }
}

template <class Threading>
worker_pool_stats worker_pool_state<Threading>::stats() noexcept
{
    return this->guarded([&] {
        worker_pool_stats s = totals_;
        s.workers = workers_;
        s.queued = jobs_.size();
        s.running = running();
        s.waiting = this->waiters();
        return s;
    });
}

template class strand_call<thread_safe>;
template class strand_call<strand_confined>;
template class pool_worker<thread_safe>;
template class pool_worker<strand_confined>;
template class worker_pool_state<thread_safe>;
template class worker_pool_state<strand_confined>;
template class timed_state<thread_safe, default_clock, worker_pool_state<thread_safe>>;
template class timed_state<strand_confined, default_clock, worker_pool_state<strand_confined>>;

} // namespace turnstile::inline v0_1::detail
