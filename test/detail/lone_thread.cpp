// SPDX-License-Identifier: BSL-1.0
// In a ctest of its own, since any thread before it would make the process one of several.
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

BOOST_AUTO_TEST_CASE(what_a_lone_thread_has_locked_is_locked_for_the_second)
{
    if (TURNSTILE_COUNTS_THREADS && std::getenv("TURNSTILE_TEST_ALONE"))
        BOOST_TEST(turnstile::detail::is_lone_thread());
    asio::io_context io;
    turnstile::mutex mutex(io);
    turnstile::detail::spin_mutex internal;
    BOOST_TEST(mutex.try_lock());
    internal.lock();
    int inside = 0; // guarded by each of them, and TSan watches
    int within = 0;
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
