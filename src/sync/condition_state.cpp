#include <turnstile/sync/detail/condition_state.hpp>

#include <algorithm>
#include <iterator>

namespace turnstile::detail {

// ------------------------------------------------------------ one who waits ----

template <class Threading>
void condition_waiter<Threading>::bind(condition_user& user, bool has_predicate,
                                       condition_state<Threading>& condition,
                                       permit_gate<Threading>* mutex)
{
    user_ = &user;
    has_predicate_ = has_predicate;
    condition_ = &condition;
    mutex_ = mutex;
    if (mutex && !elsewhere && mutex->home() != condition.home())
        crossing_.emplace(condition.home(), *this);
}

// Called where the handler is to run: by the condition when it has decided, and by the mutex
// when it has the lock for us, or is gone.
template <class Threading>
void condition_waiter<Threading>::run(waiter& self, how what)
{
    auto& w = static_cast<condition_waiter&>(self);
    if (what == how::destroy) {
        if (w.relock_)
            w.mutex_->abandon(*w.relock_);
        w.condition_->leave(w);
        return w.complete_(w, how::destroy);
    }
    if (w.is_without_lock_) {
        if (!w.relock_ && w.queue_for_lock())
            return;
        const bool locked = w.mutex_->settle(*w.relock_);
        w.relock_.reset();
        if (!locked) {
            w.condition_->refuse(w, verdict::aborted());
        } else {
            w.adopt_lock();
            if (w.has_predicate_ && !w.is_satisfied())
                return;
        }
    }
    w.condition_->leave(w);
    w.complete_(w, how::invoke);
}

// Whether it has to wait for the lock: then it may be gone already.
template <class Threading>
bool condition_waiter<Threading>::queue_for_lock() noexcept
{
    relock_.emplace(*this);
    if (mutex_->try_acquire(1)) {
        relock_->grant();
        return false;
    }
    relock_->elsewhere = elsewhere ? elsewhere : crossing_ ? &crossing_->way : nullptr;
    mutex_->start(*relock_);
    return true;
}

// Whether it may complete; otherwise it waits again, and may be gone already.
template <class Threading>
bool condition_waiter<Threading>::is_satisfied() noexcept
{
    if (!condition_->is_due(*this))
        return true;
    const verdict now = user_->test();
    if (now.is_refused())
        condition_->refuse(*this, now);
    if (!now.must_wait())
        return true;

    const auto mutex = mutex_;
    let_go_of_lock();
    if (condition_->wait_again(*this)) {
        mutex->release(1);
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
void condition_state<Threading>::start(waiter_type& w) noexcept
{
    if (!w.undecided())
        return wait_state<Threading>::start(w);
    const auto mutex = w.mutex_;
    w.let_go_of_lock();
    wait_state<Threading>::start(w); // w cannot complete before it has the lock
    mutex->release(1);
}

template <class Threading>
void condition_state<Threading>::notify_awaited(std::size_t n) noexcept
{
    this->update([&](ready_list& ready) {
        for (; n != 0 && !this->queue_.empty(); --n) {
            waiter_type& w = as_own(this->queue_.front());
            w.horizon_ = arrivals_;
            call(w, 1, ready);
        }
    });
}

template <class Threading>
void condition_state<Threading>::notify_all_awaited() noexcept
{
    this->update([&](ready_list& ready) {
        while (!this->queue_.empty()) {
            waiter_type& w = as_own(this->queue_.front());
            w.called_with_all_ = true;
            call(w, 0, ready);
        }
    });
}

template <class Threading>
bool condition_state<Threading>::wait_again(waiter_type& w) noexcept
{
    return this->update([&](ready_list& ready) {
        if (!w.granted() || !this->reopen(w))
            return false;
        // Behind the nearest before it who waits, as it did at first.
        auto behind = this->queue_.begin();
        for (auto place = places_.iterator_to(w); place != places_.begin();) {
            if ((--place)->undecided()) {
                behind = std::next(this->queue_.iterator_to(*place));
                break;
            }
        }
        this->queue_.insert(behind, w);
        awaited_.store(true, std::memory_order_release);
        w.called_with_all_ = false;
        pass_on(w, w.carried_, ready);
        return true;
    });
}

template <class Threading>
void condition_state<Threading>::leave(waiter_type& w) noexcept
{
    if (!w.placed_)
        return;
    this->update([&](ready_list& ready) {
        const std::uint64_t used = w.called_with_all_ ? 0 : 1;
        if (w.granted() && w.carried_ > used)
            pass_on(w, w.carried_ - used, ready);
        w.place_hook::unlink();
    });
}

// Everything below runs under the lock.

template <class Threading>
bool condition_state<Threading>::admit(waiter& queued) noexcept
{
    waiter_type& w = as_own(queued);
    w.ticket_ = arrivals_++;
    w.placed_ = true;
    places_.push_back(w);
    this->queue_.push_back(w);
    awaited_.store(true, std::memory_order_release);
    return false;
}

template <class Threading>
void condition_state<Threading>::reconsider(ready_list&) noexcept
{
    note_who_waits();
}

// To those who wait, behind w; not to one who is on its way, which may take its time.
template <class Threading>
void condition_state<Threading>::take_back(waiter& queued, ready_list& ready) noexcept
{
    waiter_type& w = as_own(queued);
    auto next = this->queue_.begin();
    while (next != this->queue_.end() && as_own(*next).ticket_ < w.ticket_)
        ++next;
    for (; w.carried_ != 0 && next != this->queue_.end(); --w.carried_) {
        waiter_type& called = as_own(*next++);
        called.horizon_ = w.horizon_;
        call(called, 1, ready);
    }
    w.carried_ = 0;
}

// To the next behind `from` that has been there when they were given.
template <class Threading>
void condition_state<Threading>::pass_on(waiter_type& from, std::uint64_t n,
                                         ready_list& ready) noexcept
{
    from.carried_ -= n;
    auto place = std::next(places_.iterator_to(from));
    while (place != places_.end() && !place->undecided() && !place->granted())
        ++place; // it has been cancelled
    if (n == 0 || place == places_.end() || place->ticket_ >= from.horizon_)
        return;
    place->horizon_ = std::max(place->horizon_, from.horizon_);
    if (place->undecided())
        call(*place, n, ready);
    else
        place->carried_ += n;
}

template <class Threading>
void condition_state<Threading>::call(waiter_type& w, std::uint64_t carried,
                                      ready_list& ready) noexcept
{
    w.waiter_hook::unlink();
    w.carried_ = carried;
    w.grant();
    ready.push_back(w);
    note_who_waits();
}

template <class Threading>
void condition_state<Threading>::note_who_waits() noexcept
{
    awaited_.store(!this->queue_.empty(), std::memory_order_release);
}

// Those abroad have nowhere to come back to.
template <class Threading>
void condition_state<Threading>::shut_down() noexcept
{
    wait_state<Threading>::shut_down();
    place_list abroad;
    this->guarded([&] {
        for (auto it = places_.begin(); it != places_.end();) {
            waiter_type& w = *it++;
            if (!w.is_abroad())
                continue;
            w.place_hook::unlink();
            w.placed_ = false;
            abroad.push_back(w);
        }
    });
    while (!abroad.empty()) {
        waiter_type& w = abroad.front();
        abroad.pop_front();
        if (w.mutex_->withdraw(*w.relock_)) // else it is in a queue of this context
            w.destroy();
    }
}

template class condition_waiter<thread_safe>;
template class condition_waiter<strand_confined>;
template class condition_state<thread_safe>;
template class condition_state<strand_confined>;

} // namespace turnstile::detail
