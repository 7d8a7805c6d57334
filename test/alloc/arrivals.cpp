// SPDX-License-Identifier: BSL-1.0
// Heap allocations of latch, counter and barrier: none without contention, and none for a
// wake-up.
#include "alloc/heap.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/sync/barrier.hpp>
#include <turnstile/sync/counter.hpp>
#include <turnstile/sync/latch.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

template <class P>
struct objects {
    using latch = turnstile::basic_latch<asio::any_io_executor, P>;
    using counter = turnstile::basic_counter<asio::any_io_executor, P>;
    using barrier = turnstile::basic_barrier<asio::any_io_executor, P>;
};

BOOST_AUTO_TEST_SUITE(allocations_of_arrivals)

BOOST_AUTO_TEST_CASE_TEMPLATE(what_need_not_wait_does_not_allocate, P, kit::policies)
{
    asio::io_context io;
    typename objects<P>::latch l(io, 1'000'000);
    typename objects<P>::latch open(io, 0);
    typename objects<P>::counter c(io);
    typename objects<P>::barrier b(io, 1);
    std::size_t allocated = 99;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            std::size_t before = 0;
            for (int i = 0; i != 1000; ++i) {
                if (i == 300)
                    before = heap::allocations();
                l.count_down();
                co_await open.async_wait();
                co_await open.async_arrive_and_wait(0);
                c.add(2);
                c.sub(1);
                co_await c.async_wait_at_least(1);
                co_await c.async_wait([](std::int64_t n) { return n > 0; });
                co_await b.async_arrive_and_wait();
            }
            allocated = heap::allocations() - before;
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(allocated == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_wake_up_of_many_does_not_allocate, P, kit::policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        typename objects<P>::latch l(io, 1);
        typename objects<P>::counter c(io);
        typename objects<P>::barrier b(io, 1001);
        int woken = 0;
        for (int i = 0; i != 1000; ++i) {
            l.async_wait([&](error_code) { ++woken; });
            c.async_wait_at_least(1 + i % 10, [&](error_code) { ++woken; });
            c.async_wait([i](std::int64_t n) { return n == i % 10 + 1; },
                         [&](error_code) { ++woken; });
            b.async_arrive_and_wait([&](error_code, std::size_t) { ++woken; });
        }
        std::size_t before = 0;
        asio::post(io, [&] {
            before = heap::allocations();
            l.count_down();
            for (int i = 0; i != 10; ++i)
                c.add();
            b.arrive_and_drop();
        });
        kit::run(io);
        BOOST_TEST(heap::allocations() == before);
        BOOST_TEST(woken == 4000);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(rounds_of_a_barrier_do_not_allocate_once_warm, P, kit::policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        constexpr int warm_up = 10;
        constexpr int rounds = 100;
        asio::io_context io;
        typename objects<P>::barrier b(io, 20);
        std::size_t before = 0;
        std::size_t after = 0;
        const auto party = [&]() -> asio::awaitable<void> {
            for (int i = 0; i != warm_up + rounds; ++i) {
                if (i == warm_up)
                    before = heap::allocations();
                co_await b.async_arrive_and_wait();
                if (i == warm_up + rounds - 2)
                    after = heap::allocations();
            }
        };
        for (int i = 0; i != 20; ++i)
            asio::co_spawn(io, party(), asio::detached);
        kit::run(io);
        BOOST_TEST(after - before == 0U);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
