// SPDX-License-Identifier: BSL-1.0
// The memory of guarded values and keyed mutexes.
#include "alloc/heap.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/work/guarded.hpp>
#include <turnstile/work/keyed_mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <string>

namespace {

namespace asio = boost::asio;

BOOST_AUTO_TEST_SUITE(allocation_work_locks)

BOOST_AUTO_TEST_CASE_TEMPLATE(an_uncontended_lock_of_a_value_does_not_allocate, P, kit::policies)
{
    asio::io_context io;
    turnstile::basic_guarded<int, asio::any_io_executor, P> value(io, 0);
    std::size_t before = 0;
    std::size_t after = 1;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != 1300; ++i) {
                if (i == 300)
                    before = heap::allocations();
                auto handle = co_await value.async_lock();
                ++*handle;
            }
            after = heap::allocations();
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(after == before);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_million_keys_one_after_the_other_leave_nothing_behind, P,
                              kit::policies)
{
    asio::io_context io;
    turnstile::basic_keyed_mutex<std::string, std::hash<std::string>, std::equal_to<std::string>,
                                 asio::any_io_executor, P>
        locks(io);
    std::ptrdiff_t before = 0;
    std::ptrdiff_t after = 1;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != 1'000'300; ++i) {
                if (i == 300)
                    before = heap::in_use();
                const std::string key =
                    "a key on the heap, not in the string: " + std::to_string(i);
                auto lock = co_await locks.async_lock(key);
            }
            after = heap::in_use();
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(after == before);
    BOOST_TEST(locks.size() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
