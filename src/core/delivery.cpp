#include <turnstile/core/detail/delivery.hpp>
#include <turnstile/core/detail/wait_state.hpp>

namespace turnstile::detail {

// There was no memory: they stay ready, and go with the next wake-up, for which the context is
// kept running. If there can be none any more, they go now.
template <class Threading>
void delivery<Threading>::not_posted() noexcept
{
    const wait_state_ptr<Threading> reference(&owner_, false);
    work_guard done;
    ready_queue dropped;
    {
        std::scoped_lock lock(owner_.mutex_);
        queued_ = false;
        if (owner_.shut_down_ || !owner_.alive_.load(std::memory_order_relaxed))
            dropped.swap(ready_);
        if (ready_.empty())
            done = owner_.take_idle_work();
        else
            owner_.keep_context_running();
    }
    while (!dropped.empty())
        dropped.take_front().destroy();
}

template <class Threading>
void delivery<Threading>::run(postable& self, how what)
{
    auto& d = static_cast<delivery&>(self);
    const queued_reference reference{d.owner_};
    if (what == how::destroy) [[unlikely]]
        return d.discard();

    d.owner_.mutex_.lock();
    d.queued_ = false;
    if (d.ready_.empty() || d.ready_.has_more() || d.owner_.holds_idle_work())
        return d.drain_locked();
    waiter& only = d.ready_.take_front();
    d.owner_.mutex_.unlock();
    only.invoke();
}

template <class Threading>
void delivery<Threading>::drain_locked()
{
    work_guard done; // given up with the last: until then there may be no memory for a successor
    for (int n = 1; !ready_.empty(); ++n) {
        waiter& next = ready_.take_front();
        const bool more = !ready_.empty();
        if (!more)
            done = owner_.take_idle_work(); // this drain is work by itself
        const bool claimed = more && claim();
        bool handed_on = queued_;
        owner_.mutex_.unlock();
        if (claimed)
            handed_on = post();
        next.invoke(); // if it throws, the others are the successor's
        if (!more || (n >= batch && handed_on))
            return;
        owner_.mutex_.lock();
    }
    done = owner_.take_idle_work();
    owner_.mutex_.unlock();
}

template <class Threading>
void delivery<Threading>::discard()
{
    work_guard done;
    ready_queue dropped;
    {
        std::scoped_lock lock(owner_.mutex_);
        queued_ = false;
        done = owner_.take_idle_work();
        dropped.swap(ready_);
    }
    while (!dropped.empty())
        dropped.take_front().destroy();
}

template class delivery<thread_safe>;
template class delivery<strand_confined>;

} // namespace turnstile::detail
