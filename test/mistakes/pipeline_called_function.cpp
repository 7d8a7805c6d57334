// SPDX-License-Identifier: BSL-1.0
// mistake: The function is called instead of passed: fetch() for fetch.
// says: Pass the function, not what it returns
#include "all.hpp"

asio::awaitable<void> run(asio::io_context& io)
{
    const auto calls = turnstile::pipeline(io).timeout(2s);
    co_await calls.async_call(fetch());
}
