// SPDX-License-Identifier: BSL-1.0
// A task_group for the time of one coroutine: async_scope.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/work/task_group.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace turnstile::inline v0_1 {
namespace detail {

struct scope_access {
    // Starts the body of a scope: a child without a place.
    template <class Op>
    static void start_body(task_group<>& group, Op&& op)
    {
        group.state().start_body(group.make_child(std::forward<Op>(op), "async_scope"));
    }
    // Waits like async_join, without closing the group: the body does that when it ends.
    template <class Token>
    static auto async_wait(task_group<>& group, Token&& token)
    {
        return start_wait(
            join_request<asio::any_io_executor, thread_safe>{
                {&group.executor(), group.state_pointer()}, false},
            std::forward<Token>(token));
    }
    static void report(task_group<>& group)
    {
        if (auto [code, thrown] = group.state().report(); thrown)
            std::rethrow_exception(thrown);
    }
};

template <class F>
using scope_result_t = typename std::invoke_result_t<F&, task_group<>&>::value_type;

template <class T>
using scope_storage = std::optional<std::conditional_t<std::is_void_v<T>, std::monostate, T>>;

// The body, a child of the group. It closes the group when it ends, and cancels the other children
// if it fails.
template <class F>
asio::awaitable<void> run_scope_body(F& f, task_group<>& group,
                                     scope_storage<scope_result_t<F>>& result)
{
    try {
        if constexpr (std::is_void_v<scope_result_t<F>>) {
            co_await f(group);
            result.emplace();
        } else {
            result.emplace(co_await f(group));
        }
    } catch (...) {
        group.close();
        group.cancel();
        throw;
    }
    group.close();
}

// `f` is a parameter, and thereby part of the frame: the caller's temporary is not used again.
template <class F>
asio::awaitable<scope_result_t<F>> run_scope(F f, task_group_options options)
{
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    task_group<> group(executor, options);
    scope_storage<scope_result_t<F>> result;
    scope_access::start_body(group, run_scope_body(f, group, result));
    // The steps above may throw. The flag is changed after them, because it is the caller's, too.
    const bool throws = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);

    // The wait ends early each time the caller is cancelled, which is passed on to the children.
    bool is_interrupted = false;
    for (;;) {
        co_await scope_access::async_wait(group, asio::as_tuple(asio::use_awaitable));
        const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
        if (state.cancelled() == asio::cancellation_type::none || group.stats().running == 0)
            break;
        is_interrupted = true;
        group.close();
        group.cancel(state.cancelled());
    }
    co_await asio::this_coro::throw_if_cancelled(throws);
    scope_access::report(group);
    if (is_interrupted || !result) // a cancelled child is no failure of the group
        throw system_error(asio::error::operation_aborted);
    if constexpr (!std::is_void_v<scope_result_t<F>>)
        co_return std::move(*result);
}

} // namespace detail

/// Runs the coroutine `f(group)`, and then waits for all children that it has started: on every way
/// out, also if `f` throws or is cancelled. The result is that of `f`.
///
/// `f` runs as a child of the group that needs no place. If it fails, the other children are
/// cancelled; and if the policy of the group cancels the children, for example because one has
/// failed, `f` is cancelled as well. The group is closed when `f` ends.
///
/// @param f A function object `asio::awaitable<R>(task_group<>&)`. It is moved into the coroutine.
///   g++ 12 destroys a lambda that is a temporary in a `co_await` expression twice. This is
///   harmless if it captures by reference; give a lambda that owns its captures a name.
/// @par Completes when
/// `f` and all children have ended.
/// @par Errors
/// Thrown as by `task_group::async_join`: the exceptions of `f` and of the children; with
/// `operation_aborted` if `f` or the scope was cancelled and there is no other error.
/// @par Executor
/// That of the calling coroutine. `f` and each child run on strands on top of it. A caller that is
/// a child itself, or `f` of another scope, runs on a strand: on a thread pool, the children of the
/// inner scope then do not run at the same time.
/// @par Per-operation cancellation
/// Each cancellation of the calling coroutine is passed on to `f` and to all children, which are
/// still awaited.
template <class F>
auto async_scope(F&& f, const task_group_options& options = {})
    -> asio::awaitable<detail::scope_result_t<std::decay_t<F>>>
{
    return detail::run_scope<std::decay_t<F>>(std::forward<F>(f), options);
}

} // namespace turnstile::inline v0_1
