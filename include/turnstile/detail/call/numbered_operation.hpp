// SPDX-License-Identifier: BSL-1.0
// Operations that take the number of their attempt: `op(attempt)` returns an awaitable, or
// `op(attempt, token)` is an initiating function. retry, hedge and pipeline turn such an operation
// into a numbered_operation, which is an ordinary operation with a number. The stage that repeats
// it sets the number of each copy; the wrappers of a pipeline pass the number on.
//
// Invariant: an operation that is not repeated is attempt number 1.
#pragma once

#include <turnstile/core/operation.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Op>
concept numbered_coroutine = std::is_invocable_v<Op, std::uint32_t> &&
    awaitable_traits<std::invoke_result_t<Op, std::uint32_t>>::is_awaitable;

template <class Op>
concept numbered_initiation = asio::is_async_operation<Op, std::uint32_t>::value;

// An ordinary operation is not tested further, because the body of a generic lambda may not compile
// with a number.
template <class Op>
concept takes_attempt_number = !operation<Op> && (numbered_coroutine<std::decay_t<Op>> ||
                                                  numbered_initiation<std::decay_t<Op>>);

template <class Op>
struct numbered_operation {
    Op op;
    std::uint32_t attempt = 1;

    auto operator()() && requires numbered_coroutine<Op> { return std::move(op)(attempt); }

    template <class Token>
        requires(!numbered_coroutine<Op>)
    auto operator()(Token&& token) && -> decltype(std::move(op)(attempt,
                                                                std::forward<Token>(token)))
    {
        return std::move(op)(attempt, std::forward<Token>(token));
    }

    void set_attempt(std::uint32_t number) noexcept { attempt = number; }
};

template <class Op>
numbered_operation<std::decay_t<Op>> with_attempt_number(Op&& op)
{
    return {std::forward<Op>(op)};
}

template <class Op>
concept passes_attempt_number = requires(Op& op)
{
    op.set_attempt(std::uint32_t(1));
};

// A copy of an operation for an attempt.
template <class Op>
Op numbered_copy(const Op& original, std::size_t attempt)
{
    Op copy(original);
    if constexpr (passes_attempt_number<Op>)
        copy.set_attempt(static_cast<std::uint32_t>(attempt));
    return copy;
}

} // namespace turnstile::inline v0_1::detail
