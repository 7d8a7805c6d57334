// SPDX-License-Identifier: BSL-1.0
#include "kit/threads.hpp"

#include <turnstile/detail/util/synchronization.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace {

BOOST_AUTO_TEST_SUITE(spin_mutex)

BOOST_AUTO_TEST_CASE(one_thread_holds_the_lock_at_a_time)
{
    constexpr int threads = 4;
    constexpr int rounds = 20'000;
    turnstile::detail::spin_mutex mutex;
    int count = 0; // guarded by the mutex; the thread sanitizer detects a race
    kit::on_threads(
        [&](int) {
            for (int k = 0; k != rounds; ++k) {
                const std::scoped_lock lock(mutex);
                ++count;
            }
        },
        threads);
    BOOST_TEST(count == threads * rounds);
}

// The threads have stopped spinning and yielding, and sleep.
BOOST_AUTO_TEST_CASE(a_thread_that_has_waited_long_gets_the_lock)
{
    constexpr int threads = 3;
    turnstile::detail::spin_mutex mutex;
    std::atomic<int> waiting = 0;
    int inside = 0;
    std::vector<kit::joining_thread> pool;
    mutex.lock();
    for (int i = 0; i != threads; ++i) {
        pool.emplace_back([&] {
            ++waiting;
            const std::scoped_lock lock(mutex);
            ++inside;
        });
    }
    while (waiting != threads)
        std::this_thread::yield();
    for (int i = 0; i != 20'000; ++i)
        std::this_thread::yield();
    BOOST_TEST(inside == 0);
    mutex.unlock();
    pool.clear();
    BOOST_TEST(inside == threads);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
