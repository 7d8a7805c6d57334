// SPDX-License-Identifier: BSL-1.0
// mistake: The operation is neither a coroutine function nor an initiating function.
// says: is not an operation
#include "all.hpp"

asio::awaitable<void> run(turnstile::bulkhead& bulkhead) { co_await bulkhead.async_call(42); }
