// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/util/spin_mutex.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using turnstile::detail::spin_mutex;

BOOST_AUTO_TEST_SUITE(core_light_mutex)

BOOST_AUTO_TEST_CASE(one_is_inside_at_a_time)
{
    constexpr int threads = 4;
    constexpr int rounds = 20'000;
    spin_mutex mutex;
    int count = 0; // and TSan watches
    std::vector<std::thread> pool;
    for (int i = 0; i != threads; ++i) {
        pool.emplace_back([&] {
            for (int k = 0; k != rounds; ++k) {
                const std::scoped_lock lock(mutex);
                ++count;
            }
        });
    }
    for (auto& t : pool)
        t.join();
    BOOST_TEST(count == threads * rounds);
}

// Long after they have ceased to spin, and to yield.
BOOST_AUTO_TEST_CASE(those_who_have_waited_long_get_in)
{
    constexpr int threads = 3;
    spin_mutex mutex;
    std::atomic<int> waiting = 0;
    int inside = 0;
    std::vector<std::thread> pool;
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
    for (auto& t : pool)
        t.join();
    BOOST_TEST(inside == threads);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
