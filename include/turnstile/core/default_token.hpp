// SPDX-License-Identifier: BSL-1.0
// The completion tokens an operation takes, and the one used when a caller names none.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/wait/wait_outcome.hpp>

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

// The default token of a free function that takes an executor. The type of that executor is an
// accident of the call, so by default the call can be awaited in an ordinary awaitable<T>.
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

/// A completion token for an operation with the signature `void(error_code, T)`, or
/// `void(error_code)` if T is void.
template <class Token, class T>
concept token_for = asio::completion_token_for<Token, typename detail::signature_of<T>::type>;

/// The executor's own default where somebody named one (`as_default_on`), else
/// `use_awaitable_t<Executor>`, on every supported Boost: `co_await m.async_lock()` works.
template <class Executor>
using default_token_t = typename detail::default_token<Executor>::type;

} // namespace turnstile::inline v0_1
