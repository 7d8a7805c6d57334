#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/detail/completion_target.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_context.hpp>

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

template <class Executor>
using context_of =
    std::decay_t<decltype(asio::query(std::declval<const Executor&>(), asio::execution::context))>;

template <class Executor>
concept strand_executor = requires(const Executor& e)
{
    e.get_inner_executor();
};

// Whether an executor of this type may turn out to be the system's. A strand is where somebody
// wants to be, whatever it is on.
template <class Executor>
constexpr bool may_be_system_executor = false;
template <postable_executor Executor>
    requires(!strand_executor<Executor>)
constexpr bool may_be_system_executor<Executor> =
    std::is_same_v<context_of<Executor>, asio::execution_context> ||
    std::is_same_v<context_of<Executor>, asio::system_context>;

template <class Executor>
bool is_system_executor([[maybe_unused]] const Executor& executor) noexcept
{
    if constexpr (may_be_system_executor<Executor>)
        return belongs_to_system_context(asio::query(executor, asio::execution::context));
    else
        return false;
}

// The executor to run on: the handler's, or `otherwise`. The latter also if the handler's is the
// system's, as that of a future: nobody asked for the threads that would run there.
template <class Handler, class Executor>
auto executor_for(const Handler& handler, const Executor& otherwise)
{
    if constexpr (has_postable_executor<Handler>) {
        using own_type = asio::associated_executor_t<Handler>;
        const own_type own = asio::get_associated_executor(handler);
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

// Calls a handler from there.
template <class Handler, class Arguments>
void call_handler(Handler&& handler, Arguments&& arguments)
{
    using own = asio::associated_executor_t<Handler, no_executor>;
    if constexpr (!std::is_same_v<own, no_executor>) {
        const own executor = asio::get_associated_executor(handler);
        if (!has_postable_executor<Handler> || is_system_executor(executor))
            return asio::dispatch(executor,
                                  [h = std::move(handler), a = std::move(arguments)]() mutable {
                                      std::apply(std::move(h), std::move(a));
                                  });
    }
    std::apply(std::move(handler), std::move(arguments));
}

// The same from anywhere, and not inside this call.
template <class Handler, class Executor, class Arguments>
void post_handler(Handler handler, const Executor& otherwise, Arguments arguments)
{
    const auto executor = executor_for(handler, otherwise);
    const auto allocator = asio::get_associated_allocator(handler);
    asio::post(executor, asio::bind_allocator(allocator, [h = std::move(handler),
                                                          a = std::move(arguments)]() mutable {
                   call_handler(std::move(h), std::move(a));
               }));
}

} // namespace turnstile::detail
