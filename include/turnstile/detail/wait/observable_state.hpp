// SPDX-License-Identifier: BSL-1.0
// A state with listeners, which are notified of its events. It adds a listener_list to Base, which
// is a timed_state or derived from one. Events are published under the lock, and the listeners are
// called after the lock is released.
//
// Invariant: a reference keeps the state while listeners are called, because a granted handler, or
// a listener, may destroy the object meanwhile.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/listener_list.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

namespace turnstile::inline v0_1::detail {

template <class Threading, class Event, class Base>
class TURNSTILE_EXPORT observable_state : public Base {
public:
    using listeners_type = listener_list<Event, Threading>;

    using Base::Base;

    listeners_type& listeners() noexcept { return listeners_; }

    // Notifies the listeners of events that admit() publishes.
    void start(waiter& w) noexcept override
    {
        if (!listeners_.has_listeners())
            return Base::start(w);
        const wait_state_ptr<Threading> keep_alive(this);
        Base::start(w);
        notify_listeners();
    }

protected:
    // As update(f); then notifies the listeners of the events that f has published.
    template <class F>
    auto update_and_notify(F f) noexcept
    {
        struct notifier {
            boost::intrusive_ptr<observable_state> state;
            ~notifier()
            {
                if (state)
                    state->notify_listeners();
            }
        } after;
        return this->update([&](ready_list& ready) {
            // The reference is taken under the lock, while the state certainly exists.
            struct event_check {
                observable_state& state;
                notifier& after;
                ~event_check()
                {
                    if (state.has_pending_events())
                        after.state = &state;
                }
            } const check{*this, after};
            return f(ready);
        });
    }

    // Under the lock: whether notify_listeners() must be called.
    virtual bool has_pending_events() const noexcept { return listeners_.has_pending_events(); }
    // Without the lock; the caller holds a reference.
    virtual void notify_listeners() noexcept { listeners_.dispatch(); }

    void woken() noexcept override { notify_listeners(); }

    listeners_type listeners_;
};

} // namespace turnstile::inline v0_1::detail
