#include <turnstile/core/detail/delivery.hpp>
#include <turnstile/core/detail/wait_state.hpp>

namespace turnstile::detail {

void delivery<thread_safe>::give_up(waiter& w, waiter_list& ready) noexcept
{
    owner_.give_up(w, ready);
}

void delivery<strand_confined>::send(waiter_list& ready) noexcept
{
    ready_.splice(ready_.end(), ready);
    schedule();
}

// While it is scheduled it holds a reference: completions may drop all others.
void delivery<strand_confined>::schedule() noexcept
{
    if (scheduled_ || ready_.empty())
        return;
    scheduled_ = owner_.home().post_next(*this);
    if (scheduled_)
        intrusive_ptr_add_ref(&owner_);
    // Otherwise there was no memory; they stay ready, and go with the next wake-up.
}

void delivery<strand_confined>::run(postable& self, how what)
{
    auto& drain = static_cast<delivery&>(self);
    const wait_state_ptr<strand_confined> keep_alive(&drain.owner_, false);
    if (what == how::invoke)
        drain.drain();
    else
        drain.discard();
}

void delivery<strand_confined>::drain()
{
    // Whatever a handler does, throw included, the others of the wake-up still go.
    struct rest_goes_on {
        delivery& self;
        ~rest_goes_on()
        {
            self.scheduled_ = false;
            self.schedule();
        }
    } guard{*this};

    for (int n = 0; n != batch && !ready_.empty(); ++n)
        take_front(ready_).invoke();
}

void delivery<strand_confined>::discard()
{
    while (!ready_.empty())
        take_front(ready_).destroy();
    scheduled_ = false;
}

} // namespace turnstile::detail
