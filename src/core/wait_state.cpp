#include <turnstile/core/detail/wait_state.hpp>

namespace turnstile::detail {

template <class Threading>
void wait_state<Threading>::start(waiter& w) noexcept
{
    if (w.undecided()) {
        std::unique_lock lock(mutex_);
        if (shut_down_) {
            lock.unlock();
            w.destroy();
            return;
        }
        if (!admit(w)) {
            if (home_work_.index() == 0)
                home_work_ = home_.track();
            return; // queued: once the lock is released, w may be gone at any moment
        }
    }
    waiter_list ready;
    ready.push_back(w);
    delivery_.send(ready);
}

// Nobody is left in the queue. The work on the context is given up only after the waiters
// are sent: from then on their posts keep it running.
template <class Threading>
void wait_state<Threading>::commit_last(waiter_list& ready) noexcept
{
    const work_guard done = std::exchange(home_work_, work_guard());
    mutex_.unlock();
    delivery_.send(ready);
}

template <class Threading>
void wait_state<Threading>::cancel(cancel_link& link) noexcept
{
    update([&](waiter_list& ready) {
        waiter* w = link.target;
        if (!w)
            return;
        if (w->undecided()) {
            w->waiter_hook::unlink();
            w->abort();
            ready.push_back(*w);
            reconsider(ready);
        } else if (w->granted()) {
            w->abort(); // it is on its way, and will be told so when it arrives
            take_back(*w, ready);
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
    if (w.canceller)
        w.canceller->target = nullptr;
    w.canceller = nullptr;
}

template <class Threading>
void wait_state<Threading>::abandon(waiter& w) noexcept
{
    update([&](waiter_list& ready) {
        unlink_locked(w);
        if (w.granted() && alive_.load(std::memory_order_relaxed))
            take_back(w, ready);
    });
}

template <class Threading>
void wait_state<Threading>::give_up(waiter& w, waiter_list& ready) noexcept
{
    {
        std::scoped_lock lock(mutex_);
        if (w.granted()) {
            w.abort();
            take_back(w, ready);
        }
    }
    w.destroy();
}

template <class Threading>
void wait_state<Threading>::retire() noexcept
{
    leave_context();
    update([&](waiter_list& ready) {
        alive_.store(false, std::memory_order_release);
        decide_all(ready, [](waiter& w) { w.abort(); });
    });
}

template <class Threading>
void wait_state<Threading>::shut_down() noexcept
{
    // The handlers may own the object, and so the last other reference to this block.
    const wait_state_ptr<Threading> keep_alive(this);
    waiter_list doomed;
    update([&](waiter_list&) {
        shut_down_ = true;
        take_all(doomed);
    });
    while (!doomed.empty())
        take_front(doomed).destroy();
}

template <class Threading>
bool wait_state<Threading>::called_from_wrong_strand() noexcept
{
    const auto self = std::this_thread::get_id();
    if (!home_.outside_running_strand()) {
        last_inside_.store(self, std::memory_order_relaxed);
        return false;
    }
    const auto last = last_inside_.load(std::memory_order_relaxed);
    return last != std::thread::id() && last != self;
}

template class wait_state<thread_safe>;
template class wait_state<strand_confined>;

} // namespace turnstile::detail
