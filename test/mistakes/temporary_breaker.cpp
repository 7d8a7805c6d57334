// SPDX-License-Identifier: BSL-1.0
// mistake: A pipeline gets a breaker that is destroyed before it is used.
// says: one that outlives the pipeline
#include "all.hpp"

asio::awaitable<void> run(asio::io_context& io)
{
    const auto calls = turnstile::pipeline(io).circuit_breaker(turnstile::circuit_breaker(io));
    co_await calls.async_call(fetch);
}
