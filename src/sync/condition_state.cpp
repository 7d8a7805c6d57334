// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/detail/condition_state.hpp>

#include <utility>

namespace turnstile::inline v0_1::detail {

// ---------------------------------------------------------- condition_waiter ----

template <class Threading>
void condition_waiter<Threading>::bind(condition_request_base& request, bool has_predicate,
                                       condition_state<Threading>& condition,
                                       semaphore_state<Threading>* mutex)
{
    request_ = &request;
    has_predicate_ = has_predicate;
    condition_ = &condition;
    mutex_ = mutex;
    mutex_has_other_executor_ =
        mutex && !foreign && mutex->object_executor() != condition.object_executor();
}

// Called on the executor of the handler: by the condition when it has decided the wait, and by the
// mutex when it has granted the lock or is destroyed.
template <class Threading>
void condition_waiter<Threading>::run(waiter& self, task_action action)
{
    auto& w = static_cast<condition_waiter&>(self);
    if (action == task_action::destroy) {
        if (w.relock_)
            w.mutex_->drop(*w.relock_);
        return w.complete_(w, task_action::destroy);
    }
    if (w.is_without_lock_) {
        if (!w.relock_ && w.must_wait_for_lock())
            return;
        const bool locked = w.mutex_->confirm_grant(*w.relock_);
        w.relock_.reset();
        if (!locked && w.mutex_->is_alive())
            return run(self, action); // there was no memory to post the grant: wait again
        if (!locked) {
            w.condition_->revoke(w, wait_decision::aborted());
        } else {
            w.adopt_lock();
            if (w.has_predicate_ && !w.may_complete())
                return;
        }
    }
    w.complete_(w, task_action::invoke);
}

// Called on the executor of the mutex. A foreign waiter is posted to the executor of its handler
// instead, and comes here only if there is no memory for that post.
template <class Threading>
void condition_waiter<Threading>::relock_waiter::run(waiter& self, task_action action)
{
    condition_waiter& w = static_cast<relock_waiter&>(self).owner;
    if (action == task_action::invoke && w.foreign)
        w.condition_->abort_and_postpone(w);
    else if (action == task_action::invoke && w.mutex_has_other_executor_)
        w.condition_->post_to_own_executor(w);
    else
        condition_waiter::run(w, action);
}

// Acquires the lock, or waits for it at the mutex. In the latter case this may be destroyed
// already.
template <class Threading>
bool condition_waiter<Threading>::must_wait_for_lock() noexcept
{
    relock_.emplace(*this);
    if (mutex_->try_acquire(1, semaphore_state<Threading>::one_handle)) {
        relock_->grant();
        return false;
    }
    relock_->foreign = this->foreign;
    relock_->is_proxy = true;
    mutex_->start(*relock_);
    return true;
}

// Tests the predicate. If it is false, waits again; then this may be destroyed already.
template <class Threading>
bool condition_waiter<Threading>::may_complete() noexcept
{
    if (!condition_->is_due(*this))
        return true;
    const wait_decision decision = request_->test_predicate();
    if (decision.is_refused())
        condition_->revoke(*this, decision);
    if (!decision.is_pending())
        return true;

    const auto mutex = mutex_;
    disown_lock();
    if (condition_->wait_again(*this)) {
        mutex->unlock();
        return false;
    }
    adopt_lock();
    return true;
}

template <class Threading>
void condition_waiter<Threading>::disown_lock() noexcept
{
    request_->disown_lock();
    is_without_lock_ = true;
}

template <class Threading>
void condition_waiter<Threading>::adopt_lock() noexcept
{
    request_->adopt_lock();
    is_without_lock_ = false;
}

// ----------------------------------------------------------- condition_state ----

template <class Threading>
void condition_state<Threading>::start(waiter& w) noexcept
{
    if (!w.is_pending())
        return wait_state<Threading>::start(w);
    const auto mutex = downcast(w).mutex_;
    downcast(w).disown_lock();
    wait_state<Threading>::start(w); // w cannot complete before the mutex is unlocked
    mutex->unlock();
}

template <class Threading>
void condition_state<Threading>::notify_awaited(std::size_t n) noexcept
{
    this->update([&](ready_list& ready) {
        ++notifications_;
        for (; n != 0 && !by_arrival_.empty(); --n)
            notify_waiter(*by_arrival_.begin(), true, ready);
    });
}

// All waiters are notified, so none of them needs to hand its notification over.
template <class Threading>
void condition_state<Threading>::notify_all_awaited() noexcept
{
    this->update([&](ready_list& ready) {
        while (!by_arrival_.empty())
            notify_waiter(*by_arrival_.begin(), false, ready);
    });
}

template <class Threading>
bool condition_state<Threading>::wait_again(waiter_type& w) noexcept
{
    return this->update([&](ready_list& ready) {
        if (!w.is_granted() || !this->reopen(w))
            return false;
        enqueue(w);
        by_arrival_.insert(w);
        hand_over_notification(w, ready);
        return true;
    });
}

template <class Threading>
void condition_state<Threading>::abort_and_postpone(waiter_type& w) noexcept
{
    this->revoke(w, wait_decision::aborted());
    this->postpone(w);
}

// Everything below runs under the lock.

template <class Threading>
bool condition_state<Threading>::admit(waiter& queued) noexcept
{
    waiter_type& w = downcast(queued);
    enqueue(w);
    w.arrival_ = ++arrivals_;
    by_arrival_.push_back(w);
    return false;
}

template <class Threading>
void condition_state<Threading>::enqueue(waiter_type& w) noexcept
{
    w.notifications_seen_ = notifications_;
    this->queue_.push_back(w);
    awaited_.store(true, std::memory_order_release);
}

// take_all() has removed w from by_arrival_ already if the execution context is being destroyed.
template <class Threading>
void condition_state<Threading>::remove(waiter& queued) noexcept
{
    waiter_type& w = downcast(queued);
    if (w.arrival_hook::is_linked())
        by_arrival_.erase(by_arrival_.iterator_to(w));
    w.waiter_hook::unlink();
}

template <class Threading>
void condition_state<Threading>::reconsider(ready_list&) noexcept
{
    update_awaited();
}

template <class Threading>
void condition_state<Threading>::take_back(waiter& w, ready_list& ready) noexcept
{
    hand_over_notification(downcast(w), ready);
}

template <class Threading>
void condition_state<Threading>::take_all(waiter_list& out) noexcept
{
    by_arrival_.clear();
    wait_state<Threading>::take_all(out);
    update_awaited();
}

// Notifications are interchangeable: `from` may hold one that was given before the next waiter was
// queued, while one given after that has gone to another waiter. So only the number of the last
// notification counts.
template <class Threading>
void condition_state<Threading>::hand_over_notification(waiter_type& from,
                                                        ready_list& ready) noexcept
{
    if (!std::exchange(from.has_notification_, false) || this->queue_.empty())
        return;
    waiter_type& next = downcast(this->queue_.front());
    if (next.notifications_seen_ != notifications_)
        notify_waiter(next, true, ready);
}

template <class Threading>
void condition_state<Threading>::notify_waiter(waiter_type& w, bool can_hand_over,
                                               ready_list& ready) noexcept
{
    remove(w);
    w.has_notification_ = can_hand_over;
    w.grant();
    ready.push_back(w);
    update_awaited();
}

template <class Threading>
void condition_state<Threading>::update_awaited() noexcept
{
    awaited_.store(!this->queue_.empty(), std::memory_order_release);
}

template class condition_waiter<thread_safe>;
template class condition_waiter<strand_confined>;
template class condition_state<thread_safe>;
template class condition_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
