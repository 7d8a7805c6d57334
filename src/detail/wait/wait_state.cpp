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
        // Who waits for more than one object may come to one that is gone.
        if (!alive_.load(std::memory_order_relaxed)) [[unlikely]] {
            w.abort();
        } else if (arrivals_grant_others_) {
            return start_among_others(w);
        } else if (!admit(w)) {
            keep_context_running();
            mutex_.unlock(); // from here on w may be gone at any moment
            return;
        }
    }
    commit(w);
}

template <class Threading>
void wait_state<Threading>::start_among_others(waiter& w) noexcept
{
    update_locked([&](ready_list& ready) {
        if (admit_and_grant(w, ready))
            ready.push_back(w);
        else
            keep_context_running();
    });
}

template <class Threading>
void wait_state<Threading>::track_home() noexcept
{
    try {
        home_.track_in(home_work_);
    } catch (...) {
        // No memory, for an executor that needs some: better to wait without it than not at all.
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
void wait_state<Threading>::send_last() noexcept
{
    const work_guard done = home_work_.take();
    unlock_and_post(!drain_.ready().empty() && drain_.schedule());
}

template <class Threading>
void wait_state<Threading>::send_foreign(waiter& w) noexcept
{
    ready_list ready = this->ready();
    ready.push_back(w);
    send_foreign(ready);
}

// One post for each. Where an executor has no memory for it, what the waiter was granted goes to
// the next, and the waiter is postponed: to destroy a coroutine takes memory, too.
template <class Threading>
void wait_state<Threading>::send_foreign(ready_list& ready) noexcept
{
    if (drain_.has_postponed())
        drain_.post_postponed();
    send_home();
    while (!ready.foreign().empty()) {
        waiter& w = ready.foreign().take_front();
        if (w.foreign->post()) [[likely]]
            continue;
        mutex_.lock();
        revoke(w, wait_decision::aborted(), ready);
        send_home();
        postpone(w);
    }
    release_handles_reference(this, ready);
}

template <class Threading>
void wait_state<Threading>::postpone(waiter& w) noexcept
{
    if (w.is_proxy)
        return w.invoke();
    const wait_state_ptr<Threading> keep_alive(this); // w may go as soon as it is there
    {
        std::scoped_lock lock(mutex_);
        if (!shut_down_ && alive_.load(std::memory_order_relaxed))
            return drain_.postpone(w);
    }
    w.destroy(); // there may be no other wake-up
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
void wait_state<Threading>::revoke(waiter& w, wait_decision why) noexcept
{
    update([&](ready_list& ready) { revoke(w, why, ready); });
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
            // It is on its way, and will be told so when it arrives.
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
    // The block may outlive the context, but an executor must not.
    work_guard done;
    posting_executor gone;
    waiter_list doomed;
    {
        std::scoped_lock lock(mutex_);
        shut_down_ = true;
        take_all(doomed);
        waiting_ = 0;
        while (!drain_.ready().empty())
            doomed.push_back(drain_.ready().take_front());
        ready_queue postponed = drain_.take_postponed();
        while (!postponed.empty())
            doomed.push_back(postponed.take_front());
        // What owns one of them may cancel another, which is in no queue any more.
        for (waiter& w : doomed) {
            unlink_locked(w);
            if (w.is_pending())
                w.abort();
        }
        done = home_work_.take();
        gone = std::exchange(home_, posting_executor());
    }
    while (!doomed.empty())
        take_front(doomed).destroy();
}

namespace {

// How many threads have ended that were inside a context: what they did there is over.
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
    const auto inside = drained_by_.load(std::memory_order_relaxed);
    if (inside != std::thread::id() && inside != self)
        return true;
    const std::size_t ended = ended_threads.load(std::memory_order_relaxed);
    if (!home_.is_left_while_running()) {
        count_when_thread_ends();
        last_inside_.store(self, std::memory_order_relaxed);
        ended_by_then_.store(ended, std::memory_order_relaxed);
        return false;
    }
    const auto last = last_inside_.load(std::memory_order_relaxed);
    return last != std::thread::id() && last != self &&
           ended_by_then_.load(std::memory_order_relaxed) == ended;
}

template class wait_state<thread_safe>;
template class wait_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
