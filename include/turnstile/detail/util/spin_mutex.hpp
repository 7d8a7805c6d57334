// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/lone_thread.hpp>

#include <boost/assert.hpp>

#include <atomic>

namespace turnstile::inline v0_1::detail {

// A mutex for short sections: one exchange to lock (for a lone thread a plain store), a plain
// store to unlock. It takes a tenth of the instructions of std::mutex, and a contended operation
// locks twice.
//
// The store cannot tell whether anybody waits, so nobody is woken: threads that meet here spin,
// then yield, and if it takes longer (the one inside has lost its processor, or lets thousands
// go) they sleep in short turns.
class spin_mutex {
public:
    TURNSTILE_HOT void lock() noexcept
    {
        if (!try_lock()) [[unlikely]]
            lock_contended();
    }

    // Touches nothing after the store: whoever locks next may free the memory.
    void unlock() noexcept { locked_.store(0, std::memory_order_release); }

private:
    TURNSTILE_HOT bool try_lock() noexcept
    {
        if (!is_lone_thread())
            return locked_.exchange(1, std::memory_order_acquire) == 0;
        // Nobody else can have locked it; and if the caller had, a handler ran under the lock.
        BOOST_ASSERT(locked_.load(std::memory_order_relaxed) == 0);
        locked_.store(1, std::memory_order_relaxed);
        return true;
    }
    TURNSTILE_COLD TURNSTILE_EXPORT void lock_contended() noexcept;

    std::atomic<int> locked_{0};
};

} // namespace turnstile::inline v0_1::detail
