// SPDX-License-Identifier: BSL-1.0
// mistake: A handler without an executor, and none is given.
// says: The handler has no executor of its own
#include "all.hpp"

void run()
{
    turnstile::async_retry(turnstile::retry_options(), fetch,
                           [](std::exception_ptr, std::string) {});
}
