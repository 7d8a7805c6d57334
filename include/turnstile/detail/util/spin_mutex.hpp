// SPDX-License-Identifier: BSL-1.0
// The lock of every thread_safe object: a mutex for sections of a few instructions. Locking is one
// exchange, unlocking a plain store; together they take a tenth of the instructions of std::mutex.
// The store does not know whether a thread waits, so it wakes none: a thread that finds the mutex
// locked spins, then yields, and then sleeps for short periods until it is unlocked.
//
// Invariant: no handler is invoked, posted or destroyed while the mutex is locked.
#pragma once

#include <turnstile/core/export.hpp>

#include <atomic>

namespace turnstile::inline v0_1::detail {

class spin_mutex {
public:
    TURNSTILE_HOT void lock() noexcept
    {
        if (!try_lock()) [[unlikely]]
            lock_contended();
    }

    // Touches nothing after the store: the next thread that locks the mutex may free its memory.
    void unlock() noexcept { locked_.store(0, std::memory_order_release); }

private:
    bool try_lock() noexcept { return locked_.exchange(1, std::memory_order_acquire) == 0; }
    TURNSTILE_COLD TURNSTILE_EXPORT void lock_contended() noexcept;

    std::atomic<int> locked_{0};
};

} // namespace turnstile::inline v0_1::detail
