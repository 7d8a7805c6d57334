// SPDX-License-Identifier: BSL-1.0
// mistake: A retry object gets an operation that cannot be copied.
// says: must be copyable
#include "all.hpp"

asio::awaitable<void> run(turnstile::retry& retry)
{
    auto operation = [owned = std::make_unique<int>(1)] { return fetch(); };
    std::string answer = co_await retry.async_call(std::move(operation));
}
