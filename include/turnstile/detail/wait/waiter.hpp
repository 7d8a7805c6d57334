// SPDX-License-Identifier: BSL-1.0
// A waiter is one waiting operation as its object sees it: a node of a queue with a wait_decision.
// wait_operation derives from it and adds the handler; a primitive may put a type in between that
// adds the need, for example a number of permits. This file also has the decision and the outcome
// of a wait, and the lists of waiters.
//
// Invariants: the decision is made under the object's lock, and made once. It is revised at most
// once, from granted to aborted or refused, unless the waiter is reopened. A waiter is in at most
// one list at a time.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/tasks.hpp>

#include <boost/asio/error.hpp>
#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

// State of a wait: granted, refused, aborted, pending, or not yet attempted. A fast path returns
// one, a waiter stores one, and a coroutine reads one when it resumes. A refused wait carries the
// errc it fails with; an aborted wait fails with operation_aborted.
class wait_decision {
public:
    static constexpr wait_decision granted() noexcept { return wait_decision(granted_value); }
    static constexpr wait_decision pending() noexcept { return wait_decision(pending_value); }
    static constexpr wait_decision aborted() noexcept { return wait_decision(aborted_value); }
    static constexpr wait_decision unattempted() noexcept
    {
        return wait_decision(unattempted_value);
    }
    static constexpr wait_decision refused(errc code) noexcept
    {
        return wait_decision(static_cast<int>(code));
    }

    constexpr bool is_granted() const noexcept { return value_ == granted_value; }
    constexpr bool is_pending() const noexcept { return value_ == pending_value; }
    constexpr bool is_unattempted() const noexcept { return value_ == unattempted_value; }
    constexpr bool is_refused() const noexcept { return value_ > 0; }
    constexpr bool has_failed() const noexcept { return is_refused() || value_ == aborted_value; }
    constexpr errc code() const noexcept { return static_cast<errc>(value_); }
    error_code error() const noexcept
    {
        if (is_refused())
            return code();
        return value_ == aborted_value ? error_code(asio::error::operation_aborted) : error_code();
    }

private:
    // Positive values are the errc of a refused wait.
    static constexpr int granted_value = 0;
    static constexpr int pending_value = -1;
    static constexpr int aborted_value = -2;
    static constexpr int unattempted_value = -3;

    constexpr explicit wait_decision(int value) noexcept : value_(value) {}
    int value_;
};

// The outcome of a wait: its error code, and its value if it succeeded. An operation fills it when
// it ends, and passes it to its completion handler.
//
// Invariant: moving an outcome does not throw, so no granted value is lost between the grant and
// the handler. A value whose move may throw is stored on the heap; nothrow_movable<T> chooses the
// stored type, and unwrap() makes the T for the handler.
template <class T>
constexpr bool moves_safely =
    std::is_nothrow_move_constructible_v<T>&& std::is_nothrow_move_assignable_v<T>;

template <class T>
struct nothrow_movable {
    using type = T;
    static T&& unwrap(T&& value) noexcept { return std::move(value); }
};

template <class T>
    requires(!moves_safely<T>)
struct nothrow_movable<T> {
    using type = std::unique_ptr<T>;
    static T unwrap(type&& value) { return value ? T(std::move(*value)) : T(); }
};

// A T whose default constructor may throw is default constructed in unwrap() instead.
template <class T>
    requires(moves_safely<T>&& std::is_default_constructible_v<T> &&
             !std::is_nothrow_default_constructible_v<T>)
struct nothrow_movable<T> {
    using type = std::optional<T>;
    static T unwrap(type&& value) { return value ? T(std::move(*value)) : T(); }
};

template <class T>
    requires(!moves_safely<T>)
struct nothrow_movable<std::optional<T>> {
    using type = std::unique_ptr<T>;
    static std::optional<T> unwrap(type&& value)
    {
        return value ? std::optional<T>(std::move(*value)) : std::nullopt;
    }
};

template <class T>
    requires(!moves_safely<T>)
struct nothrow_movable<std::vector<T>> {
    using type = std::vector<std::unique_ptr<T>>;
    static std::vector<T> unwrap(type&& values)
    {
        std::vector<T> all;
        all.reserve(values.size());
        for (auto& value : values)
            all.push_back(std::move(*value));
        return all;
    }
};

// The completion signature of an operation with the result T, which may be void.
template <class T>
struct signature_of {
    using type = void(error_code, T);
};
template <>
struct signature_of<void> {
    using type = void(error_code);
};

template <class T>
struct wait_outcome {
    error_code error;
    typename nothrow_movable<T>::type value{};
};

template <>
struct wait_outcome<void> {
    error_code error;
};

class waiter;
class foreign_post;

// The link from a cancellation handler to its waiter; see wait_cancellation in wait_operation.hpp.
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
