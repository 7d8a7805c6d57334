// SPDX-License-Identifier: BSL-1.0
// mistake: timeout_after is inside redirect_error.
// says: timeout_after(1s, as_tuple(token))
#include "all.hpp"

asio::awaitable<void> run(turnstile::event& event)
{
    boost::system::error_code error;
    co_await event.async_wait(
        asio::redirect_error(turnstile::timeout_after(1s, asio::use_awaitable), error));
}
