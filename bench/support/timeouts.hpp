// SPDX-License-Identifier: BSL-1.0
// Time limits around an operation that completes at once, for calls<...>, which measures the cost
// of the limit itself.
#pragma once

#include "breakers.hpp"
#include "posted_operation.hpp"

#include <turnstile/resilience/retry.hpp>
#include <turnstile/resilience/timeout.hpp>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#if __has_include(<boost/asio/cancel_after.hpp>)
#    include <boost/asio/cancel_after.hpp>
#    define BENCH_HAS_CANCEL_AFTER 1
#endif

#include <chrono>

namespace bench {

inline constexpr std::chrono::hours far_away{1};

struct no_limit {
    explicit no_limit(asio::io_context& context) : operation{context.get_executor()} {}
    auto async_call() { return operation(asio::use_awaitable); }
    posted_operation operation;
};

struct timeout_after {
    explicit timeout_after(asio::io_context& context) : operation{context.get_executor()} {}
    auto async_call() { return operation(turnstile::timeout_after(far_away, asio::use_awaitable)); }
    posted_operation operation;
};

struct timer_by_hand {
    explicit timer_by_hand(asio::io_context& context)
        : timer(context), operation{context.get_executor()}
    {
    }
    asio::awaitable<void> async_call()
    {
        using namespace asio::experimental::awaitable_operators;
        timer.expires_after(far_away);
        co_await (operation(asio::use_awaitable) || timer.async_wait(asio::use_awaitable));
    }
    asio::steady_timer timer;
    posted_operation operation;
};

#if BENCH_HAS_CANCEL_AFTER
struct cancel_after {
    explicit cancel_after(asio::io_context& context) : operation{context.get_executor()} {}
    auto async_call() { return operation(asio::cancel_after(far_away, asio::use_awaitable)); }
    posted_operation operation;
};
#endif

struct first_attempt {
    explicit first_attempt(asio::io_context& context)
        : retry(context), operation{context.get_executor()}
    {
    }
    auto async_call() { return retry.async_call(operation, asio::use_awaitable); }
    turnstile::retry retry;
    posted_operation operation;
};

} // namespace bench
