// SPDX-License-Identifier: BSL-1.0
// How often operations go to the global heap: never when nobody contends, and once warm not
// when they do.
#include "alloc/heap.hpp"
#include "kit/run.hpp"

#include <turnstile/turnstile.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <thread>
#include <tuple>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

constexpr int warm_up = 300;
constexpr int rounds = 1000;

// Runs body() in a coroutine, and counts the allocations after the first rounds; then says
// that it is over.
template <class Body>
std::size_t allocations_of(asio::io_context& io, Body body, bool* over = nullptr)
{
    std::size_t before = 0;
    std::size_t after = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != warm_up + rounds; ++i) {
                if (i == warm_up)
                    before = heap::allocations();
                co_await body();
            }
            after = heap::allocations();
            if (over)
                *over = true;
        },
        asio::detached);
    kit::run(io);
    return after - before;
}

using all_safe = std::tuple<turnstile::mutex, turnstile::semaphore, turnstile::event,
                            turnstile::auto_reset_event>;
using all_local = std::tuple<turnstile::local::mutex, turnstile::local::semaphore,
                             turnstile::local::event, turnstile::local::auto_reset_event>;
using policies = std::tuple<all_safe, all_local>;

BOOST_AUTO_TEST_SUITE(allocation_counts)

BOOST_AUTO_TEST_CASE_TEMPLATE(an_uncontended_operation_does_not_allocate, Objects, policies)
{
    asio::io_context io;
    std::tuple_element_t<0, Objects> m(io);
    std::tuple_element_t<1, Objects> s(io, 2);
    std::tuple_element_t<2, Objects> e(io, true);
    std::tuple_element_t<3, Objects> a(io);
    BOOST_TEST(allocations_of(io, [&]() -> asio::awaitable<void> {
                   auto lock = co_await m.async_lock();
               }) == 0U);
    BOOST_TEST(allocations_of(io, [&]() -> asio::awaitable<void> {
                   auto permit = co_await s.async_acquire(2);
               }) == 0U);
    BOOST_TEST(allocations_of(io, [&]() -> asio::awaitable<void> { co_await e.async_wait(); }) ==
               0U);
    BOOST_TEST(allocations_of(io, [&]() -> asio::awaitable<void> {
                   a.set();
                   co_await a.async_wait();
               }) == 0U);
}

// What one operation allocates on a thread that has kept no memory yet, its frame included.
template <class Operation>
std::size_t cold_allocations_of(Operation operation)
{
    std::size_t count = 0;
    std::thread([&] {
        asio::io_context io;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                const std::size_t before = heap::allocations();
                static_cast<void>(co_await operation());
                count = heap::allocations() - before;
            },
            asio::detached);
        io.run();
    }).join();
    return count;
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_fast_path_comes_before_any_allocation, Objects, policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        std::tuple_element_t<0, Objects> m(io);
        std::tuple_element_t<1, Objects> s(io, 2);
        std::tuple_element_t<2, Objects> e(io, true);
        std::tuple_element_t<3, Objects> a(io);
        a.set();
        const std::size_t frame = cold_allocations_of([]() -> asio::awaitable<void> { co_return; });
        BOOST_TEST(frame != 0U);
        BOOST_TEST(cold_allocations_of([&] { return m.async_lock(); }) <= frame);
        BOOST_TEST(cold_allocations_of([&] { return s.async_acquire(2); }) <= frame);
        BOOST_TEST(cold_allocations_of([&] { return e.async_wait(); }) <= frame);
        BOOST_TEST(cold_allocations_of([&] { return a.async_wait(); }) <= frame);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_contended_operation_does_not_allocate_once_warm, Objects, policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        std::tuple_element_t<0, Objects> m(io);
        std::tuple_element_t<1, Objects> s(io, 2, 2);
        bool over = false;
        const auto lock_and_yield = [&]() -> asio::awaitable<void> {
            auto lock = co_await m.async_lock();
            co_await asio::post(asio::use_awaitable);
        };
        const auto acquire_and_yield = [&]() -> asio::awaitable<void> {
            auto permit = co_await s.async_acquire(2);
            co_await asio::post(asio::use_awaitable);
        };
        const auto against_rivals = [&](auto body) {
            over = false;
            for (int i = 0; i != 10; ++i)
                asio::co_spawn(
                    io,
                    [&]() -> asio::awaitable<void> {
                        while (!over)
                            co_await body();
                    },
                    asio::detached);
            return allocations_of(io, body, &over);
        };
        BOOST_TEST(against_rivals(lock_and_yield) == 0U);
        BOOST_TEST(against_rivals(acquire_and_yield) == 0U);
    }
}

// Asio keeps two frames for a thread, whatever their sizes. Those of operations, which come and go
// all the time, are not among them, and leave these places to the program's own coroutines.
BOOST_AUTO_TEST_CASE_TEMPLATE(operations_leave_asios_memory_to_the_programs_coroutines, Objects,
                              policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        std::tuple_element_t<0, Objects> m(io);
        std::tuple_element_t<1, Objects> s(io, 2);
        std::tuple_element_t<2, Objects> e(io, true);
        const auto small = [&]() -> asio::awaitable<void> { auto lock = co_await m.async_lock(); };
        const auto large =
            [&](std::array<char, 700> /*kept in the frame*/) -> asio::awaitable<void> {
            co_await small();
            auto permit = co_await s.async_acquire();
            co_await e.async_wait();
        };
        BOOST_TEST(allocations_of(io, [&] { return large({}); }) == 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_callback_does_not_allocate_once_warm, Objects, policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        std::tuple_element_t<0, Objects> m(io);
        std::tuple_element_t<3, Objects> a(io);
        struct chain {
            std::tuple_element_t<0, Objects>& m;
            std::tuple_element_t<3, Objects>& a;
            int left;
            std::size_t& before;

            void operator()(error_code, typename std::tuple_element_t<0, Objects>::lock_type)
            {
                a.async_wait(*this);
                a.set();
            }
            void operator()(error_code)
            {
                if (left == rounds)
                    before = heap::allocations();
                if (--left != 0)
                    m.async_lock(*this);
            }
        };
        std::size_t before = 0;
        m.async_lock(chain{m, a, warm_up + rounds, before});
        kit::run(io);
        BOOST_TEST(heap::allocations() == before);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_wake_up_of_many_does_not_allocate, Objects, policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        std::tuple_element_t<2, Objects> e(io);
        int woken = 0;
        for (int i = 0; i != 1000; ++i)
            e.async_wait([&](error_code) { ++woken; });
        std::size_t before = 0;
        asio::post(io, [&] {
            before = heap::allocations();
            e.set();
        });
        kit::run(io);
        BOOST_TEST(heap::allocations() == before);
        BOOST_TEST(woken == 1000);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
