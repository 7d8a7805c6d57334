// SPDX-License-Identifier: BSL-1.0
// Chooses the executor of a call that starts another operation (retry, timeout, hedge ...): the
// associated executor of the completion handler, or else the executor that the component was given.
// The last step of such a call runs on this executor and calls the handler, or posts it.
//
// Invariant: a handler that has an associated executor is called on it.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/post/system_executor.hpp>
#include <turnstile/detail/post/tasks.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The type of a missing executor.
struct no_executor {};

// Whether the handler has an associated executor to which the steps of a call can be posted. An
// any_completion_executor can only be dispatched to: the call then runs on another executor, and
// dispatches the handler at the end.
template <class Handler>
constexpr bool has_postable_executor =
    !std::is_same_v<asio::associated_executor_t<Handler, no_executor>, no_executor> &&
    std::convertible_to<asio::associated_executor_t<Handler, no_executor>, asio::any_io_executor>;

// Whether neither the component nor the handler provides an executor for the call.
template <class Handler, class Executor>
constexpr bool needs_executor =
    std::is_same_v<Executor, no_executor> && !has_postable_executor<Handler>;

// The executor of the call: the handler's, or `otherwise` if the handler has none, or has that of
// the system context, as the handler of a future has; see system_executor.hpp.
template <class Handler, class Executor>
auto executor_for(const Handler& handler, const Executor& otherwise)
{
    if constexpr (has_postable_executor<Handler>) {
        using own_type = asio::associated_executor_t<Handler>;
        own_type own = asio::get_associated_executor(handler);
        if constexpr (std::is_same_v<Executor, no_executor> || !may_be_system_executor<own_type>) {
            return own;
        } else {
            using either = std::conditional_t<std::is_same_v<own_type, Executor>, Executor,
                                              asio::any_io_executor>;
            return is_system_executor(own) ? either(otherwise) : either(own);
        }
    } else {
        return otherwise;
    }
}

struct call_directly {
    template <class Handler, class Arguments>
    void operator()(Handler handler, Arguments arguments) const
    {
        // Destroyed before the handler, which may own the object.
        Arguments taken(std::move(arguments));
        std::apply(std::move(handler), std::move(taken));
    }
};

// Calls a handler from executor_for(handler, otherwise): directly, or by a dispatch to the
// handler's executor if that is another one.
struct call_from_executor {
    template <class Handler, class Arguments>
    void operator()(Handler handler, Arguments arguments) const
    {
        using own = asio::associated_executor_t<Handler, no_executor>;
        if constexpr (!std::is_same_v<own, no_executor>) {
            const own executor = asio::get_associated_executor(handler);
            bool needs_dispatch = true;
            if constexpr (has_postable_executor<Handler>)
                needs_dispatch = is_system_executor(executor);
            if (needs_dispatch) {
                const auto allocator = handler_allocator<std::byte>(handler);
                return dispatch_task(
                    executor, allocator,
                    make_task<call_directly>(std::move(handler), std::move(arguments)));
            }
        }
        call_directly()(std::move(handler), std::move(arguments));
    }
};

// Calls a handler from any thread, but not inside this function.
template <class Handler, class Executor, class Arguments>
void post_handler(Handler handler, const Executor& otherwise, Arguments arguments)
{
    const auto executor = executor_for(handler, otherwise);
    const auto allocator = handler_allocator<std::byte>(handler);
    post_task(executor, allocator,
              make_task<call_from_executor>(std::move(handler), std::move(arguments)));
}

} // namespace turnstile::inline v0_1::detail
