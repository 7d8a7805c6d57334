// SPDX-License-Identifier: BSL-1.0
// Recognises the completion tokens of a coroutine, use_awaitable and as_tuple(use_awaitable), and
// reports success and failure in the form of each: as a value or an exception, or as a tuple.
// start_wait() awaits the wait of such a token in a nested coroutine, which does not suspend if it
// is granted at once. All other tokens go through asio::async_initiate.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/detail/wait/wait_outcome.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <tuple>
#include <utility>

namespace turnstile::inline v0_1::detail {

// For other tokens.
template <class Token, class T>
struct coroutine_token {
    static constexpr bool is_coroutine = false;
};

template <class Executor, class T>
struct coroutine_token<asio::use_awaitable_t<Executor>, T> {
    static constexpr bool is_coroutine = true;
    static constexpr bool throws_errors = true;
    using executor_type = Executor;
    using value_type = T;

    static decltype(auto) success(typename nothrow_movable<T>::type&& value)
    {
        return nothrow_movable<T>::unwrap(std::move(value));
    }
    [[noreturn]] TURNSTILE_COLD static T failure(wait_decision why)
    {
        throw system_error(why.error());
    }
    static T result(wait_outcome<T>&& outcome)
    {
        if (outcome.error)
            throw system_error(outcome.error);
        return nothrow_movable<T>::unwrap(std::move(outcome.value));
    }
};

template <class Executor>
struct coroutine_token<asio::use_awaitable_t<Executor>, void> {
    static constexpr bool is_coroutine = true;
    static constexpr bool throws_errors = true;
    using executor_type = Executor;
    using value_type = void;

    static void success() noexcept {}
    static void result(const wait_outcome<void>& outcome)
    {
        if (outcome.error)
            throw system_error(outcome.error);
    }
    [[noreturn]] TURNSTILE_COLD static void failure(wait_decision why)
    {
        throw system_error(why.error());
    }
};

template <class Executor, class T>
struct coroutine_token<asio::as_tuple_t<asio::use_awaitable_t<Executor>>, T> {
    static constexpr bool is_coroutine = true;
    static constexpr bool throws_errors = false;
    using executor_type = Executor;
    using value_type = std::tuple<error_code, T>;

    static value_type success(typename nothrow_movable<T>::type&& value)
    {
        return {error_code(), nothrow_movable<T>::unwrap(std::move(value))};
    }
    static value_type failure(wait_decision why) { return {why.error(), T()}; }
    static value_type result(wait_outcome<T>&& outcome)
    {
        return {outcome.error, nothrow_movable<T>::unwrap(std::move(outcome.value))};
    }
};

template <class Executor>
struct coroutine_token<asio::as_tuple_t<asio::use_awaitable_t<Executor>>, void> {
    static constexpr bool is_coroutine = true;
    static constexpr bool throws_errors = false;
    using executor_type = Executor;
    using value_type = std::tuple<error_code>;

    static value_type success() noexcept { return {}; }
    static value_type failure(wait_decision why) noexcept { return {why.error()}; }
    static value_type result(const wait_outcome<void>& outcome) noexcept { return {outcome.error}; }
};

} // namespace turnstile::inline v0_1::detail
