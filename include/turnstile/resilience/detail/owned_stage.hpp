// SPDX-License-Identifier: BSL-1.0
//
// A stage of the user that a pipeline owns. basic_pipeline wraps it in an owned_stage, whose calls
// keep the stage until they complete.
//
// Invariant: the reference of a call is dropped before the caller continues.
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/call_coroutine.hpp>
#include <turnstile/detail/call/handler_wrapper.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The completion handler of a call, with a reference to its stage.
template <class Handler>
struct stage_keeper {
    using wrapped_handler = Handler;

    Handler handler;
    std::shared_ptr<void> stage;

    const Handler& get() const noexcept { return handler; }

    template <class... Results>
    void operator()(Results&&... results)
    {
        Handler caller(std::move(handler));
        stage.reset();
        std::move(caller)(std::forward<Results>(results)...);
    }
};

template <class Stage, coroutine_operation Op>
auto keep_in_coroutine(call_frame, std::shared_ptr<Stage> stage, Op op) -> std::invoke_result_t<Op>
{
    co_return co_await stage->async_call(std::move(op),
                                         asio::use_awaitable_t<operation_executor_t<Op>>());
}

template <class Stage>
class owned_stage {
public:
    explicit owned_stage(std::shared_ptr<Stage> stage) noexcept : stage_(std::move(stage)) {}

    Stage& get() const noexcept { return *stage_; }

    template <operation Op, operation_token_for<Op> Token>
        requires stage_for<Stage, std::decay_t<Op>>
    auto async_call(Op&& op, Token&& token)
    {
        if constexpr (called_in_coroutine<Op, Token>)
            return keep_in_coroutine(call_frame(), stage_, std::decay_t<Op>(std::forward<Op>(op)));
        else
            return asio::async_initiate<Token, operation_signature_t<Op>>(
                [stage = stage_](auto handler, std::decay_t<Op> o) {
                    stage->async_call(std::move(o),
                                      stage_keeper<decltype(handler)>{std::move(handler), stage});
                },
                token, std::forward<Op>(op));
    }

private:
    std::shared_ptr<Stage> stage_;
};

template <class Stage>
Stage& unwrap_stage(Stage& stage) noexcept
{
    return stage;
}
template <class Stage>
Stage& unwrap_stage(owned_stage<Stage>& stage) noexcept
{
    return stage.get();
}

} // namespace turnstile::inline v0_1::detail
