// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/util/synchronization.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

namespace turnstile::inline v0_1::detail {
namespace {

// A hint to the processor that this thread is in a loop that waits.
void pause() noexcept
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

} // namespace

// Each attempt takes the cache line from the thread that holds the mutex. So the pauses between
// attempts grow: a holder that keeps the line in its cache unlocks sooner.
void spin_mutex::lock_contended() noexcept
{
    constexpr int first_pauses = 8;
    constexpr int most_pauses = 64;
    constexpr int spins = 12;
    constexpr int yields = 32;
    constexpr std::chrono::microseconds nap(20);
    const auto attempt = [this]() noexcept {
        return locked_.load(std::memory_order_relaxed) == 0 && try_lock();
    };
    for (;; std::this_thread::sleep_for(nap)) {
        for (int round = 0, pauses = first_pauses; round != spins; ++round) {
            if (attempt())
                return;
            for (int i = 0; i != pauses; ++i)
                pause();
            pauses = std::min(2 * pauses, most_pauses);
        }
        for (int round = 0; round != yields; ++round) {
            if (attempt())
                return;
            std::this_thread::yield();
        }
    }
}

} // namespace turnstile::inline v0_1::detail
