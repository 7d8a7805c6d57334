// SPDX-License-Identifier: BSL-1.0
// The two kinds of operation, and how the completion signature of each is found. The concepts of
// core/operation.hpp are made of these parts.
//
// The completion signature of a stage is found with signature_probe, a completion token that
// starts nothing: an initiating function that receives it returns its signature as a type.
#pragma once

#include <turnstile/core/config.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>

#include <exception>
#include <type_traits>

namespace turnstile::inline v0_1::detail {

struct signature_probe {};

// The result of an initiating function that is called with signature_probe.
template <class Signature>
struct signature_probe_result {
    using type = Signature;
};

// The completion signature that co_spawn has for an awaitable, and the executor type.
template <class T>
struct awaitable_traits {
    static constexpr bool is_awaitable = false;
};

template <class T, class Executor>
struct awaitable_traits<asio::awaitable<T, Executor>> {
    static constexpr bool is_awaitable = true;
    using executor_type = Executor;
    using signature = void(std::exception_ptr, T);
};

template <class Executor>
struct awaitable_traits<asio::awaitable<void, Executor>> {
    static constexpr bool is_awaitable = true;
    using executor_type = Executor;
    using signature = void(std::exception_ptr);
};

// A function without parameters that returns an awaitable.
template <class Op>
concept coroutine_operation =
    std::is_invocable_v<Op> && awaitable_traits<std::invoke_result_t<Op>>::is_awaitable;

// A callable object that takes a completion token.
template <class Op>
concept token_operation =
    !coroutine_operation<Op> && asio::is_async_operation<Op>::value && requires
{
    typename asio::completion_signature_of<Op>::type;
};

template <class Op>
struct operation_signature;

template <token_operation Op>
struct operation_signature<Op> {
    using type = typename asio::completion_signature_of<Op>::type;
};

template <coroutine_operation Op>
struct operation_signature<Op> {
    using type = typename awaitable_traits<std::invoke_result_t<Op>>::signature;
};

} // namespace turnstile::inline v0_1::detail

template <class Signature>
class boost::asio::async_result<turnstile::detail::signature_probe, Signature> {
public:
    using return_type = turnstile::detail::signature_probe_result<Signature>;

    template <class Initiation, class... Args>
    static return_type initiate(Initiation&&, turnstile::detail::signature_probe, Args&&...)
    {
        return {};
    }
};
