// SPDX-License-Identifier: BSL-1.0
// Recognises the executors of the system context, which runs functions on threads of its own. A
// future's promise has such an executor; Turnstile sets the promise where the operation completes,
// and starts no threads for it. handler_route and handler_executor use this header.
//
// Invariant: no executor is queried for its context, because that query starts the threads of the
// system context. Only types are compared.
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

template <class Executor>
using context_of =
    std::decay_t<decltype(asio::query(std::declval<const Executor&>(), asio::execution::context))>;

template <class Executor>
concept strand_executor = requires(const Executor& e)
{
    e.get_inner_executor();
};

// The executor of a future's promise, for one type of value. The type of its context is
// execution_context, so context_of does not recognise it.
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

// Whether an executor of this type can belong to the system context. A strand never counts: the
// user has chosen it, whatever its inner executor is.
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
