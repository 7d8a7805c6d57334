// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_context.hpp>
#include <boost/asio/use_future.hpp>

#include <type_traits>
#include <typeinfo>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The system context runs what is posted on threads of its own, which nobody asked for: a
// future's promise is rather set where the operation completes. Those threads are started as
// soon as an executor is asked for that context, so this must be told without asking.

template <class Executor>
using context_of =
    std::decay_t<decltype(asio::query(std::declval<const Executor&>(), asio::execution::context))>;

template <class Executor>
concept strand_executor = requires(const Executor& e)
{
    e.get_inner_executor();
};

// The executor of a future's promise, whatever the future is of. It posts to the system context,
// and calls that an execution_context, as executors of the user's own may call theirs.
using promise_executor = asio::associated_executor_t<
    typename asio::async_result<asio::use_future_t<>, void()>::completion_handler_type>;

template <class A, class B>
constexpr bool is_of_same_template = false;
template <template <class...> class T, class... A, class... B>
constexpr bool is_of_same_template<T<A...>, T<B...>> = true;

template <class Executor>
concept erased_executor = requires(const Executor& e)
{
    e.target_type();
};

// Whether an executor of this type may turn out to be the system's. A strand is where somebody
// wants to be, whatever it is on.
template <class Executor>
constexpr bool may_be_system_executor =
    std::is_same_v<context_of<Executor>, asio::system_context> ||
    is_of_same_template<Executor, promise_executor> || erased_executor<Executor>;
template <strand_executor Executor>
inline constexpr bool may_be_system_executor<Executor> = false;

TURNSTILE_EXPORT bool is_system_executor_type(const std::type_info& type) noexcept;

template <class Executor>
bool is_system_executor(const Executor& executor) noexcept
{
    if constexpr (erased_executor<Executor>)
        return is_system_executor_type(executor.target_type());
    else
        return may_be_system_executor<Executor>;
}

} // namespace turnstile::inline v0_1::detail
