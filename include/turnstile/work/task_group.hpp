// SPDX-License-Identifier: BSL-1.0
// A group of operations that are started, limited, cancelled and awaited together.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/work/detail/task_group_child.hpp>
#include <turnstile/work/detail/task_group_state.hpp>
#include <turnstile/work/multiple_errors.hpp>
#include <turnstile/work/task_group_options.hpp>

#include <boost/asio/cancellation_type.hpp>
#include <boost/assert.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1 {
namespace detail {

struct scope_access;

} // namespace detail

/// Operations that run together: the children of the group. A child is a coroutine
/// (`asio::awaitable`, or a function that returns one), or any other operation. Each child runs on
/// a strand of its own on top of the group's executor; the children of a `local::task_group` run on
/// the group's executor itself. If the group's executor is a strand, its children do not run at the
/// same time. The executor of a child (`asio::this_coro::executor`) is one.
///
/// A child fails if it throws or completes with an error. `operation_aborted` after the group has
/// cancelled the child is no failure. `async_join` reports the failures: one as it was thrown,
/// several as `multiple_errors`.
///
/// @tparam T The results that the group collects for `async_next`; void: it collects none.
/// @par Thread safety
/// Any thread may call any function of a `task_group`; a `local::task_group` is confined to one
/// strand. A child may call the functions of its own group.
/// @par Destruction
/// Join the group first. The destructor cancels the children that still run, and does not wait for
/// them; they keep what they need of the group. In a debug build it asserts that no child runs,
/// unless the children were cancelled before, or the execution context has stopped or is being
/// destroyed. Every waiter completes with `operation_aborted`.
template <class T = void, class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_task_group
    : public detail::io_object<Executor, Threading, detail::task_group_state<Threading>> {
    using state_type = detail::task_group_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;
    /// The type of the results.
    using result_type = T;

    template <class Other>
    struct rebind_executor {
        using other = basic_task_group<T, Other, Threading>;
    };

    /// Makes a group. Its children run on `executor`. Throws `system_error` with
    /// `errc::invalid_argument` if an option breaks its rule.
    explicit basic_task_group(const std::type_identity_t<Executor>& executor,
                              const task_group_options& options = {})
        : base(executor, options, !std::is_void_v<T>)
    {
    }

    /// Equivalent to `basic_task_group(context.get_executor(), options)`.
    template <detail::execution_context Context>
    explicit basic_task_group(Context& context, const task_group_options& options = {})
        : basic_task_group(context.get_executor(), options)
    {
    }

    ~basic_task_group()
    {
        [[maybe_unused]] const bool is_joined = this->state_pointer()->abandon();
        BOOST_ASSERT_MSG(is_joined, "a task_group was destroyed while its children run");
    }

    /// Starts a child. Like `co_spawn`, the call may run the child until it first waits, if the
    /// calling thread runs the context of the group's executor.
    ///
    /// @param name The name in `children()`.
    /// @par Errors
    /// `errc::rejected` if no place is free, or operations wait for one; `errc::closed`. `op` was
    /// not moved from then.
    template <detail::child_of<T> Op>
    void spawn(Op&& op, std::string name, error_code& ec)
    {
        detail::group_place place;
        ec = this->state().take_place(place).error();
        if (ec)
            return;
        detail::group_child_ptr<Threading> child;
        try {
            child = make_child(std::forward<Op>(op), std::move(name));
        } catch (...) {
            this->state().give_place_back();
            throw;
        }
        this->state().start_child(child, place);
    }
    /// Equivalent to `spawn(op, {}, ec)`.
    template <detail::child_of<T> Op>
    void spawn(Op&& op, error_code& ec)
    {
        spawn(std::forward<Op>(op), std::string(), ec);
    }
    /// Equivalent to `spawn(op, name, ec)`; throws `system_error` where that sets `ec`.
    template <detail::child_of<T> Op>
    void spawn(Op&& op, std::string name = {})
    {
        error_code ec;
        spawn(std::forward<Op>(op), std::move(name), ec);
        detail::throw_if(ec, "task_group::spawn");
    }

    /// Starts a child if a place is free. Returns false, and has not moved from `op`, where `spawn`
    /// reports an error.
    template <detail::child_of<T> Op>
    [[nodiscard]] bool try_spawn(Op&& op, std::string name = {})
    {
        error_code ec;
        spawn(std::forward<Op>(op), std::move(name), ec);
        return !ec;
    }

    /// Queues a child, which starts as soon as a place is free. The call never waits, so a child
    /// can use it even if it has the last place of its group.
    ///
    /// @par Errors
    /// `errc::closed`; `op` was not moved from, unless another thread closes the group at the same
    /// time.
    template <detail::child_of<T> Op>
    void spawn_when_free(Op&& op, std::string name, error_code& ec)
    {
        ec = this->state().is_closed() ? make_error_code(errc::closed) : error_code();
        if (!ec)
            ec = this->state()
                     .queue_child(make_child(std::forward<Op>(op), std::move(name)))
                     .error();
    }
    /// Equivalent to `spawn_when_free(op, name, ec)`; throws `system_error` where that sets `ec`.
    template <detail::child_of<T> Op>
    void spawn_when_free(Op&& op, std::string name = {})
    {
        error_code ec;
        spawn_when_free(std::forward<Op>(op), std::move(name), ec);
        detail::throw_if(ec, "task_group::spawn_when_free");
    }
    /// Equivalent to `spawn_when_free(op, {}, ec)`.
    template <detail::child_of<T> Op>
    void spawn_when_free(Op&& op, error_code& ec)
    {
        spawn_when_free(std::forward<Op>(op), std::string(), ec);
    }

    /// Waits for a place, and starts a child in it. A child that has the last place of its group
    /// must not wait for another one there; `spawn_when_free` does not wait.
    ///
    /// @par Completes when
    /// a place is free, every earlier request for one was granted, and the child has been started.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// `operation_aborted` if the wait or the group was cancelled, or the group was destroyed;
    /// `errc::closed`. The child was not started then.
    /// @par Executor
    /// The handler's associated executor, by default the group's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total. It ends the wait, and does not reach a child that was started.
    /// @par Cancel safety
    /// If the operation is cancelled before its handler runs, the child has not started.
    /// @par Fairness
    /// FIFO, together with `spawn_when_free`.
    template <detail::child_of<T> Op, token_for<void> Token = default_token_t<Executor>>
    auto async_spawn(Op&& op, Token&& token = Token())
    {
        return detail::start_wait(
            detail::place_request<Executor, Threading>{
                {&this->executor(), this->state_pointer()},
                make_child(std::forward<Op>(op), std::string())},
            std::forward<Token>(token));
    }

    /// Closes the group, and waits until all children have ended. A child must not wait for its own
    /// group, because it would wait for its own end.
    ///
    /// @par Completes when
    /// no child runs or is queued.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// A coroutine that awaits with `use_awaitable` is thrown the exception of the child that has
    /// failed, or `multiple_errors` if several have. Other tokens receive the error code of the
    /// first failure (see `failure::code`); `errors()` has all. With `first_success` there is no
    /// error if a child has succeeded. `operation_aborted` if the wait was cancelled or the group
    /// was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the group's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total. It ends the wait only: the children continue, and the group
    /// stays closed. Call `cancel()` to cancel the children; `async_scope` does both.
    /// @par Cancel safety
    /// A wait consumes nothing. Any number of operations can wait, also one after the other.
    /// @par Fairness
    /// FIFO.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_join(Token&& token = Token())
    {
        return detail::start_wait(
            detail::join_request<Executor, Threading>{{&this->executor(), this->state_pointer()}},
            std::forward<Token>(token));
    }

    /// Waits for the next result, in the order of completion. A child keeps its place until its
    /// result is taken, unless `async_join` was called.
    ///
    /// @par Completes when
    /// a child has succeeded whose result was not taken; or the group is empty: no child runs or is
    /// queued, and all results were taken.
    /// @par Completion signature
    /// `void(error_code, std::optional<T>)`; the optional is empty if the group is.
    /// @par Errors
    /// The errors of `async_join`, instead of an empty optional.
    /// @par Executor
    /// The handler's associated executor, by default the group's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// The result of an operation that is cancelled before its handler runs goes to the next.
    /// @par Fairness
    /// FIFO.
    template <token_for<std::optional<std::conditional_t<std::is_void_v<T>, int, T>>> Token =
                  default_token_t<Executor>>
        requires(!std::is_void_v<T>)
    auto async_next(Token&& token = Token())
    {
        return detail::start_wait(
            detail::next_request<T, Executor, Threading>{
                {&this->executor(), this->state_pointer()}},
            std::forward<Token>(token));
    }

    /// Cancels the children that run, each on its strand, and discards the queued ones. Waits
    /// for a place end with `operation_aborted`; if a wait was granted already, its child is
    /// started and cancelled. The group stays open, and later children are not cancelled.
    void cancel(asio::cancellation_type_t type = asio::cancellation_type::terminal) noexcept
    {
        this->state().cancel(type);
    }

    /// Refuses further children. Waits for a place end with `errc::closed`; children that are
    /// queued still start. Closing it again has no effect.
    void close() noexcept { this->state().close(); }

    /// Whether the group refuses children: after `close`, `async_join`, or the event that ends the
    /// group by its policy.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }
    /// The maximum number of places.
    [[nodiscard]] std::size_t limit() const noexcept { return this->state().limit(); }
    /// The figures of the group.
    [[nodiscard]] task_group_stats stats() const noexcept { return this->state().stats(); }
    /// The children that run, in the order in which they were started.
    [[nodiscard]] std::vector<task_group_child> children() const
    {
        return this->state().children();
    }
    /// The failures of children that have ended, in the order of their ends.
    [[nodiscard]] std::vector<std::exception_ptr> errors() const { return this->state().errors(); }

private:
    friend detail::scope_access;

    template <class Op>
    detail::group_child_ptr<Threading> make_child(Op&& op, std::string name)
    {
        using node = detail::typed_group_child<T, detail::operation_of<Op>, Executor, Threading>;
        return detail::group_child_ptr<Threading>(new node(this->executor(), *this->state_pointer(),
                                                           std::forward<Op>(op), std::move(name)));
    }
};

/// The task group for any thread and any executor.
template <class T = void>
class task_group : public basic_task_group<T> {
public:
    using basic_task_group<T>::basic_task_group;
};
template <class Source>
task_group(Source&, task_group_options) -> task_group<>;
template <class Source>
task_group(Source&) -> task_group<>;
template <class Source>
task_group(const Source&, task_group_options) -> task_group<>;
template <class Source>
task_group(const Source&) -> task_group<>;

namespace local {

/// The task group for one strand: it needs no atomic operations, no internal lock and no strands.
template <class T = void>
class task_group : public basic_task_group<T, asio::any_io_executor, strand_confined> {
public:
    using basic_task_group<T, asio::any_io_executor, strand_confined>::basic_task_group;
};
template <class Source>
task_group(Source&, task_group_options) -> task_group<>;
template <class Source>
task_group(Source&) -> task_group<>;
template <class Source>
task_group(const Source&, task_group_options) -> task_group<>;
template <class Source>
task_group(const Source&) -> task_group<>;

} // namespace local
} // namespace turnstile::inline v0_1
