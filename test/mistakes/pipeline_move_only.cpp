// SPDX-License-Identifier: BSL-1.0
// mistake: A pipeline that retries gets an operation that cannot be copied.
// says: must be copyable
#include "all.hpp"

asio::awaitable<void> run(asio::io_context& io)
{
    const auto calls = turnstile::pipeline(io).timeout(2s).retry(turnstile::retry_options());
    auto operation = [owned = std::make_unique<int>(1)] { return fetch(); };
    co_await calls.async_call(std::move(operation));
}
