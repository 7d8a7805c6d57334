// SPDX-License-Identifier: BSL-1.0
// mistake: A number without a unit as the duration.
// says: timeout_after(1s, token)
#include "all.hpp"

asio::awaitable<void> run(turnstile::mutex& mutex)
{
    auto lock = co_await mutex.async_lock(turnstile::timeout_after(1, asio::use_awaitable));
}
