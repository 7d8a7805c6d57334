#include <turnstile/core/detail/wait_state.hpp>

namespace turnstile::detail {

template <class Threading>
void wait_state<Threading>::start(waiter& w) noexcept
{
    mutex_.lock();
    ++waiting_;
    ready_list decided = ready();
    if (w.undecided()) {
        if (shut_down_) [[unlikely]] {
            --waiting_;
            mutex_.unlock();
            w.destroy();
            return;
        }
        if (!admit(w, decided)) {
            if (home_work_.index() == 0)
                home_work_ = home_.track();
            return commit(decided); // from here on w may be gone at any moment
        }
    }
    decided.push_back(w);
    commit(decided);
}

template <class Threading>
void wait_state<Threading>::send_last() noexcept
{
    const work_guard done = std::exchange(home_work_, work_guard());
    const bool claimed = delivery_.claim();
    mutex_.unlock();
    if (claimed)
        delivery_.post();
}

// One post for each. Where an executor has no memory for it, the handler is destroyed, and
// what it was granted goes to the next.
template <class Threading>
void wait_state<Threading>::send_elsewhere(ready_list& ready) noexcept
{
    while (!ready.elsewhere().empty()) {
        waiter& w = take_front(ready.elsewhere());
        if (w.elsewhere->post()) [[likely]]
            continue;
        mutex_.lock();
        if (w.granted()) {
            w.abort();
            take_back(w, ready);
        }
        send_home();
        w.destroy();
    }
}

template <class Threading>
void wait_state<Threading>::cancel(cancel_link& link) noexcept
{
    update([&](ready_list& ready) {
        waiter* w = link.target;
        if (!w)
            return;
        if (w->undecided()) {
            remove(*w);
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
    update([&](ready_list& ready) {
        unlink_locked(w);
        if (w.granted() && alive_.load(std::memory_order_relaxed))
            take_back(w, ready);
    });
}

template <class Threading>
void wait_state<Threading>::retire() noexcept
{
    update([&](ready_list& ready) {
        alive_.store(false, std::memory_order_release);
        decide_all(ready, [](waiter& w) { w.abort(); });
    });
}

template <class Threading>
void wait_state<Threading>::shut_down() noexcept
{
    // The handlers may own the object, and so the last other reference to this block. And
    // the block may outlive the context, but an executor must not.
    const wait_state_ptr<Threading> keep_alive(this);
    work_guard done;
    completion_target gone;
    waiter_list doomed;
    {
        std::scoped_lock lock(mutex_);
        shut_down_ = true;
        take_all(doomed);
        waiting_ = 0;
        doomed.splice(doomed.end(), delivery_.ready());
        done = std::exchange(home_work_, work_guard());
        gone = std::exchange(home_, completion_target());
    }
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
