// SPDX-License-Identifier: BSL-1.0
// mistake: A shared lock of the standard that would block the thread.
// says: turnstile::shared_mutex does not block the thread: use co_await m.async_lock_shared()
#include "all.hpp"

#include <shared_mutex>

void run(turnstile::shared_mutex& m) { const std::shared_lock guard(m); }
