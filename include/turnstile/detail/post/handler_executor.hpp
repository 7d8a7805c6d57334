// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/post/erased_task.hpp>
#include <turnstile/detail/post/handler_allocator.hpp>
#include <turnstile/detail/post/system_executor.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// Stands for "none was named" where an executor could be given.
struct no_executor {};

// Whether the handler says itself where it is to run, so that other steps can run there, too.
// Some executors can only be dispatched to (any_completion_executor); then it is one's own
// that is needed, and the dispatch at the end.
template <class Handler>
constexpr bool has_postable_executor =
    !std::is_same_v<asio::associated_executor_t<Handler, no_executor>, no_executor> &&
    std::convertible_to<asio::associated_executor_t<Handler, no_executor>, asio::any_io_executor>;

// Whether there is no executor to run on: none was named, and the handler has none.
template <class Handler, class Executor>
constexpr bool needs_executor =
    std::is_same_v<Executor, no_executor> && !has_postable_executor<Handler>;

// The executor to run on: the handler's, or `otherwise`. The latter also if the handler's is the
// system's, as that of a future: nobody asked for the threads that would run there.
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
        Arguments taken(std::move(arguments)); // goes before the handler, which may own the object
        std::apply(std::move(handler), std::move(taken));
    }
};

// Calls a handler from there.
struct call_from_executor {
    template <class Handler, class Arguments>
    void operator()(Handler handler, Arguments arguments) const
    {
        using own = asio::associated_executor_t<Handler, no_executor>;
        if constexpr (!std::is_same_v<own, no_executor>) {
            const own executor = asio::get_associated_executor(handler);
            bool is_elsewhere = true;
            if constexpr (has_postable_executor<Handler>)
                is_elsewhere = is_system_executor(executor);
            if (is_elsewhere) {
                const auto allocator = handler_allocator<std::byte>(handler);
                return dispatch_task(
                    executor, allocator,
                    make_task<call_directly>(std::move(handler), std::move(arguments)));
            }
        }
        call_directly()(std::move(handler), std::move(arguments));
    }
};

// The same from anywhere, and not inside this call.
template <class Handler, class Executor, class Arguments>
void post_handler(Handler handler, const Executor& otherwise, Arguments arguments)
{
    const auto executor = executor_for(handler, otherwise);
    const auto allocator = handler_allocator<std::byte>(handler);
    post_task(executor, allocator,
              make_task<call_from_executor>(std::move(handler), std::move(arguments)));
}

} // namespace turnstile::inline v0_1::detail
