// SPDX-License-Identifier: BSL-1.0
// mistake: The function is called instead of passed: fetch() for fetch.
// says: Pass the function, not what it returns
#include "all.hpp"

asio::awaitable<void> run()
{
    std::string answer = co_await turnstile::async_with_timeout(1s, fetch());
}
