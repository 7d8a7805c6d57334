// SPDX-License-Identifier: BSL-1.0
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

// Where a coroutine with this type of executor runs if it is to run on `executor`: there, or
// if the type does not allow it, on what a strand is made from.
template <class CoroutineExecutor, class Executor>
CoroutineExecutor coroutine_executor(const Executor& executor)
{
    if constexpr (std::convertible_to<Executor, CoroutineExecutor>)
        return executor;
    else if constexpr (requires { executor.get_inner_executor(); })
        return coroutine_executor<CoroutineExecutor>(executor.get_inner_executor());
    else
        static_assert(std::convertible_to<Executor, CoroutineExecutor>,
                      "An operation that is a coroutine must have an executor type to which the "
                      "handler's executor converts; awaitable<T> goes with every executor.");
}

// A coroutine operation with its captures in the frame. They are destroyed with it, before the
// handler of the spawned coroutine is called: what co_spawn itself is given lives until after that.
template <class Op, class Awaitable = std::invoke_result_t<Op>>
Awaitable run_and_destroy(Op op)
{
    co_return co_await std::move(op)();
}

// Starts an operation with a handler. Throws what the operation throws; the handler is gone
// then. A coroutine runs on `executor`.
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

// Initiates an operation with the handler of a loan. If that throws, deliver(handler, failure) is
// called; but an operation that has passed its handler on before it throws has been started: then
// whoever has the handler completes it.
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
                throw; // the handler has, most likely, and nobody else will hear of it
            return;
        }
        failed = result::from_failure(std::current_exception());
    }
    deliver(loan.take(), std::move(failed));
}

// Starts an operation. A coroutine runs on the handler's executor, by default `otherwise`.
// Whatever goes wrong while it is initiated is delivered to the handler like any other failure,
// posted there. It throws only if there is no memory for that, or if the signature has no place
// for a failure.
template <operation Op, class Executor, class Handler>
void start(Op op, const Executor& otherwise, Handler handler)
{
    const auto executor = executor_for(handler, otherwise);
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

// The same from where the handler may be called: so it is, with whatever goes wrong, also for want
// of memory.
template <operation Op, class Executor, class Handler>
void start_in_completion(Op op, const Executor& otherwise, Handler handler)
{
    using result = operation_result<Op>;
    const auto executor = executor_for(handler, otherwise);
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
