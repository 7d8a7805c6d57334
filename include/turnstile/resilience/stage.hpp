// SPDX-License-Identifier: BSL-1.0
// Functions for user-written stages of a pipeline: they start an operation, observe its completion,
// or refuse the call. core/operation.hpp has the concept `stage_for`.
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/inspecting_handler.hpp>
#include <turnstile/detail/call/operation_result.hpp>
#include <turnstile/detail/call/operation_start.hpp>
#include <turnstile/detail/post/handler_executor.hpp>

#include <utility>

namespace turnstile::inline v0_1 {

/// Starts an operation with a completion handler, in the initiation of a stage's `async_call`.
///
/// If the initiation of the operation throws, the handler is posted with that failure. This
/// function itself throws only if there is no memory for that, or if the operation's signature has
/// no place for a failure.
///
/// @param fallback The executor of a coroutine, and of the post, if the handler has no associated
/// executor.
template <operation Op, class Executor, class Handler>
void start_operation(Op op, const Executor& fallback, Handler handler)
{
    detail::start(std::move(op), fallback, std::move(handler));
}

/// Completes a call without starting its operation `Op`: posts the handler with a failure, in the
/// form of the operation's signature, and with default values for the other results.
///
/// The signature must start with an `error_code` or an `exception_ptr`, and its other arguments
/// must be default constructible.
///
/// @param fallback The executor of the post, if the handler has no associated executor.
template <operation Op, class Executor, class Handler>
void post_failure(Handler handler, const Executor& fallback, const failure& f)
{
    detail::post_handler(std::move(handler), fallback,
                         detail::operation_result<Op>::from_failure(f));
}

/// Wraps the completion handler of the operation `Op`, so that a function sees its results before
/// the handler is invoked with them. The wrapper has the handler's associated executor, allocator
/// and cancellation slot.
///
/// @param observer Called as `observer(const std::tuple<Results...>&)` if it accepts that, and as
/// `observer(const failure&)` otherwise. It must not throw. It is destroyed before the handler is
/// invoked; and also if the handler is destroyed without being invoked, so it may own a permit.
template <operation Op, class Handler, class Observer>
auto observe_completion(Handler handler, Observer observer)
{
    return detail::inspect_result<operation_signature_t<Op>>(std::move(handler),
                                                             std::move(observer));
}

} // namespace turnstile::inline v0_1
