// SPDX-License-Identifier: BSL-1.0
// mistake: A hedge of an operation that cannot report a failure.
// says: must start with an error_code
#include "all.hpp"

void run(asio::io_context& io)
{
    const auto operation = [&](auto token) { return asio::post(io, std::move(token)); };
    turnstile::async_hedge(io.get_executor(), turnstile::hedge_options{.delay = 10ms}, operation,
                           asio::detached);
}
