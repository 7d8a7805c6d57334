// SPDX-License-Identifier: BSL-1.0
// mistake: A timeout around an operation that cannot report one.
// says: must start with an error_code
#include "all.hpp"

void run(asio::io_context& io)
{
    const auto operation = [&](auto token) { return asio::post(io, std::move(token)); };
    turnstile::async_with_timeout(io.get_executor(), 1s, operation, asio::detached);
}
