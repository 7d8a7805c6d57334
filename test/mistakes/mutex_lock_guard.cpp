// SPDX-License-Identifier: BSL-1.0
// mistake: A guard of the standard that would block the thread.
// says: turnstile::mutex does not block the thread: use co_await m.async_lock()
#include "all.hpp"

void run(turnstile::mutex& m) { const std::lock_guard guard(m); }
