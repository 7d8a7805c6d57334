#pragma once

#include <turnstile/core/detail/outcome.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

// The tokens that mean "I am a coroutine", and how each of them reports an outcome.
template <class Token, class T>
struct coroutine_token {
    static constexpr bool is_coroutine = false;
};

template <class Executor, class T>
struct coroutine_token<asio::use_awaitable_t<Executor>, T> {
    static constexpr bool is_coroutine = true;
    using executor_type = Executor;
    using value_type = T;

    static T result(outcome<T> o)
    {
        if (o.error)
            throw system_error(o.error);
        if constexpr (!std::is_void_v<T>)
            return std::move(o.value);
    }
};

template <class Executor, class T>
struct coroutine_token<asio::as_tuple_t<asio::use_awaitable_t<Executor>>, T> {
    static constexpr bool is_coroutine = true;
    using executor_type = Executor;
    using value_type = std::tuple<error_code, T>;

    static value_type result(outcome<T> o) { return {o.error, std::move(o.value)}; }
};

template <class Executor>
struct coroutine_token<asio::as_tuple_t<asio::use_awaitable_t<Executor>>, void> {
    static constexpr bool is_coroutine = true;
    using executor_type = Executor;
    using value_type = std::tuple<error_code>;

    static value_type result(outcome<void> o) { return {o.error}; }
};

} // namespace turnstile::detail
