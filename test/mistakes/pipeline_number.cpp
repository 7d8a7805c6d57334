// SPDX-License-Identifier: BSL-1.0
// mistake: A number without a unit as the duration.
// says: a duration with a unit
#include "all.hpp"

asio::awaitable<void> run(asio::io_context& io)
{
    const auto calls = turnstile::pipeline(io).timeout(200).retry(turnstile::retry_options());
    co_await calls.async_call(fetch);
}
