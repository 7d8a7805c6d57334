// SPDX-License-Identifier: BSL-1.0
// An operation that a component of the work layer runs for its user and may cancel: a branch of
// select and all, a child of a task_group. The component, its parent, has a strand on which the
// child is started, cancelled and completed (strand_lease.hpp), and is notified of its end.
//
// Parent is a pointer-like, copyable handle, which keeps the frame of the component alive:
//   parent->lease()              the strand_lease of the child
//   parent->get_allocator()      the allocator of the child's handlers
//   parent->complete(child)      the child has ended; called on the strand. A parent that must be
//                                freed inside this call has complete_child(parent, child) instead
//   parent->drop(child)          the handler of the child was destroyed without being called, for
//                                example because its execution context is destroyed; any thread
//
// Invariant: for each started child, either complete() or drop() is called, once. If the initiating
// function throws and has not kept the handler, the child completes with the exception.
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/operation_start.hpp>
#include <turnstile/detail/call/supervised_operation.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace turnstile::inline v0_1::detail {

// An awaitable that was made by a call of its coroutine, as an operation.
template <class Awaitable>
struct awaitable_operation {
    Awaitable awaitable;

    Awaitable operator()() && { return std::move(awaitable); }
};

template <class Op>
concept awaitable_value = awaitable_traits<std::remove_cvref_t<Op>>::is_awaitable;

// What the work layer runs: an `operation`, or an asio::awaitable.
template <class Op>
concept work_operation = operation<Op> || awaitable_value<Op>;

template <work_operation Op>
auto as_operation(Op&& op)
{
    if constexpr (awaitable_value<Op>)
        return awaitable_operation<std::remove_cvref_t<Op>>{std::forward<Op>(op)};
    else
        return std::decay_t<Op>(std::forward<Op>(op));
}

template <work_operation Op>
using operation_of = decltype(as_operation(std::declval<Op>()));

template <work_operation Op>
using work_signature_t = operation_signature_t<operation_of<Op>>;

// The value of a completion signature, without its error: std::monostate if there is none, a tuple
// if there are several.
template <class... Values>
struct combined_value {
    using type = std::tuple<Values...>;
};
template <>
struct combined_value<> {
    using type = std::monostate;
};
template <class Value>
struct combined_value<Value> {
    using type = Value;
};

template <class Tuple, bool HasError>
struct result_value;
template <class... Values>
struct result_value<std::tuple<Values...>, false> : combined_value<Values...> {
};
template <class Error, class... Values>
struct result_value<std::tuple<Error, Values...>, true> : combined_value<Values...> {
};

template <class Signature>
using result_value_t = typename result_value<typename result_traits<Signature>::tuple,
                                             result_traits<Signature>::reports_failure>::type;

// The exception that reports a failure. An error code is reported as a system_error.
inline std::exception_ptr exception_of(const failure& failed)
{
    if (!failed)
        return nullptr;
    return failed.exception() ? failed.exception()
                              : std::make_exception_ptr(system_error(failed.code()));
}

// The record of a child: its signal, and its result until the parent takes it.
template <class Signature>
class child_operation : public supervised_operation<Signature> {
public:
    using traits = result_traits<Signature>;
    using value_type = result_value_t<Signature>;

    // The failure of an ended child, or none if it has succeeded.
    failure failed() const noexcept
    {
        return this->thrown ? failure(this->thrown) : traits::failure_of(*this->result);
    }

    // The value of a child that has succeeded.
    value_type take_value()
    {
        return std::apply(
            [](auto&&... arguments) {
                if constexpr (traits::reports_failure)
                    return without_error(std::move(arguments)...);
                else
                    return value_type(std::move(arguments)...);
            },
            std::move(*this->result));
    }

    std::exception_ptr exception() const { return exception_of(failed()); }

private:
    template <class Error, class... Values>
    static value_type without_error(Error&&, Values&&... values)
    {
        return value_type(std::forward<Values>(values)...);
    }
};

// Notifies the parent of the end of a child.
template <class Parent, class Child>
void complete_child(Parent parent, Child& child)
{
    parent->complete(child);
}

// The completion handler of a child.
template <class Parent, class Signature>
class child_handler {
    using frame = std::remove_reference_t<decltype(*std::declval<const Parent&>())>;
    using child_type = child_operation<Signature>;
    using box_type = typename child_type::box_type;

public:
    using executor_type = std::decay_t<decltype(std::declval<const frame&>().lease().executor())>;
    using allocator_type = std::decay_t<decltype(std::declval<const frame&>().get_allocator())>;
    using cancellation_slot_type = asio::cancellation_slot;

    child_handler(Parent parent, child_type& child) noexcept
        : allocator_(parent->get_allocator()), parent_(std::move(parent)), child_(&child)
    {
    }
    child_handler(child_handler&& other) noexcept
        : allocator_(other.allocator_), parent_(std::move(other.parent_)),
          child_(std::exchange(other.child_, nullptr))
    {
    }
    child_handler& operator=(child_handler&&) = delete;
    ~child_handler()
    {
        if (child_ && !child_->give_back())
            parent_->drop(*child_);
    }

    executor_type get_executor() const noexcept { return parent_->lease().executor(); }
    // A copy, because Asio calls this also after a move of the handler.
    allocator_type get_allocator() const noexcept { return allocator_; }
    cancellation_slot_type get_cancellation_slot() const noexcept { return child_->signal.slot(); }

    template <class... Args>
    void operator()(Args&&... args)
    {
        box_type box;
        std::exception_ptr thrown;
        try {
            box.emplace(std::forward<Args>(args)...);
        } catch (...) {
            thrown = std::current_exception();
        }
        end(std::move(box), std::move(thrown));
    }

    // The initiating function has thrown.
    void fail(std::exception_ptr thrown) { end(box_type(), std::move(thrown)); }

private:
    void end(box_type box, std::exception_ptr thrown)
    {
        if (parent_->lease().is_current()) [[likely]]
            return complete(std::move(box), std::move(thrown));
        // Some operations do not complete on the associated executor of their handler, and some
        // children are started outside the strand.
        const executor_type executor = get_executor();
        asio::dispatch(
            executor, asio::bind_allocator(allocator_, [self = std::move(*this), b = std::move(box),
                                                        e = std::move(thrown)]() mutable {
                self.complete(std::move(b), std::move(e));
            }));
    }

    void complete(box_type box, std::exception_ptr thrown)
    {
        child_type& child = *std::exchange(child_, nullptr);
        Parent parent(std::move(parent_));
        child.result = take_from(box);
        child.thrown = std::move(thrown);
        child.end();
        complete_child(std::move(parent), child);
    }

    [[no_unique_address]] allocator_type allocator_;
    Parent parent_;
    child_type* child_; // null after the call
};

// An awaitable needs no coroutine around it that owns its captures: its parameters are part of its
// own frame.
template <class Awaitable, class Executor, class Handler>
void initiate_child(awaitable_operation<Awaitable> op, const Executor& executor, Handler&& handler)
{
    using runs_on = typename awaitable_traits<Awaitable>::executor_type;
    asio::co_spawn(coroutine_executor<runs_on>(executor), std::move(op.awaitable),
                   std::forward<Handler>(handler));
}
template <operation Op, class Executor, class Handler>
void initiate_child(Op op, const Executor& executor, Handler&& handler)
{
    initiate(std::move(op), executor, std::forward<Handler>(handler));
}

// Starts a child, and empties `op`. Called on the strand, or before anything else is queued there.
// If moving the operation throws, the child completes with the exception, too.
template <operation Op, class Parent, class Signature>
void start_child(std::optional<Op>& op, const Parent& parent, child_operation<Signature>& child)
{
    static_assert(std::is_same_v<Signature, operation_signature_t<Op>>);
    child.begin_start();
    try {
        child_handler<Parent, Signature> handler(parent, child);
        Op started(std::move(*op));
        op.reset();
        initiate_child(std::move(started), parent->lease().executor(), std::move(handler));
    } catch (...) {
        if (child.end_start())
            return; // the operation has kept the handler, and completes it
        try {
            return child_handler<Parent, Signature>(parent, child).fail(std::current_exception());
        } catch (...) { // without memory for a dispatch to the strand, the child is dropped
            return;
        }
    }
    if (!child.end_start())
        parent->drop(child);
}

} // namespace turnstile::inline v0_1::detail
