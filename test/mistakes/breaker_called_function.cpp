// SPDX-License-Identifier: BSL-1.0
// mistake: The function is called instead of passed: fetch() for fetch.
// says: Pass the function, not what it returns
#include "all.hpp"

asio::awaitable<void> run(turnstile::circuit_breaker& breaker)
{
    auto [error, answer] =
        co_await breaker.async_call(fetch(), asio::as_tuple(asio::use_awaitable));
}
