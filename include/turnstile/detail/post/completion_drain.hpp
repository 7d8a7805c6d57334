// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/waiter.hpp>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class wait_state;

// How decided waiters reach the object's own executor: in a list, which a posted function
// drains. However many become ready before it runs, they cost one post.
//
// A drain that finds more than one waiter posts its successor before it runs the first. So
// other threads of the context help, and a handler that blocks holds up nobody. On a single
// thread the successor comes to an empty list, or, after a bounded batch, goes on with it.
//
// The list is guarded by the owner's lock. If it is not empty, a drain is queued, or there was no
// memory for one.
template <class Threading>
class TURNSTILE_EXPORT completion_drain : intrusive_task {
public:
    explicit completion_drain(wait_state<Threading>& owner) noexcept
        : intrusive_task(&completion_drain::run), owner_(owner)
    {
    }

    // Under the lock: what is put here is on its way.
    ready_queue& ready() noexcept { return ready_; }

    // Under the lock, with somebody ready: whether the caller has to post() once it has released
    // it. A queued drain holds a reference, since its handlers may drop all others.
    bool schedule() noexcept
    {
        if (is_queued())
            return false;
        pending_ |= drain;
        intrusive_ptr_add_ref(&owner_);
        return true;
    }
    // Under the lock: whether somebody has claimed a drain that has not started yet.
    bool is_queued() const noexcept { return (pending_ & drain) != 0; }

    // Those on other executors that had no memory for them. They go with the next wake-up: whoever
    // posts elsewhere posts them, and so does a drain. Under the lock, which post_postponed()
    // releases meanwhile, so its caller refers to the state:
    bool has_postponed() const noexcept { return (pending_ & others) != 0; }
    void postpone(waiter& w) noexcept
    {
        pending_ |= others;
        postponed_.push_back(w);
    }
    ready_queue take_postponed() noexcept
    {
        ready_queue all;
        all.swap(postponed_);
        pending_ &= drain;
        return all;
    }
    TURNSTILE_COLD void post_postponed() noexcept;
    // Without the lock: posts what was claimed, perhaps by a drain that is running; whether that
    // worked.
    bool post(bool by_drain = false) noexcept
    {
        const posting_executor& home = owner_.object_executor();
        if (Threading::is_confined ? home.post_next(*this) : home.post(*this)) [[likely]]
            return true;
        not_posted(by_drain);
        return false;
    }

private:
    static constexpr int batch = 128;
    // After so many, a drain looks whether its context has stopped, which takes a mutex of Asio's.
    static constexpr int look = 8;
    // What is not done yet: a queued drain has not started; others are postponed.
    static constexpr unsigned drain = 1;
    static constexpr unsigned others = 2;

    // What claim() has taken; an intrusive_ptr would ask whether it is there.
    struct queued_reference {
        wait_state<Threading>& owner;
        TURNSTILE_HOT ~queued_reference() { intrusive_ptr_release(&owner); }
    };

    class occupation;

    TURNSTILE_COLD void not_posted(bool by_drain) noexcept;
    static void run(intrusive_task& self, task_action action);
    // Takes over the lock, and releases it.
    void drain_locked();
    // A handler has thrown, and there was no memory for the successor.
    TURNSTILE_COLD void hand_on() noexcept;
    TURNSTILE_COLD void discard();

    wait_state<Threading>& owner_;
    ready_queue ready_;
    ready_queue postponed_;
    unsigned pending_ = 0;
};

extern template class completion_drain<thread_safe>;
extern template class completion_drain<strand_confined>;

} // namespace turnstile::inline v0_1::detail
