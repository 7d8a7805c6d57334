// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/wait/wait_state.hpp>

namespace turnstile::inline v0_1::detail {

template <class Threading>
void wait_state<Threading>::start(waiter& w) noexcept
{
    mutex_.lock();
    ++waiting_;
    if (w.is_pending()) {
        if (shut_down_) [[unlikely]] {
            --waiting_;
            mutex_.unlock();
            w.destroy();
            return;
        }
        // An operation that waits at two objects may reach one that was destroyed.
        if (!alive_.load(std::memory_order_relaxed)) [[unlikely]] {
            w.abort();
        } else if (arrivals_grant_others_) {
            return start_and_grant(w);
        } else if (!admit(w)) {
            keep_context_running();
            mutex_.unlock(); // w may be destroyed from here on
            return;
        }
    }
    commit(w);
}

template <class Threading>
void wait_state<Threading>::start_and_grant(waiter& w) noexcept
{
    update_locked([&](ready_list& ready) {
        if (admit_and_grant(w, ready))
            ready.push_back(w);
        else
            keep_context_running();
    });
}

template <class Threading>
void wait_state<Threading>::track_context_work() noexcept
{
    try {
        object_executor_.track_in(context_work_);
    } catch (...) {
        // The executor has no memory to track work: the wait continues without it.
    }
}

template <class Threading>
bool wait_state<Threading>::reopen(waiter& w) noexcept
{
    if (shut_down_ || !alive_.load(std::memory_order_relaxed)) {
        w.abort();
        return false;
    }
    w.reopen();
    ++waiting_;
    keep_context_running();
    return true;
}

template <class Threading>
void wait_state<Threading>::schedule_and_end_work() noexcept
{
    const work_guard done = context_work_.take();
    unlock_and_post(!drain_.ready().empty() && drain_.schedule());
}

template <class Threading>
void wait_state<Threading>::post_foreign(waiter& w) noexcept
{
    ready_list ready = this->ready();
    ready.push_back(w);
    post_foreign(ready);
}

// Each waiter is posted by itself. If its executor has no memory for it, its grant is passed on,
// and the waiter is postponed. It is not destroyed, because Asio needs memory from the same
// executor to destroy a coroutine.
template <class Threading>
void wait_state<Threading>::post_foreign(ready_list& ready) noexcept
{
    if (drain_.has_postponed())
        drain_.post_postponed();
    unlock_and_schedule();
    while (!ready.foreign().empty()) {
        waiter& w = ready.foreign().take_front();
        if (w.foreign->post()) [[likely]]
            continue;
        mutex_.lock();
        revoke(w, wait_decision::aborted(), ready);
        unlock_and_schedule();
        postpone(w);
    }
    release_handles_reference(this, ready);
}

template <class Threading>
void wait_state<Threading>::postpone(waiter& w) noexcept
{
    if (w.is_proxy)
        return w.invoke();
    const wait_state_ptr<Threading> keep_alive(
        this); // w may complete once it is postponed, and drop the last
    {
        std::scoped_lock lock(mutex_);
        if (!shut_down_ && alive_.load(std::memory_order_relaxed))
            return drain_.postpone(w);
    }
    w.destroy(); // there may be no later wake-up to post it
}

template <class Threading>
void wait_state<Threading>::revoke(waiter& w, wait_decision instead, ready_list& ready) noexcept
{
    if (!w.is_granted())
        return;
    w.decide(instead);
    take_back(w, ready);
}

template <class Threading>
void wait_state<Threading>::revoke(waiter& w, wait_decision instead) noexcept
{
    update([&](ready_list& ready) { revoke(w, instead, ready); });
}

template <class Threading>
void wait_state<Threading>::cancel(cancel_link& link) noexcept
{
    update([&](ready_list& ready) {
        waiter* w = link.target;
        if (!w)
            return;
        if (w->is_pending()) {
            remove(*w);
            w->abort();
            ready.push_back(*w);
            reconsider(ready);
        } else {
            // Its completion is posted already, and reads the decision when it runs.
            revoke(*w, wait_decision::aborted(), ready);
            if (drain_.has_postponed()) [[unlikely]]
                drain_.post_postponed();
        }
    });
}

template <class Threading>
void wait_state<Threading>::unlink(cancel_link& link) noexcept
{
    std::scoped_lock lock(mutex_);
    if (link.target)
        unlink_locked(*link.target);
}

template <class Threading>
void wait_state<Threading>::unlink_locked(waiter& w) noexcept
{
    if (w.cancellation)
        w.cancellation->target = nullptr;
    w.cancellation = nullptr;
}

template <class Threading>
void wait_state<Threading>::drop(waiter& w) noexcept
{
    update([&](ready_list& ready) {
        unlink_locked(w);
        if (!w.is_granted())
            return;
        if (alive_.load(std::memory_order_relaxed))
            take_back(w, ready);
        else
            return_handle(w, ready);
    });
}

template <class Threading>
bool wait_state<Threading>::retire() noexcept
{
    return update([&](ready_list& ready) {
        retire_locked(ready);
        return keep_for_handles();
    });
}

template <class Threading>
void wait_state<Threading>::retire_locked(ready_list& ready) noexcept
{
    alive_.store(false, std::memory_order_release);
    decide_all(ready, [](waiter& w) { w.abort(); });
    if (drain_.has_postponed()) [[unlikely]]
        drain_.post_postponed();
}

template <class Threading>
void wait_state<Threading>::abort_with_object(waiter& w) noexcept
{
    update([&](ready_list& ready) {
        if (outlives_object(w))
            return;
        w.abort();
        return_handle(w, ready);
    });
}

template <class Threading>
void wait_state<Threading>::shut_down() noexcept
{
    // The state may outlive the context, but its work and its executor must not.
    work_guard done;
    posting_executor executor;
    waiter_list dropped;
    {
        std::scoped_lock lock(mutex_);
        shut_down_ = true;
        take_all(dropped);
        waiting_ = 0;
        while (!drain_.ready().empty())
            dropped.push_back(drain_.ready().take_front());
        ready_queue postponed = drain_.take_postponed();
        while (!postponed.empty())
            dropped.push_back(postponed.take_front());
        // Destroying one handler may cancel the operation of another, which is in no queue.
        for (waiter& w : dropped) {
            unlink_locked(w);
            if (w.is_pending())
                w.abort();
        }
        done = context_work_.take();
        executor = std::exchange(object_executor_, posting_executor());
    }
    while (!dropped.empty())
        take_front(dropped).destroy();
}

namespace {

// The number of threads that have called an object from inside a context and have ended.
std::atomic<std::size_t> ended_threads{0};

void count_when_thread_ends() noexcept
{
    struct counter {
        ~counter() { ended_threads.fetch_add(1, std::memory_order_relaxed); }
    };
    thread_local const counter at_end;
    static_cast<void>(&at_end);
}

} // namespace

template <class Threading>
bool wait_state<Threading>::called_from_wrong_strand() noexcept
{
    const auto self = std::this_thread::get_id();
    const auto inside = draining_thread_.load(std::memory_order_relaxed);
    if (inside != std::thread::id() && inside != self)
        return true;
    const std::size_t ended = ended_threads.load(std::memory_order_relaxed);
    if (!object_executor_.is_running_elsewhere()) {
        count_when_thread_ends();
        last_thread_inside_.store(self, std::memory_order_relaxed);
        ended_threads_then_.store(ended, std::memory_order_relaxed);
        return false;
    }
    const auto last = last_thread_inside_.load(std::memory_order_relaxed);
    return last != std::thread::id() && last != self &&
           ended_threads_then_.load(std::memory_order_relaxed) == ended;
}

template class wait_state<thread_safe>;
template class wait_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
