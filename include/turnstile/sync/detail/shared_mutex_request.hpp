// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/sync/detail/shared_mutex_state.hpp>
#include <turnstile/sync/unique_lock.hpp>

#include <boost/assert.hpp>

namespace turnstile::inline v0_1::detail {

// A wait for a lock of the type Lock, which is to hold `wants`. The lock is made without the owner,
// which may be gone by then.
template <class Owner, class Lock, lock_mode wants>
struct shared_mutex_request {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using result_type = Lock;
    using waiter_type = shared_waiter;
    static constexpr request_traits traits{.refundable = true};

    Owner* owner;
    shared_mutex_state<threading>* state_ptr;

    const executor_type& executor() const noexcept { return owner->executor(); }
    shared_mutex_state<threading>& state() const noexcept { return *state_ptr; }

    TURNSTILE_HOT wait_decision try_now() const noexcept
    {
        check_strand();
        return state_ptr->try_take(lock_mode::nothing, wants) ? wait_decision::granted()
                                                              : wait_decision::pending();
    }
    void give_back() const noexcept { state_ptr->give(wants); }
    void prepare(shared_waiter& w) const noexcept { w.wants = wants; }
    Lock take_now() const noexcept { return lock_access::make<Lock>(owner, *state_ptr); }
    void check_strand() const noexcept { BOOST_ASSERT(&owner->state() == state_ptr); }
};

// A wait to exchange the lock in `held`, which has `has`, for an exclusive one. A dropped
// result takes the held lock with it, so it is not refundable.
template <class Owner, class Held, lock_mode has>
struct upgrade_request : shared_mutex_request<Owner, unique_lock<Owner>, lock_mode::exclusive> {
    using base = shared_mutex_request<Owner, unique_lock<Owner>, lock_mode::exclusive>;
    using waiter_type = upgrade_waiter;
    static constexpr request_traits traits{};

    upgrade_request(base exclusive, Held& lock) noexcept : base(exclusive), held(&lock) {}

    Held* held;

    wait_decision try_now() const noexcept
    {
        this->check_strand();
        if (lock_access::state_of(*held) != this->state_ptr)
            return wait_decision::refused(errc::not_locked);
        return this->state().try_take(has, lock_mode::exclusive) ? wait_decision::granted()
                                                                 : wait_decision::pending();
    }
    void give_back() const noexcept { this->state().give(lock_mode::exclusive, has); }
    void prepare(upgrade_waiter& w) const noexcept
    {
        w.has = has;
        w.wants = lock_mode::exclusive;
        w.handle = held;
    }
    unique_lock<Owner> take_now() const noexcept
    {
        lock_access::let_go(*held);
        return base::take_now();
    }
};

} // namespace turnstile::inline v0_1::detail
