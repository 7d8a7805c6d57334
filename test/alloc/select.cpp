// SPDX-License-Identifier: BSL-1.0
// How often select and all go to the global heap, and what becomes of them when it is empty.
#include "alloc/heap.hpp"

#include <turnstile/channel/queue.hpp>
#include <turnstile/work/all.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <new>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;

BOOST_AUTO_TEST_SUITE(select_allocations)

BOOST_AUTO_TEST_CASE(selecting_does_not_allocate_once_warm)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        std::size_t allocations = 0;
        const auto work = [&]() -> asio::awaitable<void> {
            ts::queue<int> a(io, 4);
            ts::queue<int> b(io, 4);
            std::size_t before = 0;
            for (int i = 0; i != 1300; ++i) {
                if (i == 300)
                    before = heap::allocations();
                static_cast<void>(a.try_push(i));
                co_await ts::async_select(a.async_pop(asio::deferred), b.async_pop(asio::deferred));
            }
            allocations = heap::allocations() - before;
        };
        asio::co_spawn(io, work, asio::detached);
        io.run();
        BOOST_TEST(allocations == 0u);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
