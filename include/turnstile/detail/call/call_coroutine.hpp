// SPDX-License-Identifier: BSL-1.0
// Calls of a coroutine by a coroutine. Where the operation is a coroutine and the caller awaits the
// call with use_awaitable, circuit breaker, bulkhead, rate limiter, retry and pipeline run the
// operation inside the coroutine of the caller. It then needs no co_spawn, no handler and no
// cancellation signal of its own: cancelling the caller cancels what it awaits.
//
// A coroutine whose first parameter is the tag call_frame is such a call. Its frame comes from the
// cache of calls (block_cache.hpp), because Asio's recycler keeps two frames of a thread, and a
// call has several.
//
// Invariant: the promise adds no data, because Asio finds the frame by the promise's address.
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/util/block_cache.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Op>
struct operation_awaitable {
    using type = void;
};
template <coroutine_operation Op>
struct operation_awaitable<Op> {
    using type = std::invoke_result_t<Op>;
};

// The awaitable that a coroutine operation returns.
template <class Op>
using operation_awaitable_t = typename operation_awaitable<std::decay_t<Op>>::type;

// The executor type of a coroutine operation.
template <coroutine_operation Op>
using operation_executor_t = typename awaitable_traits<std::invoke_result_t<Op>>::executor_type;

template <class Awaitable, class Token>
constexpr bool is_awaited_as = false;
template <class T, class Executor>
constexpr bool is_awaited_as<asio::awaitable<T, Executor>, asio::use_awaitable_t<Executor>> =
    !std::is_reference_v<T>;

// Whether a call of the operation with this token runs in the coroutine of the caller.
template <class Op, class Token>
concept called_in_coroutine = is_awaited_as<operation_awaitable_t<Op>, std::decay_t<Token>>;

struct call_frame {};

// Asio's promise with another operator new. An awaitable accepts only the coroutine handle of
// Asio's promise, which this promise is at the same address.
template <class AsioPromise>
struct call_frame_promise : AsioPromise {
    static void* operator new(std::size_t size) { return allocate_block(size); }
    static void operator delete(void* frame, std::size_t size) noexcept { free_block(frame, size); }

    template <class Awaitable>
    struct awaiter {
        Awaitable awaitable;

        bool await_ready() const noexcept { return awaitable.await_ready(); }
        void await_suspend(std::coroutine_handle<call_frame_promise> self)
        {
            awaitable.await_suspend(
                std::coroutine_handle<AsioPromise>::from_address(self.address()));
        }
        decltype(auto) await_resume() { return awaitable.await_resume(); }
    };

    using AsioPromise::await_transform;
    template <class T, class Executor>
    auto await_transform(asio::awaitable<T, Executor> awaitable)
    {
        return awaiter<asio::awaitable<T, Executor>>{
            AsioPromise::await_transform(std::move(awaitable))};
    }
};

// Ends a call with results: returns the value, or throws the exception.
template <class Results>
auto value_or_throw(Results&& results)
{
    if (std::get<0>(results))
        std::rethrow_exception(std::get<0>(results));
    if constexpr (std::tuple_size_v<Results> == 2)
        return std::get<1>(std::move(results));
}

} // namespace turnstile::inline v0_1::detail

template <class T, class Executor, class... Args>
struct std::coroutine_traits<boost::asio::awaitable<T, Executor>, turnstile::detail::call_frame,
                             Args...> {
private:
    using asio_promise =
        typename std::coroutine_traits<boost::asio::awaitable<T, Executor>, Args...>::promise_type;

public:
    using promise_type = turnstile::detail::call_frame_promise<asio_promise>;

    static_assert(sizeof(promise_type) == sizeof(asio_promise));
    static_assert(alignof(promise_type) == alignof(asio_promise));
};
