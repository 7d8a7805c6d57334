#include <turnstile/core/detail/wait_state.hpp>

namespace turnstile::detail {

template <class Threading>
void wait_state<Threading>::start(waiter& w) noexcept
{
    mutex_.lock();
    ++waiting_;
    if (w.undecided()) {
        if (shut_down_) [[unlikely]] {
            --waiting_;
            mutex_.unlock();
            w.destroy();
            return;
        }
        // Who waits for more than one object may come to one that is gone.
        if (!alive_.load(std::memory_order_relaxed)) [[unlikely]] {
            w.abort();
        } else if (newcomers_serve_) {
            return start_among_others(w);
        } else if (!admit(w)) {
            keep_context_running();
            mutex_.unlock(); // from here on w may be gone at any moment
            return;
        }
    }
    send(w);
}

template <class Threading>
void wait_state<Threading>::start_among_others(waiter& w) noexcept
{
    update_locked([&](ready_list& ready) {
        if (admit_among(w, ready))
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
    unlock_and_post(!delivery_.ready().empty() && delivery_.claim());
}

template <class Threading>
void wait_state<Threading>::send_elsewhere(waiter& w) noexcept
{
    --waiting_;
    send_home();
    if (w.elsewhere->post()) [[likely]]
        return;
    update([&](ready_list& ready) { pass_on(w, verdict::aborted(), ready); });
    w.destroy();
}

// One post for each. Where an executor has no memory for it, the handler is destroyed, and
// what it was granted goes to the next.
template <class Threading>
void wait_state<Threading>::send_elsewhere(ready_list& ready) noexcept
{
    while (!ready.elsewhere().empty()) {
        waiter& w = ready.elsewhere().take_front();
        if (w.elsewhere->post()) [[likely]]
            continue;
        mutex_.lock();
        pass_on(w, verdict::aborted(), ready);
        send_home();
        w.destroy();
    }
}

template <class Threading>
void wait_state<Threading>::pass_on(waiter& w, verdict instead, ready_list& ready) noexcept
{
    if (!w.granted())
        return;
    w.decide(instead);
    take_back(w, ready);
}

template <class Threading>
void wait_state<Threading>::refuse(waiter& w, verdict why) noexcept
{
    update([&](ready_list& ready) { pass_on(w, why, ready); });
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
        } else {
            pass_on(*w, verdict::aborted(),
                    ready); // it is on its way, and will be told so when it arrives
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
bool wait_state<Threading>::withdraw(waiter& w) noexcept
{
    return update([&](ready_list& ready) {
        if (!w.undecided())
            return false;
        remove(w);
        w.abort();
        --waiting_;
        reconsider(ready);
        return true;
    });
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
    // The block may outlive the context, but an executor must not.
    work_guard done;
    completion_target gone;
    waiter_list doomed;
    {
        std::scoped_lock lock(mutex_);
        shut_down_ = true;
        take_all(doomed);
        waiting_ = 0;
        while (!delivery_.ready().empty())
            doomed.push_back(delivery_.ready().take_front());
        done = home_work_.take();
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
