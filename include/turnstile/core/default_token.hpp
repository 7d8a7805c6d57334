// SPDX-License-Identifier: BSL-1.0
// The completion tokens that an initiating function accepts, and the token that it uses if the
// caller passes none.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace turnstile::inline v0_1 {
namespace detail {

template <class Executor>
struct default_token {
    using type = asio::use_awaitable_t<Executor>;
};

template <class Executor>
    requires requires { typename Executor::default_completion_token_type; }
struct default_token<Executor> {
    using type = typename Executor::default_completion_token_type;
};

// The default token of a free function that takes an executor. Unlike the executor type of an I/O
// object, the type of this argument is not chosen to match a coroutine, so the default is a token
// for awaitable<T>, whatever the executor is.
template <class Executor>
struct call_token {
    using type = asio::use_awaitable_t<>;
};

template <class Executor>
    requires requires { typename Executor::default_completion_token_type; }
struct call_token<Executor> {
    using type = typename Executor::default_completion_token_type;
};

template <class Executor>
using call_token_t = typename call_token<Executor>::type;

} // namespace detail

/// A completion token for the signature `void(error_code, T)`, or `void(error_code)` if `T` is
/// void.
template <class Token, class T>
concept token_for = asio::completion_token_for<Token, typename detail::signature_of<T>::type>;

/// The default completion token of an I/O object: that of its executor type if it has one
/// (`as_default_on`), otherwise `use_awaitable_t<Executor>`. So `co_await m.async_lock()` works
/// with every supported version of Boost.
template <class Executor>
using default_token_t = typename detail::default_token<Executor>::type;

} // namespace turnstile::inline v0_1
