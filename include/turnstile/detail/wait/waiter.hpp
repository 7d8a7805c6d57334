// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/intrusive_task.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <utility>

namespace turnstile::inline v0_1::detail {

class waiter;
class foreign_post;

// The part of a cancellation handler that its waiter knows; see canceller.hpp.
struct cancel_link {
    waiter* target = nullptr;
};

using waiter_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

// One waiting operation: a node of a wait queue, with a fate that is decided exactly once
// under the object's lock, and revised at most once, by a cancellation; unless it waits again.
class waiter : public waiter_hook {
public:
    using run_function = void (*)(waiter&, task_action);

    explicit waiter(run_function run) noexcept : run_(run) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    void invoke() { run_(*this, task_action::invoke); }
    void destroy() { run_(*this, task_action::destroy); }

    wait_decision decision() const noexcept { return decision_; }
    bool is_pending() const noexcept { return decision_.is_pending(); }
    bool is_granted() const noexcept { return decision_.is_granted(); }

    void decide(wait_decision fate) noexcept { decision_ = fate; }
    void grant() noexcept { decision_ = wait_decision::granted(); }
    void fail(errc code) noexcept { decision_ = wait_decision::refused(code); }
    void abort() noexcept { decision_ = wait_decision::aborted(); }
    void reopen() noexcept { decision_ = wait_decision::pending(); }

    error_code error() const noexcept { return decision_.error(); }

    // Set while a cancellation handler points here; guarded by the object's lock.
    cancel_link* cancellation = nullptr;
    // Whether there ever was one; not changed once the operation has been handed over.
    bool is_cancellable = false;
    // Whether it queues for a waiter of another state, on that one's way. If there is no memory for
    // the way, it is invoked on the spot, refused, and the other one is postponed where it began.
    bool is_proxy = false;
    // The way to the executor that is to run the completion, if not the object's own.
    foreign_post* foreign = nullptr;

protected:
    ~waiter() = default;

private:
    run_function run_;
    wait_decision decision_ = wait_decision::pending();
};

// What is posted for a waiter that does not complete on the object's own executor.
class foreign_post : public intrusive_task {
public:
    foreign_post(posting_executor target, waiter& w) noexcept
        : intrusive_task(&foreign_post::run), target_(std::move(target)), waiter_(&w)
    {
    }

    bool post() noexcept { return target_.post(*this); }

private:
    static void run(intrusive_task& self, task_action action)
    {
        waiter& w = *static_cast<foreign_post&>(self).waiter_;
        if (action == task_action::invoke)
            w.invoke();
        else
            w.destroy();
    }

    posting_executor target_;
    waiter* waiter_;
};

using waiter_list = boost::intrusive::list<waiter, boost::intrusive::constant_time_size<false>>;

inline waiter& take_front(waiter_list& list) noexcept
{
    waiter& w = list.front();
    list.pop_front();
    return w;
}

// A list for what is mostly one waiter at a time: then it is just a pointer.
class ready_queue {
public:
    bool empty() const noexcept { return !first_; }
    bool has_more() const noexcept { return !rest_.empty(); }

    void push_back(waiter& w) noexcept
    {
        if (first_) [[unlikely]]
            push_rest(w);
        else
            first_ = &w;
    }
    TURNSTILE_HOT waiter& take_front() noexcept
    {
        waiter& w = *first_;
        first_ = rest_.empty() ? nullptr : &detail::take_front(rest_);
        return w;
    }
    void swap(ready_queue& other) noexcept
    {
        std::swap(first_, other.first_);
        rest_.swap(other.rest_);
    }

private:
    // Inlined, GCC 12 takes it for a pointer to a local list that is left behind.
    TURNSTILE_NOINLINE void push_rest(waiter& w) noexcept { rest_.push_back(w); }

    waiter* first_ = nullptr;
    waiter_list rest_; // empty if there is no first
};

// Where waiters go whose fate is decided: to those that complete on the object's own
// executor, or to those that do not. `waiting` counts those that are not here yet.
class ready_list {
public:
    ready_list(ready_queue& home, std::size_t& waiting) noexcept : home_(home), waiting_(waiting) {}

    void push_back(waiter& w) noexcept
    {
        --waiting_;
        if (w.foreign)
            foreign_.push_back(w);
        else
            home_.push_back(w);
    }
    ready_queue& foreign() noexcept { return foreign_; }

    // The last handle of a destroyed object was given back: the reference that the handles kept
    // is dropped once the lock is released.
    void drop_handles_reference() noexcept { drops_reference_ = true; }
    bool drops_reference() const noexcept { return drops_reference_; }

private:
    ready_queue& home_;
    std::size_t& waiting_;
    ready_queue foreign_;
    bool drops_reference_ = false;
};

} // namespace turnstile::inline v0_1::detail
