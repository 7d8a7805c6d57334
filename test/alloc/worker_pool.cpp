// SPDX-License-Identifier: BSL-1.0
// The memory of a worker pool, and what becomes of its jobs when the heap is empty.
#include "alloc/heap.hpp"
#include "alloc/sweep.hpp"
#include "kit/completion.hpp"
#include "kit/run.hpp"

#include <turnstile/work/worker_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <exception>
#include <new>
#include <tuple>
#include <utility>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using ts::error_code;

using pools = std::tuple<ts::worker_pool<int>, ts::local::worker_pool<int>>;

void poll_all(asio::io_context& io)
{
    for (;;) {
        try {
            kit::poll_leaves_work(io);
            return;
        } catch (const std::bad_alloc&) {
        }
    }
}

BOOST_AUTO_TEST_SUITE(allocation_worker_pool)

BOOST_AUTO_TEST_CASE_TEMPLATE(jobs_do_not_allocate_once_warm, Pool, pools)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        const auto allocations_of = [&](auto handler) {
            Pool pool(io, {.workers = 2, .capacity = 10}, std::move(handler));
            std::size_t allocations = 1;
            const auto submit = [&]() -> asio::awaitable<void> {
                std::size_t before = 0;
                for (int i = 0; i != 2000; ++i) {
                    if (i == 1000)
                        before = heap::allocations();
                    co_await pool.async_submit(i);
                }
                allocations = heap::allocations() - before;
                co_await pool.async_shutdown();
            };
            asio::co_spawn(io, submit, asio::detached);
            kit::run(io);
            return allocations;
        };
        BOOST_TEST(allocations_of([](int&) {}) == 0U);
        BOOST_TEST(allocations_of([](int&) {
                       return [](auto token) {
                           return asio::async_initiate<decltype(token), void()>(
                               [](auto h) { std::move(h)(); }, token);
                       };
                   }) == 0U);
        // Asio's co_spawn allocates, each time that a worker begins: for some 10 jobs.
        BOOST_TEST(allocations_of([](int&) -> asio::awaitable<void> { co_return; }) < 1000U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_job_is_submitted_wholly_or_not_at_all, Pool, pools)
{
    const auto check = [](auto make_handler) {
        heap::sweep([&](std::size_t k, heap::failure how) {
            kit::drained_context io;
            Pool pool(io, {.workers = 2}, make_handler(io));
            std::size_t accepted = 0;
            heap::failing failing(k, how);
            for (int i = 0; i != 3; ++i) {
                try {
                    accepted += pool.try_submit(i) ? 1 : 0;
                } catch (const std::bad_alloc&) {
                }
            }
            poll_all(io);
            failing.stop();
            // A worker that found no memory begins with the next job.
            BOOST_TEST(pool.try_submit(4));
            kit::run(io);
            const auto stats = pool.stats();
            BOOST_TEST(stats.queued + stats.running == 0U);
            BOOST_TEST(stats.done + stats.failed == accepted + 1);
            return failing.happened();
        });
    };
    check([](asio::io_context&) { return [](int&) {}; });
    check([](asio::io_context& io) {
        return
            [&io](int&) { return [&io](auto token) { return asio::post(io, std::move(token)); }; };
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_run_completes_once_or_throws, Pool, pools)
{
    heap::sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        Pool pool(io, {}, [](int&) {});
        kit::completion end(kit::dropping::is_expected);
        bool thrown = false;
        heap::failing failing(k, how);
        try {
            pool.async_run(1, end.handler([] {}));
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        poll_all(io);
        failing.stop();
        pool.resume(); // a worker that found no memory begins
        kit::run(io);
        BOOST_TEST(end.succeeded() != thrown);
        BOOST_TEST(pool.stats().done == (thrown ? 0U : 1U));
        return failing.happened();
    });
}

BOOST_AUTO_TEST_CASE(a_pool_is_resized_wholly_or_not_at_all)
{
    heap::sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        ts::worker_pool<int> pool(io, {.workers = 2}, [](int&) {});
        bool thrown = false;
        heap::failing failing(k, how);
        try {
            pool.resize(5);
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        failing.stop();
        BOOST_TEST(pool.stats().workers == (thrown ? 2U : 5U));
        return failing.happened();
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
