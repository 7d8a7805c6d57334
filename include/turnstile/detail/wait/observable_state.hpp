// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/listener_list.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

namespace turnstile::inline v0_1::detail {

// A state that tells listeners what happens to it, without the lock. Whoever it lets go may
// destroy the object before it gets so far, and so may a listener: then it is the reference
// taken here that keeps the state.
//
// Base is a timed_state, or derived from one.
template <class Threading, class Event, class Base>
class TURNSTILE_EXPORT observable_state : public Base {
public:
    using listeners_type = listener_list<Event, Threading>;

    using Base::Base;

    listeners_type& listeners() noexcept { return listeners_; }

    // As of every state, for one that publishes what it decides in admit().
    void start(waiter& w) noexcept override
    {
        if (!listeners_.has_listeners())
            return Base::start(w);
        const wait_state_ptr<Threading> keep_alive(this);
        Base::start(w);
        tell();
    }

protected:
    // Runs f(ready) under the lock, then tells what there is to tell.
    template <class F>
    auto update_and_tell(F f) noexcept
    {
        struct teller {
            boost::intrusive_ptr<observable_state> state;
            ~teller()
            {
                if (state)
                    state->tell();
            }
        } after;
        return this->update([&](ready_list& ready) {
            // Under the lock nobody can have destroyed the state yet.
            struct look {
                observable_state& state;
                teller& after;
                ~look()
                {
                    if (state.has_pending_events())
                        after.state = &state;
                }
            } const at_the_end{*this, after};
            return f(ready);
        });
    }

    // Under the lock: whether there is anything to tell. And telling it, without the lock, with
    // a reference.
    virtual bool has_pending_events() const noexcept { return listeners_.has_pending_events(); }
    virtual void tell() noexcept { listeners_.dispatch(); }

    void woken() noexcept override { tell(); }

    listeners_type listeners_;
};

} // namespace turnstile::inline v0_1::detail
