#include <turnstile/core/detail/delivery.hpp>
#include <turnstile/core/detail/wait_state.hpp>

namespace turnstile::detail {

template <class Threading>
bool delivery<Threading>::post() noexcept
{
    const completion_target& home = owner_.home();
    if (Threading::is_confined ? home.post_next(*this) : home.post(*this)) [[likely]]
        return true;

    // There was no memory: they stay ready, and go with the next wake-up. If there can be
    // none any more, they go now.
    const wait_state_ptr<Threading> reference(&owner_, false);
    work_guard done;
    waiter_list dropped;
    {
        std::scoped_lock lock(owner_.mutex_);
        queued_ = false;
        done = owner_.take_idle_work();
        if (owner_.shut_down_ || !owner_.alive_.load(std::memory_order_relaxed))
            dropped.swap(ready_);
    }
    while (!dropped.empty())
        take_front(dropped).destroy();
    return false;
}

template <class Threading>
void delivery<Threading>::run(postable& self, how what)
{
    auto& d = static_cast<delivery&>(self);
    const wait_state_ptr<Threading> reference(&d.owner_, false);
    if (what == how::invoke)
        d.drain();
    else
        d.discard();
}

template <class Threading>
void delivery<Threading>::drain()
{
    work_guard done; // this drain is work by itself
    bool more = true;
    bool handed_on = false;
    for (int n = 0; more && (n < batch || !handed_on); ++n) {
        waiter* next = nullptr;
        bool claimed = false;
        {
            std::scoped_lock lock(owner_.mutex_);
            if (n == 0) {
                queued_ = false;
                done = owner_.take_idle_work();
            }
            if (ready_.empty())
                return;
            next = &take_front(ready_);
            more = !ready_.empty();
            claimed = claim();
            handed_on = queued_;
        }
        if (claimed)
            handed_on = post();
        next->invoke(); // if it throws, the others are the successor's
    }
}

template <class Threading>
void delivery<Threading>::discard()
{
    work_guard done;
    waiter_list dropped;
    {
        std::scoped_lock lock(owner_.mutex_);
        queued_ = false;
        done = owner_.take_idle_work();
        dropped.swap(ready_);
    }
    while (!dropped.empty())
        take_front(dropped).destroy();
}

template class delivery<thread_safe>;
template class delivery<strand_confined>;

} // namespace turnstile::detail
