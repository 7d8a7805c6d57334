#include <turnstile/core/detail/delivery.hpp>
#include <turnstile/core/detail/wait_state.hpp>

namespace turnstile::detail {

template <class Threading>
void delivery<Threading>::post() noexcept
{
    const completion_target& home = owner_.home();
    if (Threading::is_confined ? home.post_next(*this) : home.post(*this)) [[likely]]
        return;
    // There was no memory: they stay ready, and go with the next wake-up.
    const wait_state_ptr<Threading> reference(&owner_, false);
    std::scoped_lock lock(owner_.mutex_);
    queued_ = false;
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
    bool more = true;
    for (int n = 0; more && n != batch; ++n) {
        waiter* next = nullptr;
        bool successor = false;
        {
            std::scoped_lock lock(owner_.mutex_);
            if (n == 0)
                queued_ = false;
            if (ready_.empty())
                return;
            next = &take_front(ready_);
            more = !ready_.empty();
            successor = claim();
        }
        if (successor)
            post();
        next->invoke(); // if it throws, the others are the successor's
    }
}

template <class Threading>
void delivery<Threading>::discard()
{
    waiter_list dropped;
    {
        std::scoped_lock lock(owner_.mutex_);
        queued_ = false;
        dropped.swap(ready_);
    }
    while (!dropped.empty())
        take_front(dropped).destroy();
}

template class delivery<thread_safe>;
template class delivery<strand_confined>;

} // namespace turnstile::detail
