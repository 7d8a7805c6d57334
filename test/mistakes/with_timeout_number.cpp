// SPDX-License-Identifier: BSL-1.0
// mistake: A number without a unit as the duration.
// says: a duration with a unit
#include "all.hpp"

asio::awaitable<void> run()
{
    std::string answer = co_await turnstile::async_with_timeout(1, fetch);
}
