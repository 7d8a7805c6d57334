// SPDX-License-Identifier: BSL-1.0
// Calls of a coroutine by a coroutine, through one stage or through a pipeline, for calls<...>. The
// coroutine completes at once, through the scheduler.
#pragma once

#include "timeouts.hpp"

#include <turnstile/resilience/pipeline.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <type_traits>

namespace bench {

inline asio::awaitable<void> posted_coroutine() { co_await asio::post(asio::use_awaitable); }

struct direct_coroutine {
    explicit direct_coroutine(asio::io_context&) {}
    auto async_call() { return posted_coroutine(); }
};

// The least that a coroutine costs that can be cancelled alone.
struct spawned_coroutine {
    explicit spawned_coroutine(asio::io_context& context) : executor(context.get_executor()) {}
    auto async_call()
    {
        return asio::co_spawn(executor, &posted_coroutine,
                              asio::bind_cancellation_slot(signal.slot(), asio::use_awaitable));
    }
    asio::any_io_executor executor;
    asio::cancellation_signal signal;
};

template <class Stage>
struct coroutine_through {
    explicit coroutine_through(asio::io_context& context) : stage(context) {}
    auto async_call() { return stage.async_call(&posted_coroutine, asio::use_awaitable); }
    Stage stage;
};

struct limited_coroutine {
    explicit limited_coroutine(asio::io_context&) {}
    auto async_call()
    {
        return turnstile::async_with_timeout(far_away, &posted_coroutine, asio::use_awaitable);
    }
};

// The stages that a call usually has.
struct stages_for_calls {
    explicit stages_for_calls(asio::io_context& context)
        : breaker(context), bulkhead(context, {.limit = 10}),
          limiter(context, turnstile::per_second(1e9, 1'000'000))
    {
    }
    turnstile::circuit_breaker breaker;
    turnstile::bulkhead bulkhead;
    turnstile::rate_limiter limiter;
};

inline auto four_stages(asio::io_context& context, stages_for_calls& stages)
{
    return turnstile::pipeline(context)
        .retry()
        .circuit_breaker(stages.breaker)
        .bulkhead(stages.bulkhead)
        .rate_limiter(stages.limiter);
}

inline auto six_stages(asio::io_context& context, stages_for_calls& stages)
{
    return turnstile::pipeline(context)
        .timeout(far_away)
        .retry()
        .circuit_breaker(stages.breaker)
        .bulkhead(stages.bulkhead)
        .rate_limiter(stages.limiter)
        .timeout(far_away);
}

template <auto Make>
struct coroutine_through_pipeline {
    explicit coroutine_through_pipeline(asio::io_context& context)
        : stages(context), pipeline(Make(context, stages))
    {
    }
    auto async_call() { return pipeline.async_call(&posted_coroutine, asio::use_awaitable); }
    stages_for_calls stages;
    std::invoke_result_t<decltype(Make), asio::io_context&, stages_for_calls&> pipeline;
};

} // namespace bench
