// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/detail/condition_state.hpp>

#include <utility>

namespace turnstile::inline v0_1::detail {

// ------------------------------------------------------------ one who waits ----

template <class Threading>
void condition_waiter<Threading>::bind(condition_user& user, bool has_predicate,
                                       condition_state<Threading>& condition,
                                       semaphore_state<Threading>* mutex)
{
    user_ = &user;
    has_predicate_ = has_predicate;
    condition_ = &condition;
    mutex_ = mutex;
    comes_back_ = mutex && !foreign && mutex->object_executor() != condition.object_executor();
}

// Called where the handler is to run: by the condition when it has decided, and by the mutex
// when it has the lock for us, or is gone.
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
        if (!w.relock_ && w.queue_for_lock())
            return;
        const bool locked = w.mutex_->confirm_grant(*w.relock_);
        w.relock_.reset();
        if (!locked && w.mutex_->is_alive())
            return run(self,
                       action); // its executor had no memory: it has come without, and waits again
        if (!locked) {
            w.condition_->revoke(w, wait_decision::aborted());
        } else {
            w.adopt_lock();
            if (w.has_predicate_ && !w.is_satisfied())
                return;
        }
    }
    w.complete_(w, task_action::invoke);
}

// Called where the mutex completes. If the handler has an executor of its own, its waiter goes
// there itself, and this is called only if there is no memory for that.
template <class Threading>
void condition_waiter<Threading>::relock::run(waiter& self, task_action action)
{
    condition_waiter& w = static_cast<relock&>(self).owner;
    if (action == task_action::invoke && w.foreign)
        w.condition_->keep_for_later(w);
    else if (action == task_action::invoke && w.comes_back_)
        w.condition_->bring_home(w);
    else
        condition_waiter::run(w, action);
}

// Whether it has to wait for the lock: then it may be gone already.
template <class Threading>
bool condition_waiter<Threading>::queue_for_lock() noexcept
{
    relock_.emplace(*this);
    if (mutex_->try_acquire(1, semaphore_state<Threading>::as_handle)) {
        relock_->grant();
        return false;
    }
    relock_->foreign = this->foreign;
    relock_->is_proxy = true;
    mutex_->start(*relock_);
    return true;
}

// Whether it may complete; otherwise it waits again, and may be gone already.
template <class Threading>
bool condition_waiter<Threading>::is_satisfied() noexcept
{
    if (!condition_->is_due(*this))
        return true;
    const wait_decision decision = user_->test();
    if (decision.is_refused())
        condition_->revoke(*this, decision);
    if (!decision.is_pending())
        return true;

    const auto mutex = mutex_;
    let_go_of_lock();
    if (condition_->wait_again(*this)) {
        mutex->unlock();
        return false;
    }
    adopt_lock();
    return true;
}

template <class Threading>
void condition_waiter<Threading>::let_go_of_lock() noexcept
{
    user_->let_go_of_lock();
    is_without_lock_ = true;
}

template <class Threading>
void condition_waiter<Threading>::adopt_lock() noexcept
{
    user_->adopt_lock();
    is_without_lock_ = false;
}

// -------------------------------------------------------------- all of them ----

template <class Threading>
void condition_state<Threading>::start(waiter& w) noexcept
{
    if (!w.is_pending())
        return wait_state<Threading>::start(w);
    const auto mutex = as_own(w).mutex_;
    as_own(w).let_go_of_lock();
    wait_state<Threading>::start(w); // w cannot complete before it has the lock
    mutex->unlock();
}

template <class Threading>
void condition_state<Threading>::notify_awaited(std::size_t n) noexcept
{
    this->update([&](ready_list& ready) {
        ++given_;
        for (; n != 0 && !line_.empty(); --n)
            call(*line_.begin(), true, ready);
    });
}

// Everybody has it, so it need not be passed on.
template <class Threading>
void condition_state<Threading>::notify_all_awaited() noexcept
{
    this->update([&](ready_list& ready) {
        while (!line_.empty())
            call(*line_.begin(), false, ready);
    });
}

template <class Threading>
bool condition_state<Threading>::wait_again(waiter_type& w) noexcept
{
    return this->update([&](ready_list& ready) {
        if (!w.is_granted() || !this->reopen(w))
            return false;
        enqueue(w);
        line_.insert(w);
        pass_on(w, ready);
        return true;
    });
}

template <class Threading>
void condition_state<Threading>::keep_for_later(waiter_type& w) noexcept
{
    this->revoke(w, wait_decision::aborted());
    this->postpone(w);
}

// Everything below runs under the lock.

template <class Threading>
bool condition_state<Threading>::admit(waiter& queued) noexcept
{
    waiter_type& w = as_own(queued);
    enqueue(w);
    w.arrival_ = ++arrivals_;
    line_.push_back(w);
    return false;
}

template <class Threading>
void condition_state<Threading>::enqueue(waiter_type& w) noexcept
{
    w.seen_ = given_;
    this->queue_.push_back(w);
    awaited_.store(true, std::memory_order_release);
}

// It may have left the line before, if its execution context is being destroyed.
template <class Threading>
void condition_state<Threading>::remove(waiter& queued) noexcept
{
    waiter_type& w = as_own(queued);
    if (w.arrival_hook::is_linked())
        line_.erase(line_.iterator_to(w));
    w.waiter_hook::unlink();
}

template <class Threading>
void condition_state<Threading>::reconsider(ready_list&) noexcept
{
    note_who_waits();
}

template <class Threading>
void condition_state<Threading>::take_back(waiter& w, ready_list& ready) noexcept
{
    pass_on(as_own(w), ready);
}

template <class Threading>
void condition_state<Threading>::take_all(waiter_list& out) noexcept
{
    line_.clear();
    wait_state<Threading>::take_all(out);
    note_who_waits();
}

// Notifications are alike: the one that `from` has may be for a waiter that has seen it, if
// another that is for `from` has gone elsewhere. So what counts is the last that was given.
template <class Threading>
void condition_state<Threading>::pass_on(waiter_type& from, ready_list& ready) noexcept
{
    if (!std::exchange(from.is_notified_, false) || this->queue_.empty())
        return;
    waiter_type& next = as_own(this->queue_.front());
    if (next.seen_ != given_)
        call(next, true, ready);
}

template <class Threading>
void condition_state<Threading>::call(waiter_type& w, bool with_notification,
                                      ready_list& ready) noexcept
{
    remove(w);
    w.is_notified_ = with_notification;
    w.grant();
    ready.push_back(w);
    note_who_waits();
}

template <class Threading>
void condition_state<Threading>::note_who_waits() noexcept
{
    awaited_.store(!this->queue_.empty(), std::memory_order_release);
}

template class condition_waiter<thread_safe>;
template class condition_waiter<strand_confined>;
template class condition_state<thread_safe>;
template class condition_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
