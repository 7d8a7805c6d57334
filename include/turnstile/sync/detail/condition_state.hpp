// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>

#include <boost/intrusive/set.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class condition_state;

// What a wait on a condition has of its caller: the lock, and perhaps a predicate.
class condition_user {
public:
    virtual void let_go_of_lock() noexcept = 0;
    virtual void adopt_lock() noexcept = 0;
    virtual wait_decision test() noexcept = 0;

protected:
    condition_user() = default;
    condition_user(const condition_user&) = default;
    condition_user& operator=(const condition_user&) = default;
    ~condition_user() = default;
};

using arrival_hook =
    boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::safe_link>,
                                    boost::intrusive::optimize_size<true>>;

// A wait on a condition. It is first decided by the condition, and is then not yet complete:
// it must have its lock again, for which it queues at the mutex, and the predicate must
// agree; otherwise it waits again. All of that in the memory it started with.
template <class Threading>
class TURNSTILE_EXPORT condition_waiter : public waiter, public arrival_hook {
public:
    // `complete` is what ends the operation, one way or the other.
    explicit condition_waiter(run_function complete) noexcept
        : waiter(&condition_waiter::run), complete_(complete)
    {
    }

    // `user` belongs to the operation; `mutex` is null where there was no lock at all.
    void bind(condition_user& user, bool has_predicate, condition_state<Threading>& condition,
              semaphore_state<Threading>* mutex);

protected:
    ~condition_waiter() = default;

private:
    friend class condition_state<Threading>;

    // Its place in the mutex's queue.
    struct relock : permit_waiter {
        explicit relock(condition_waiter& w) noexcept : permit_waiter(&relock::run), owner(w) {}
        static void run(waiter& self, task_action action);
        condition_waiter& owner;
    };

    static void run(waiter& self, task_action action);
    bool queue_for_lock() noexcept;
    bool is_satisfied() noexcept;
    void let_go_of_lock() noexcept;
    void adopt_lock() noexcept;

    run_function complete_;
    condition_user* user_ = nullptr;
    boost::intrusive_ptr<condition_state<Threading>> condition_;
    boost::intrusive_ptr<semaphore_state<Threading>> mutex_;
    std::optional<relock> relock_;
    bool has_predicate_ = false;
    bool is_without_lock_ = false;
    bool comes_back_ = false; // from the mutex's executor to the condition's

    // Guarded by the condition's lock.
    bool is_notified_ = false;  // it has a notification that can be passed on
    std::uint64_t arrival_ = 0; // its number in the order of arrival
    std::uint64_t seen_ = 0;    // how many notifications had been given when it came to wait
};

// Those who wait for a notification.
//
// A notification goes to the waiter that came first. If that has no use for it (its predicate
// says no, or it is cancelled), it goes to the one that has waited longest since it was last
// asked, unless there has been no notification since then. So it finds every waiter it could be
// for, and no predicate is asked that has seen all there is to see.
//
// There are two orders for that: `line_` is that of arrival, which a waiter keeps for good, and
// the base's `queue_` that in which they came to wait, for the first time or again. Both have the
// same members.
template <class Threading>
class TURNSTILE_EXPORT condition_state final : public wait_state<Threading> {
    using waiter_type = condition_waiter<Threading>;

public:
    template <class Executor>
    explicit condition_state(const Executor& executor) : wait_state<Threading>(executor)
    {
    }

    // Queues w, and only then releases its mutex.
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

    // w has its lock, on an executor that is not the condition's: it goes there.
    void bring_home(waiter_type& w) noexcept { wait_state<Threading>::start(w); }

    // There is no memory for w's way to its lock: it is aborted, and goes with the next wake-up.
    void keep_for_later(waiter_type& w) noexcept;

    // w does not use its notification, and if it can, waits again.
    bool wait_again(waiter_type& w) noexcept;

private:
    struct came_first {
        bool operator()(const waiter_type& a, const waiter_type& b) const noexcept
        {
            return a.arrival_ < b.arrival_;
        }
    };
    using arrival_order =
        boost::intrusive::set<waiter_type, boost::intrusive::base_hook<arrival_hook>,
                              boost::intrusive::compare<came_first>,
                              boost::intrusive::constant_time_size<false>>;

    void notify_awaited(std::size_t n) noexcept;
    void notify_all_awaited() noexcept;

    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;

    static waiter_type& as_own(waiter& w) noexcept { return static_cast<waiter_type&>(w); }
    void enqueue(waiter_type& w) noexcept;
    void call(waiter_type& w, bool with_notification, ready_list& ready) noexcept;
    void pass_on(waiter_type& from, ready_list& ready) noexcept;
    void note_who_waits() noexcept;

    policy_atomic<Threading, bool> awaited_{false};
    std::uint64_t arrivals_ = 0;
    std::uint64_t given_ = 0; // notifications, those to all not counted
    arrival_order line_;
};

extern template class condition_waiter<thread_safe>;
extern template class condition_waiter<strand_confined>;
extern template class condition_state<thread_safe>;
extern template class condition_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
