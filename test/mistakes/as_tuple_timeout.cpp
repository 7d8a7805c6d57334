// SPDX-License-Identifier: BSL-1.0
// mistake: timeout_after is inside as_tuple.
// says: timeout_after(1s, as_tuple(token))
#include "all.hpp"

asio::awaitable<void> run(turnstile::mutex& mutex)
{
    auto [error, lock] = co_await mutex.async_lock(
        asio::as_tuple(turnstile::timeout_after(1s, asio::use_awaitable)));
}
