#pragma once

#include <turnstile/core/config.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

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

// The executor to run on.
template <class Handler, class Executor>
auto executor_for(const Handler& handler, const Executor& otherwise) noexcept
{
    if constexpr (has_postable_executor<Handler>)
        return asio::get_associated_executor(handler);
    else
        return otherwise;
}

// Calls a handler from there.
template <class Handler, class Arguments>
void call_handler(Handler&& handler, Arguments&& arguments)
{
    using own = asio::associated_executor_t<Handler, no_executor>;
    if constexpr (has_postable_executor<Handler> || std::is_same_v<own, no_executor>) {
        std::apply(std::move(handler), std::move(arguments));
    } else {
        const auto executor = asio::get_associated_executor(handler);
        asio::dispatch(executor, [h = std::move(handler), a = std::move(arguments)]() mutable {
            std::apply(std::move(h), std::move(a));
        });
    }
}

} // namespace turnstile::detail
