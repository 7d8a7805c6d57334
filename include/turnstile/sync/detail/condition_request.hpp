// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/guarded_predicate.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/sync/detail/condition_state.hpp>
#include <turnstile/sync/detail/lock_handle.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// Stands for the predicate of a wait without one: any notification will do.
struct any_notification {
    bool operator()() const noexcept { return false; } // not without one
};

// A wait on a condition, which lets go of `lock` while it lasts.
template <class Condition, class Mutex, class Predicate>
class condition_request final : public condition_user {
public:
    using executor_type = typename Condition::executor_type;
    using threading = typename Condition::threading_policy;
    using result_type = void;
    using waiter_type = condition_waiter<threading>;
    using lock_type = typename Mutex::lock_type;
    // A wait that need not begin uses nothing up.
    static constexpr request_traits traits{.refundable = true, .tests_predicate = true};

    condition_request(Condition& condition, lock_type& lock, Predicate predicate)
        : condition_(&condition), lock_(&lock), predicate_(std::move(predicate))
    {
    }

    guarded_predicate<Predicate>& predicate_guard() noexcept { return predicate_; }

    const executor_type& executor() const noexcept { return condition_->executor(); }
    condition_state<threading>& state() const noexcept { return condition_->state(); }

    wait_decision try_now() noexcept
    {
        if (!lock_->owns_lock())
            return wait_decision::refused(errc::not_locked);
        return state().has_context_of(*lock_access::state_of(*lock_))
                   ? test()
                   : wait_decision::refused(errc::context_mismatch);
    }
    void give_back() const noexcept {}
    // Not const: the operation keeps using this ask, which must be its own.
    void prepare(waiter_type& w)
    {
        mutex_state_ = lock_access::state_of(*lock_);
        w.bind(*this, !std::is_same_v<Predicate, any_notification>, state(), mutex_state_);
    }

private:
    void let_go_of_lock() noexcept override { mutex_ = lock_access::let_go(*lock_); }
    void adopt_lock() noexcept override
    {
        *lock_ = lock_access::make<lock_type>(mutex_, *mutex_state_);
    }
    wait_decision test() noexcept override { return predicate_(); }

    Condition* condition_;
    lock_type* lock_;
    semaphore_state<threading>* mutex_state_ = nullptr;
    Mutex* mutex_ = nullptr; // while the lock is let go
    guarded_predicate<Predicate> predicate_;
};

} // namespace turnstile::inline v0_1::detail
