// SPDX-License-Identifier: BSL-1.0
// The initiating function of timeout, retry and hedge: supervised_call() determines the executor of
// the handler, and calls run(handler, executor, operation), which makes a supervisor.
//
// Invariant: a handler without an executor of its own, in a call that names none, does not compile,
// with a message that says so.
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/post/handler_executor.hpp>

#include <boost/asio/async_result.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Executor, class Op, class Run, class Token>
auto supervised_call(const Executor& executor, Op&& op, Run&& run, Token& token)
{
    using op_type = std::decay_t<Op>;
    return asio::async_initiate<Token, operation_signature_t<Op>>(
        [executor](auto handler, op_type o, std::decay_t<Run> r) {
            if constexpr (needs_executor<decltype(handler), Executor>) {
                static_assert(is_never<decltype(handler)>,
                              "The handler has no executor of its own. Pass one as the first "
                              "argument of the function.");
            } else {
                const auto where = executor_for(handler, executor);
                std::move(r)(std::move(handler), where, std::move(o));
            }
        },
        token, std::forward<Op>(op), std::forward<Run>(run));
}

} // namespace turnstile::inline v0_1::detail
