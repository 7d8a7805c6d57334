// SPDX-License-Identifier: BSL-1.0
//
// A call of basic_retry whose operation is a coroutine, and whose caller awaits it: the attempts
// run inside the coroutine of the caller (call_coroutine.hpp). Only an attempt with a time limit is
// a coroutine of its own, because the limit has to cancel it alone.
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/call_coroutine.hpp>
#include <turnstile/detail/call/numbered_operation.hpp>
#include <turnstile/detail/util/saturating_time.hpp>
#include <turnstile/resilience/detail/retry_course.hpp>
#include <turnstile/resilience/detail/timeout_token.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// Waits for the delay between two attempts. Throws if the caller is cancelled.
template <class Clock, class Executor>
asio::awaitable<void, Executor> sleep_in_coroutine(call_frame, nanoseconds delay)
{
    asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor> timer(
        co_await asio::this_coro::executor);
    timer.expires_at(deadline_after<Clock>(Clock::now(), delay));
    co_await timer.async_wait(asio::use_awaitable_t<Executor>());
}

// Runs an attempt with a time limit.
template <class Clock, coroutine_operation Op, class Results>
auto await_limited(call_frame, Op op, named_limit<Clock> limit, std::optional<Results>& results)
    -> asio::awaitable<void, operation_executor_t<Op>>
{
    asio::use_awaitable_t<operation_executor_t<Op>> token;
    if constexpr (std::tuple_size_v<Results> == 1) {
        co_await with_timeout(no_executor(), limit, nullptr, std::move(op), token);
        results.emplace();
    } else {
        results.emplace(nullptr,
                        co_await with_timeout(no_executor(), limit, nullptr, std::move(op), token));
    }
}

template <class Clock, class Options, coroutine_operation Op>
auto retry_in_coroutine(call_frame, std::shared_ptr<const Options> options, Op original,
                        std::uint64_t seed, std::shared_ptr<retry_state> state)
    -> std::invoke_result_t<Op>
{
    using signature = operation_signature_t<Op>;
    using traits = result_traits<signature>;
    using executor_type = operation_executor_t<Op>;
    using value_type = typename std::invoke_result_t<Op>::value_type;

    const asio::cancellation_state before = co_await asio::this_coro::cancellation_state;
    const asio::cancellation_type cancelled_before = before.cancelled();
    retry_course<Options, Clock, signature> course(std::move(options), seed, std::move(state));
    course.begin();
    for (;;) {
        const named_limit<Clock> limit = course.begin_attempt();
        std::optional<typename traits::tuple> results;
        std::exception_ptr thrown;
        try {
            if (limit.delay != nanoseconds::max()) {
                co_await await_limited<Clock>(
                    call_frame(), numbered_copy(original, course.attempt()), limit, results);
            } else if constexpr (std::is_void_v<value_type>) {
                co_await numbered_copy(original, course.attempt())();
                results.emplace();
            } else {
                results.emplace(nullptr, co_await numbered_copy(original, course.attempt())());
            }
        } catch (...) {
            thrown = std::current_exception();
        }
        if (thrown)
            results.emplace(traits::from_failure(std::exchange(thrown, nullptr)));

        const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
        std::optional<nanoseconds> delay;
        try {
            delay = course.end_attempt(*results, now.cancelled() != cancelled_before);
        } catch (...) {
            course.count_exception();
            throw;
        }
        if (!delay)
            co_return value_or_throw(std::move(*results));
        results.reset();

        try {
            co_await sleep_in_coroutine<Clock, executor_type>(call_frame(), *delay);
        } catch (...) {
            thrown = std::current_exception();
        }
        if (thrown) {
            course.take_back();
            if (failure(thrown).is_cancelled())
                course.count_cancellation();
            else
                course.count_exception();
            std::rethrow_exception(thrown);
        }
    }
}

} // namespace turnstile::inline v0_1::detail
