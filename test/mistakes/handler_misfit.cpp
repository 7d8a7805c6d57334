// SPDX-License-Identifier: BSL-1.0
// mistake: A completion handler that does not take what the operation completes with.
// says: note: token_for
#include "all.hpp"

void run(turnstile::mutex& mutex)
{
    mutex.async_lock([](boost::system::error_code) {});
}
