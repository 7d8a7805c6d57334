// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/operation.hpp>

#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

// An operation inside a stage, which is an operation again.
template <class Stage, class Op>
struct staged_operation {
    std::shared_ptr<Stage> stage;
    Op op;

    template <class Token>
    auto operator()(Token&& token) &&
    {
        return stage->async_call(std::move(op), std::forward<Token>(token));
    }
    template <class Token>
    auto operator()(Token&& token) const&
    {
        return stage->async_call(Op(op), std::forward<Token>(token));
    }
};

// Whether a stage starts the operation more than once.
template <class Stage>
constexpr bool is_repeating = false;

} // namespace turnstile::inline v0_1::detail
