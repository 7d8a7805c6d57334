// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/post/handler_executor.hpp>

#include <boost/asio/async_result.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The initiation of a call that runs an operation under supervision: finds the executor, and
// calls run(handler, executor, operation).
template <class Executor, class Op, class Run, class Token>
auto supervised_call(const Executor& executor, Op&& op, Run&& run, Token& token)
{
    using op_type = std::decay_t<Op>;
    return asio::async_initiate<Token, operation_signature_t<Op>>(
        [executor](auto handler, op_type o, std::decay_t<Run> r) {
            if constexpr (needs_executor<decltype(handler), Executor>) {
                static_assert(is_never<decltype(handler)>,
                              "The handler has no executor of its own. Name one: it is the first "
                              "argument of the function.");
            } else {
                const auto where = executor_for(handler, executor);
                std::move(r)(std::move(handler), where, std::move(o));
            }
        },
        token, std::forward<Op>(op), std::forward<Run>(run));
}

} // namespace turnstile::inline v0_1::detail
