// SPDX-License-Identifier: BSL-1.0
// Runs in a ctest of its own, because an earlier test may have started a second thread.
#include <turnstile/detail/util/lone_thread.hpp>
#include <turnstile/detail/util/spin_mutex.hpp>
#include <turnstile/sync/mutex.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <thread>

namespace {

namespace asio = boost::asio;

BOOST_AUTO_TEST_SUITE(lone_thread)

BOOST_AUTO_TEST_CASE(a_lock_taken_by_a_lone_thread_excludes_a_second_thread)
{
    if (TURNSTILE_COUNTS_THREADS && std::getenv("TURNSTILE_TEST_ALONE"))
        BOOST_TEST(turnstile::detail::is_lone_thread());
    asio::io_context io;
    turnstile::mutex mutex(io);
    turnstile::detail::spin_mutex internal;
    BOOST_TEST(mutex.try_lock());
    internal.lock();
    int inside = 0; // guarded by `internal`; the thread sanitizer detects a race
    int within = 0; // guarded by `mutex`
    std::thread second([&] {
        internal.lock();
        BOOST_TEST(inside == 1);
        internal.unlock();
        while (!mutex.try_lock())
            std::this_thread::yield();
        BOOST_TEST(within == 1);
    });
    inside = 1;
    internal.unlock();
    within = 1;
    mutex.unlock();
    second.join();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
