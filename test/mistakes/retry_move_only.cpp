// SPDX-License-Identifier: BSL-1.0
// mistake: A retry gets an operation that cannot be copied.
// says: must be copyable
#include "all.hpp"

asio::awaitable<void> run()
{
    auto operation = [owned = std::make_unique<int>(1)] { return fetch(); };
    co_await turnstile::async_retry(turnstile::retry_options(), std::move(operation));
}
