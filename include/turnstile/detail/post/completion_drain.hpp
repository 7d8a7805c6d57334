// SPDX-License-Identifier: BSL-1.0
// Delivers the decided waiters of an object on the object's executor. The waiters are put into a
// list, and a posted task, the *drain*, runs their handlers. All waiters that become ready before
// the drain runs cost one post. Each wait_state has one completion_drain.
//
// A drain that finds more than one waiter posts its successor before it runs the first handler. So
// other threads of the context help, and a handler that blocks delays no other handler. On a single
// thread the successor finds an empty list or, if the drain ended after max_batch handlers, the
// rest.
//
// A waiter on a foreign executor that had no memory for it is *postponed*: it stays here, and is
// posted again with the next drain or with the next post to a foreign executor.
//
// Invariants: the owner's lock guards all members. If the list of ready waiters is not empty, a
// drain is queued or running, or the object's executor had no memory for one. A queued drain holds
// a reference to the owner.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/waiter.hpp>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class wait_state;

template <class Threading>
class TURNSTILE_EXPORT completion_drain : intrusive_task {
public:
    explicit completion_drain(wait_state<Threading>& owner) noexcept
        : intrusive_task(&completion_drain::run), owner_(owner)
    {
    }

    // Under the lock: the waiters to deliver.
    ready_queue& ready() noexcept { return ready_; }

    // Under the lock, if a waiter is ready: makes sure that a drain follows. Returns whether the
    // caller must call post() after it has released the lock. The drain holds a reference to the
    // owner, because its handlers may drop all others.
    bool schedule() noexcept
    {
        if (is_queued())
            return false;
        flags_ |= drain_queued;
        intrusive_ptr_add_ref(&owner_);
        return true;
    }
    // Under the lock: whether a drain was scheduled that has not started.
    bool is_queued() const noexcept { return (flags_ & drain_queued) != 0; }

    // Postponed waiters, under the lock. post_postponed() releases the lock meanwhile, so its
    // caller must hold a reference to the owner.
    bool has_postponed() const noexcept { return (flags_ & waiters_postponed) != 0; }
    void postpone(waiter& w) noexcept
    {
        flags_ |= waiters_postponed;
        postponed_.push_back(w);
    }
    ready_queue take_postponed() noexcept
    {
        ready_queue all;
        all.swap(postponed_);
        flags_ &= drain_queued;
        return all;
    }
    TURNSTILE_COLD void post_postponed() noexcept;

    // Without the lock: posts a scheduled drain. `by_drain` says that the caller is a running
    // drain. Returns false if the executor has no memory for it.
    bool post(bool by_drain = false) noexcept
    {
        const posting_executor& executor = owner_.object_executor();
        if (Threading::is_confined ? executor.post_continuation(*this) : executor.post(*this))
            [[likely]]
            return true;
        post_failed(by_drain);
        return false;
    }

private:
    // A drain runs no more handlers than this, so that other work of the context can run.
    static constexpr int max_batch = 128;
    // The number of handlers between two checks whether the context has stopped, for which Asio
    // locks a mutex.
    static constexpr int stop_check_interval = 8;
    // The bits of flags_.
    static constexpr unsigned drain_queued = 1;      // a drain was scheduled and has not started
    static constexpr unsigned waiters_postponed = 2; // postponed_ is not empty

    // The reference of a queued drain. It is never null, so it is cheaper than an intrusive_ptr.
    struct queued_reference {
        wait_state<Threading>& owner;
        TURNSTILE_HOT ~queued_reference() { intrusive_ptr_release(&owner); }
    };

    class strand_check;

    TURNSTILE_COLD void post_failed(bool by_drain) noexcept;
    static void run(intrusive_task& self, task_action action);
    // Called under the lock, which it releases.
    void drain_locked();
    // Posts a successor once more, after a handler has thrown and the first post has failed.
    TURNSTILE_COLD void post_successor() noexcept;
    TURNSTILE_COLD void drop_ready();

    wait_state<Threading>& owner_;
    ready_queue ready_;
    ready_queue postponed_;
    unsigned flags_ = 0;
};

extern template class completion_drain<thread_safe>;
extern template class completion_drain<strand_confined>;

} // namespace turnstile::inline v0_1::detail
