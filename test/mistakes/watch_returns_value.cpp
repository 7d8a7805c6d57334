// SPDX-License-Identifier: BSL-1.0
// mistake: An update of a watch that returns the new value instead of changing it.
// says: changes the value in place
#include "all.hpp"

void run(asio::io_context& io)
{
    turnstile::watch<int> version(io, 1);
    version.update([](int v) { return v + 1; });
}
