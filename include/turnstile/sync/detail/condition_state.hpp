// SPDX-License-Identifier: BSL-1.0
// The state of condition, its waiter, and the request of its waits.
//
// A wait has two steps. First it waits for a notification, in the queues of the condition. Then it
// acquires its lock again, for which it waits at the mutex with a waiter of its own, and tests its
// predicate. If that is false, it unlocks and returns to the first step. All of this happens in the
// memory that the operation was started with.
//
// A notification goes to the waiter that arrived first. A waiter that does not use its notification
// (its predicate is false, or it is cancelled) hands it over to the waiter that has been queued
// longest since it last tested its predicate, unless no notification has been given since then. So
// a notification reaches every waiter that may need it, and no predicate is tested twice for the
// same notifications.
//
// Two orders serve that purpose: `by_arrival_` is the order of arrival, in which a waiter keeps its
// place when it waits again, and `queue_` is the order in which waiters were queued, for the first
// time or again. Invariant: both contain the same waiters.
#pragma once

#include <turnstile/detail/wait/guarded_predicate.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>
#include <turnstile/sync/lock.hpp>

#include <boost/intrusive/set.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class condition_state;

// The part of a condition_request that its waiter calls: the caller's lock, and the predicate.
class condition_request_base {
public:
    // Empties the caller's lock, whose mutex stays locked.
    virtual void disown_lock() noexcept = 0;
    // Makes the caller's lock own the mutex again.
    virtual void adopt_lock() noexcept = 0;
    virtual wait_decision test_predicate() noexcept = 0;

protected:
    condition_request_base() = default;
    condition_request_base(const condition_request_base&) = default;
    condition_request_base& operator=(const condition_request_base&) = default;
    ~condition_request_base() = default;
};

using arrival_hook =
    boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::safe_link>,
                                    boost::intrusive::optimize_size<true>>;

template <class Threading>
class TURNSTILE_EXPORT condition_waiter : public waiter, public arrival_hook {
public:
    // `complete` ends the operation: it completes or destroys it.
    explicit condition_waiter(run_function complete) noexcept
        : waiter(&condition_waiter::run), complete_(complete)
    {
    }

    // `request` belongs to the operation. `mutex` is null if the caller's lock owns none.
    void bind(condition_request_base& request, bool has_predicate,
              condition_state<Threading>& condition, semaphore_state<Threading>* mutex);

protected:
    ~condition_waiter() = default;

private:
    friend class condition_state<Threading>;

    // The waiter for the lock, in the queue of the mutex.
    struct relock_waiter : semaphore_waiter {
        explicit relock_waiter(condition_waiter& w) noexcept
            : semaphore_waiter(&relock_waiter::run), owner(w)
        {
        }
        static void run(waiter& self, task_action action);
        condition_waiter& owner;
    };

    static void run(waiter& self, task_action action);
    bool must_wait_for_lock() noexcept;
    bool may_complete() noexcept;
    void disown_lock() noexcept;
    void adopt_lock() noexcept;

    run_function complete_;
    condition_request_base* request_ = nullptr;
    boost::intrusive_ptr<condition_state<Threading>> condition_;
    boost::intrusive_ptr<semaphore_state<Threading>> mutex_;
    std::optional<relock_waiter> relock_;
    bool has_predicate_ = false;
    bool is_without_lock_ = false;
    bool mutex_has_other_executor_ = false; // than the condition, where the handler has to run

    // Guarded by the condition's lock.
    bool has_notification_ = false;        // one that can be handed over
    std::uint64_t arrival_ = 0;            // its number in the order of arrival
    std::uint64_t notifications_seen_ = 0; // notifications given before it was last queued
};

template <class Threading>
class TURNSTILE_EXPORT condition_state final : public wait_state<Threading> {
    using waiter_type = condition_waiter<Threading>;

public:
    template <class Executor>
    explicit condition_state(const Executor& executor) : wait_state<Threading>(executor)
    {
    }

    // Queues w, and only then unlocks its mutex, so that no notification is missed.
    void start(waiter& w) noexcept override;

    void notify(std::size_t n) noexcept
    {
        if (awaited_.load(std::memory_order_acquire))
            notify_awaited(n);
    }
    void notify_all() noexcept
    {
        if (awaited_.load(std::memory_order_acquire))
            notify_all_awaited();
    }

    // Posts w, which has its lock, from the mutex's executor to the condition's.
    void post_to_own_executor(waiter_type& w) noexcept { wait_state<Threading>::start(w); }

    // Aborts w, because there is no memory to post it to the handler's executor. It is delivered
    // with the next wake-up.
    void abort_and_postpone(waiter_type& w) noexcept;

    // Queues w again, and hands over its notification. Returns false if w must complete instead.
    bool wait_again(waiter_type& w) noexcept;

private:
    struct arrived_before {
        bool operator()(const waiter_type& a, const waiter_type& b) const noexcept
        {
            return a.arrival_ < b.arrival_;
        }
    };
    using arrival_order =
        boost::intrusive::set<waiter_type, boost::intrusive::base_hook<arrival_hook>,
                              boost::intrusive::compare<arrived_before>,
                              boost::intrusive::constant_time_size<false>>;

    void notify_awaited(std::size_t n) noexcept;
    void notify_all_awaited() noexcept;

    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;

    static waiter_type& downcast(waiter& w) noexcept { return static_cast<waiter_type&>(w); }
    void enqueue(waiter_type& w) noexcept;
    void notify_waiter(waiter_type& w, bool can_hand_over, ready_list& ready) noexcept;
    void hand_over_notification(waiter_type& from, ready_list& ready) noexcept;
    void update_awaited() noexcept;

    policy_atomic<Threading, bool> awaited_{false}; // whether queue_ has waiters
    std::uint64_t arrivals_ = 0;
    std::uint64_t notifications_ = 0; // calls of notify(), not of notify_all()
    arrival_order by_arrival_;
};

extern template class condition_waiter<thread_safe>;
extern template class condition_waiter<strand_confined>;
extern template class condition_state<thread_safe>;
extern template class condition_state<strand_confined>;

// The predicate of a wait without one: false, so that the wait needs a notification.
struct any_notification {
    bool operator()() const noexcept { return false; }
};

// A wait on a condition, during which `lock` is empty.
template <class Condition, class Mutex, class Predicate>
class condition_request final : public condition_request_base {
public:
    using executor_type = typename Condition::executor_type;
    using threading = typename Condition::threading_policy;
    using result_type = void;
    using waiter_type = condition_waiter<threading>;
    using lock_type = typename Mutex::lock_type;
    // The fast path is granted only by the predicate, and consumes no notification.
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
                   ? test_predicate()
                   : wait_decision::refused(errc::context_mismatch);
    }
    void give_back() const noexcept {}
    // Not const: the waiter keeps a reference to this request, which lives in the same operation.
    void prepare(waiter_type& w)
    {
        mutex_state_ = lock_access::state_of(*lock_);
        w.bind(*this, !std::is_same_v<Predicate, any_notification>, state(), mutex_state_);
    }

private:
    void disown_lock() noexcept override { mutex_ = lock_access::disown(*lock_); }
    void adopt_lock() noexcept override
    {
        *lock_ = lock_access::make<lock_type>(mutex_, *mutex_state_);
    }
    wait_decision test_predicate() noexcept override { return predicate_(); }

    Condition* condition_;
    lock_type* lock_;
    semaphore_state<threading>* mutex_state_ = nullptr;
    Mutex* mutex_ = nullptr; // while the lock is disowned
    guarded_predicate<Predicate> predicate_;
};

} // namespace turnstile::inline v0_1::detail
