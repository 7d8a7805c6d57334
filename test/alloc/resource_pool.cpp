// SPDX-License-Identifier: BSL-1.0
// The memory of resource pools. The waits themselves are swept as subjects of the contract.
#include "alloc/heap.hpp"
#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/policies.hpp"
#include "kit/pool_backend.hpp"
#include "kit/run.hpp"

#include <turnstile/work/resource_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <new>
#include <utility>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using namespace std::chrono_literals;
using ts::error_code;

BOOST_AUTO_TEST_SUITE(allocation_resource_pool)

BOOST_AUTO_TEST_CASE_TEMPLATE(acquiring_and_returning_does_not_allocate, P, kit::policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        kit::pool_backend backend(io);
        kit::pool_of<P> pool(io, {.max_size = 2}, {.create = backend.create()});
        std::size_t allocations = 1;
        const auto work = [&]() -> asio::awaitable<void> {
            std::size_t before = 0;
            for (int i = 0; i != 1300; ++i) {
                if (i == 300)
                    before = heap::allocations();
                auto lease = co_await pool.async_acquire();
                BOOST_TEST(lease->id == 1);
            }
            allocations = heap::allocations() - before;
        };
        asio::co_spawn(io, work, asio::detached);
        io.run();
        BOOST_TEST(allocations == 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_creation_without_memory_fails_and_gives_its_place_back, P,
                              kit::policies)
{
    kit::manual_clock::reset();
    kit::drained_context io;
    kit::pool_backend backend(io);
    kit::pool_of<P> pool(io, {.max_size = 1, .create_backoff = ts::backoff::constant(1s)},
                         {.create = backend.create()});
    kit::completion first;
    kit::completion second;
    pool.async_acquire(first.handler([](auto) {}));
    {
        heap::failing failing(0, heap::failure::once); // the slot
        kit::poll_leaves_work(io);
        BOOST_TEST(failing.happened());
    }
    BOOST_TEST((first.error() == boost::system::errc::not_enough_memory));
    BOOST_TEST(pool.stats().size == 0U);
    pool.async_acquire(second.handler([](auto) {}));
    kit::manual_clock::advance(io, 1s);
    kit::poll_leaves_work(io);
    BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_added_resource_is_kept_if_there_is_no_memory, P, kit::policies)
{
    asio::io_context io;
    kit::pool_backend backend(io);
    kit::pool_of<P> pool(io, {}, {.create = backend.create()});
    kit::pool_backend::resource resource(backend, 7);
    {
        heap::failing failing(0, heap::failure::once);
        BOOST_CHECK_THROW(static_cast<void>(pool.try_add(std::move(resource))), std::bad_alloc);
    }
    BOOST_TEST(resource.id == 7);
    BOOST_TEST(pool.try_add(std::move(resource)));
    BOOST_TEST(pool.stats().idle == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
