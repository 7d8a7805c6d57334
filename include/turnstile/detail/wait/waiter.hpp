// SPDX-License-Identifier: BSL-1.0
// A waiter is one waiting operation as its object sees it: a node of a queue with a wait_decision.
// wait_operation derives from it and adds the handler; a primitive may put a type in between that
// adds the need, for example a number of permits. This file also has the lists of waiters.
//
// Invariants: the decision is made under the object's lock, and made once. It is revised at most
// once, from granted to aborted or refused, unless the waiter is reopened. A waiter is in at most
// one list at a time.
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

// The link from a cancellation handler to its waiter; see wait_cancellation.hpp.
struct cancel_link {
    waiter* target = nullptr;
};

using waiter_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

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

    void decide(wait_decision decision) noexcept { decision_ = decision; }
    void grant() noexcept { decision_ = wait_decision::granted(); }
    void fail(errc code) noexcept { decision_ = wait_decision::refused(code); }
    void abort() noexcept { decision_ = wait_decision::aborted(); }
    // Makes the decision pending again; wait_state::reopen() does the rest.
    void reopen() noexcept { decision_ = wait_decision::pending(); }

    error_code error() const noexcept { return decision_.error(); }

    // The cancellation handler that points to this waiter, or null; guarded by the object's lock.
    cancel_link* cancellation = nullptr;
    // Whether the operation has a cancellation handler; constant once the operation has started.
    bool is_cancellable = false;
    // Whether the waiter queues for a waiter of another state, and uses that waiter's foreign_post:
    // a condition's waiter queues for its lock in this way. If the post fails, the proxy is aborted
    // and invoked at once, and the other state postpones its waiter.
    bool is_proxy = false;
    // The post to the foreign executor that runs the completion, or null for the object's executor.
    foreign_post* foreign = nullptr;

protected:
    ~waiter() = default;

private:
    run_function run_;
    wait_decision decision_ = wait_decision::pending();
};

// Posts a waiter to a foreign executor, that is, to a handler's executor other than the object's.
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

// A FIFO list that usually has one waiter, which is a pointer outside the list proper.
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
    // Not inlined: GCC 12 would warn of a dangling pointer to a local list.
    TURNSTILE_NOINLINE void push_rest(waiter& w) noexcept { rest_.push_back(w); }

    waiter* first_ = nullptr;
    waiter_list rest_; // empty if first_ is null
};

// Collects the waiters that are decided while the lock is held: in the queue of the drain, or in a
// list of its own for foreign executors. It decrements `waiting`, the number of undecided waiters,
// for each.
class ready_list {
public:
    ready_list(ready_queue& drained, std::size_t& waiting) noexcept
        : drained_(drained), waiting_(waiting)
    {
    }

    void push_back(waiter& w) noexcept
    {
        --waiting_;
        if (w.foreign)
            foreign_.push_back(w);
        else
            drained_.push_back(w);
    }
    ready_queue& foreign() noexcept { return foreign_; }

    // The last handle of a destroyed object was released: the reference that the handles share is
    // dropped after the lock is released.
    void drop_handles_reference() noexcept { drops_reference_ = true; }
    bool drops_reference() const noexcept { return drops_reference_; }

private:
    ready_queue& drained_;
    std::size_t& waiting_;
    ready_queue foreign_;
    bool drops_reference_ = false;
};

} // namespace turnstile::inline v0_1::detail
