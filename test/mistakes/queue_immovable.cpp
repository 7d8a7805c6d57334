// SPDX-License-Identifier: BSL-1.0
// mistake: A queue of a type that cannot be moved.
// says: values that can be moved
#include "all.hpp"

void run(asio::io_context& io)
{
    turnstile::queue<std::mutex> queue(io, 10);
    queue.try_push(std::mutex());
}
