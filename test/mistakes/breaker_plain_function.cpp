// SPDX-License-Identifier: BSL-1.0
// mistake: The operation returns a value instead of an awaitable.
// says: must return an asio::awaitable
#include "all.hpp"

asio::awaitable<void> run(turnstile::circuit_breaker& breaker)
{
    int answer = co_await breaker.async_call([] { return 42; });
}
