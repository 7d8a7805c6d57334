// SPDX-License-Identifier: BSL-1.0
// mistake: Something that is no completion token.
// says: note: token_for
#include "all.hpp"

void run(turnstile::semaphore& semaphore) { semaphore.async_acquire(1, std::string("now")); }
