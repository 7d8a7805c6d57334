// SPDX-License-Identifier: BSL-1.0
// mistake: The function is called instead of passed: fetch() for fetch.
// says: Pass the function, not what it returns
#include "all.hpp"

asio::awaitable<void> run()
{
    co_await turnstile::async_retry(turnstile::retry_options(), fetch());
}
