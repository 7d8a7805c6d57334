// SPDX-License-Identifier: BSL-1.0
// Starting an operation with a completion handler. Every component that runs an operation calls one
// of these functions:
//
// - initiate(): starts it. An exception of the initiating function leaves initiate(), and the
//   handler is destroyed.
// - start(): delivers such an exception to the handler, as a failure that is posted. Called by
//   initiating functions.
// - start_in_completion(): delivers it by calling the handler. Called from a completion handler,
//   where the handler may be called directly.
//
// Invariant: a handler is called once, even if the initiating function throws after it has passed
// the handler on; handler_loan.hpp decides whether it has.
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/handler_loan.hpp>
#include <turnstile/detail/call/operation_result.hpp>
#include <turnstile/detail/post/handler_executor.hpp>

#include <boost/asio/co_spawn.hpp>

#include <concepts>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// Converts the executor of the handler to the executor type of a coroutine. If a strand does not
// convert, its inner executor is used.
template <class CoroutineExecutor, class Executor>
CoroutineExecutor coroutine_executor(const Executor& executor)
{
    if constexpr (std::convertible_to<Executor, CoroutineExecutor>)
        return executor;
    else if constexpr (requires { executor.get_inner_executor(); })
        return coroutine_executor<CoroutineExecutor>(executor.get_inner_executor());
    else
        static_assert(std::convertible_to<Executor, CoroutineExecutor>,
                      "The executor of the handler does not convert to the executor type of the "
                      "operation, which is a coroutine. Return awaitable<T>, which accepts every "
                      "executor.");
}

// GCC warns of the coroutine's frame if the operation is a lambda of a function template.
#if defined(__GNUC__) && !defined(__clang__)
#    pragma GCC diagnostic push
#    pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif
// Runs a coroutine operation that is a parameter, and therefore part of the coroutine frame. Its
// captures are destroyed with the frame, before the handler is called; co_spawn would keep its own
// argument until after the call.
template <class Op, class Awaitable = std::invoke_result_t<Op>>
Awaitable run_and_destroy(Op op)
{
    co_return co_await std::move(op)();
}
#if defined(__GNUC__) && !defined(__clang__)
#    pragma GCC diagnostic pop
#endif

// Starts an operation. A coroutine runs on `executor`.
template <operation Op, class Executor, class Handler>
void initiate(Op op, const Executor& executor, Handler&& handler)
{
    if constexpr (coroutine_operation<Op>) {
        using runs_on = typename awaitable_traits<std::invoke_result_t<Op>>::executor_type;
        asio::co_spawn(coroutine_executor<runs_on>(executor), run_and_destroy(std::move(op)),
                       std::forward<Handler>(handler));
    } else {
        static_cast<void>(std::move(op)(std::forward<Handler>(handler)));
    }
}

// Starts an operation with the handler of a loan. If the initiating function throws,
// deliver(handler, result) is called with the failure. If it has passed the handler on before it
// throws, the operation counts as started, and its completion calls the handler.
template <operation Op, class Executor, class Handler, class Deliver>
void initiate_on_loan(Op& op, const Executor& executor, handler_loan<Handler>& loan,
                      Deliver deliver)
{
    using result = operation_result<Op>;
    typename result::tuple failed;
    try {
        return initiate(std::move(op), executor, loan.lend());
    } catch (...) {
        if (!loan.end()) {
            if (loan.was_called_here())
                throw; // most likely the handler threw it, inside the initiating function
            return;
        }
        failed = result::from_failure(std::current_exception());
    }
    deliver(loan.take(), std::move(failed));
}

// Starts an operation. A coroutine runs on the associated executor of the handler; `fallback` is
// used if it has none. Throws if there is no memory to deliver a failure, or if the completion
// signature cannot report one.
template <operation Op, class Executor, class Handler>
void start(Op op, const Executor& fallback, Handler handler)
{
    const auto executor = executor_for(handler, fallback);
    using result = operation_result<Op>;
    if constexpr (result::can_make_failure) {
        handler_loan<Handler> loan(std::move(handler));
        initiate_on_loan(op, executor, loan, [&](Handler h, typename result::tuple&& failed) {
            post_handler(std::move(h), executor, std::move(failed));
        });
    } else {
        initiate(std::move(op), executor, std::move(handler));
    }
}

// Starts an operation where the handler may be called directly. Every failure, including a lack of
// memory, is passed to the handler.
template <operation Op, class Executor, class Handler>
void start_in_completion(Op op, const Executor& fallback, Handler handler)
{
    using result = operation_result<Op>;
    const auto executor = executor_for(handler, fallback);
    std::optional<handler_loan<Handler>> loan;
    typename result::tuple failed;
    try {
        loan.emplace(std::move(handler));
    } catch (...) {
        failed = result::from_failure(std::current_exception());
    }
    const auto call = [](Handler h, typename result::tuple&& arguments) {
        std::apply(std::move(h), std::move(arguments));
    };
    if (loan)
        initiate_on_loan(op, executor, *loan, call);
    else
        call(std::move(handler), std::move(failed));
}

} // namespace turnstile::inline v0_1::detail
