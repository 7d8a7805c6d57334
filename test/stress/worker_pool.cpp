// SPDX-License-Identifier: BSL-1.0
// A worker pool that several threads submit to, resize, pause and shut down.
#include <turnstile/work/worker_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using namespace std::chrono_literals;
using ts::error_code;

// Each accepted job ends once, in one of three ways.
struct ends {
    std::atomic<std::size_t> done{0};
    std::atomic<std::size_t> failed{0};
    std::atomic<std::size_t> discarded{0};
    std::size_t all() const { return done + failed + discarded; }
};

ts::worker_pool_options<int> options(ends& e)
{
    return {.workers = 3,
            .capacity = 10,
            .on_error = [&e](int&, std::exception_ptr) { ++e.failed; },
            .on_discard = [&e](int&&) { ++e.discarded; }};
}

BOOST_AUTO_TEST_SUITE(worker_pool)

BOOST_AUTO_TEST_CASE(threads_submit_resize_and_pause)
{
    asio::thread_pool threads(2);
    ends e;
    ts::worker_pool<int> pool(threads, options(e), [&](int& job) -> asio::awaitable<void> {
        co_await asio::post(asio::use_awaitable);
        if (job % 7 == 0)
            throw std::runtime_error("seven");
        ++e.done;
    });
    std::atomic<std::size_t> accepted{0};
    std::atomic<int> producers{2};
    for (int producer = 0; producer != 2; ++producer)
        asio::co_spawn(
            threads,
            [&]() -> asio::awaitable<void> {
                for (int i = 0; i != 3000; ++i) {
                    co_await pool.async_submit(i);
                    ++accepted;
                }
                if (--producers == 0)
                    co_await pool.async_shutdown();
            },
            asio::detached);
    for (std::size_t i = 0; producers != 0; ++i) {
        pool.resize(1 + i % 5);
        pool.pause();
        if (pool.try_submit(1))
            ++accepted;
        pool.resume();
        static_cast<void>(pool.stats());
    }
    pool.resume();
    threads.join();
    BOOST_TEST(e.all() == accepted);
    BOOST_TEST(pool.stats().done == e.done);
    BOOST_TEST(pool.stats().failed == e.failed);
}

BOOST_AUTO_TEST_CASE(runs_are_cancelled_while_jobs_start_and_end)
{
    asio::thread_pool threads(2);
    ends e;
    ts::worker_pool<int, int> pool(threads, options(e), [](int& job) -> asio::awaitable<int> {
        co_await asio::post(asio::use_awaitable);
        co_return job;
    });
    std::atomic<std::size_t> ended{0};
    std::atomic<int> wrong{0}; // Boost.Test checks on one thread only
    for (int caller = 0; caller != 4; ++caller)
        asio::co_spawn(
            asio::make_strand(threads),
            [&, caller]() -> asio::awaitable<void> {
                const auto executor = co_await asio::this_coro::executor;
                for (int i = 0; i != 1000; ++i) {
                    asio::cancellation_signal stop;
                    bool is_done = false;
                    asio::steady_timer wake(executor, asio::steady_timer::time_point::max());
                    pool.async_run(i, asio::bind_cancellation_slot(
                                          stop.slot(),
                                          asio::bind_executor(executor, [&](error_code ec, int n) {
                                              wrong += !ec && n != i ? 1 : 0;
                                              is_done = true;
                                              ++ended;
                                              wake.cancel();
                                          })));
                    for (int yields = (i + caller) % 5; yields != 0; --yields)
                        co_await asio::post(asio::use_awaitable);
                    stop.emit(asio::cancellation_type::terminal);
                    error_code ec;
                    if (!is_done)
                        co_await wake.async_wait(asio::redirect_error(asio::use_awaitable, ec));
                }
            },
            asio::detached);
    threads.join();
    BOOST_TEST(ended == 4000U);
    BOOST_TEST(wrong == 0);
    BOOST_TEST(pool.stats().running + pool.stats().queued == 0U);
}

// With a timeout that some jobs reach, and a deadline that cuts the last ones off.
BOOST_AUTO_TEST_CASE(a_shutdown_cuts_off_jobs_that_are_submitted_and_time_out_meanwhile)
{
    for (int round = 0; round != 50; ++round) {
        asio::thread_pool threads(2);
        ends e;
        auto o = options(e);
        o.job_timeout = 300us;
        ts::worker_pool<int> pool(threads, std::move(o), [&](int& job) -> asio::awaitable<void> {
            asio::steady_timer timer(co_await asio::this_coro::executor,
                                     std::chrono::microseconds(100 * (job % 5)));
            co_await timer.async_wait(asio::use_awaitable);
            ++e.done;
        });
        std::atomic<std::size_t> accepted{0};
        for (int producer = 0; producer != 2; ++producer)
            asio::co_spawn(
                threads,
                [&]() -> asio::awaitable<void> {
                    for (int i = 0;; ++i) {
                        error_code ec;
                        co_await pool.async_submit(i,
                                                   asio::redirect_error(asio::use_awaitable, ec));
                        if (ec)
                            co_return;
                        ++accepted;
                    }
                },
                asio::detached);
        asio::steady_timer stop(threads, std::chrono::milliseconds(1 + round % 3));
        bool is_shut_down = false;
        stop.async_wait([&](error_code) {
            pool.async_shutdown(round % 2 == 0 ? ts::shutdown_mode::discard
                                               : ts::shutdown_mode::drain,
                                100us, [&](error_code) { is_shut_down = true; });
        });
        threads.join();
        BOOST_TEST(is_shut_down);
        BOOST_TEST(e.all() == accepted);
    }
}

BOOST_AUTO_TEST_CASE(a_pool_is_destroyed_while_its_last_jobs_end)
{
    for (int round = 0; round != 300; ++round) {
        asio::thread_pool threads(2);
        auto pool = std::make_unique<ts::worker_pool<int>>(
            threads, ts::worker_pool_options<int>{.workers = 2},
            [&](int&) { return asio::post(threads, asio::deferred); });
        for (int i = 0; i != 4; ++i)
            BOOST_TEST(pool->try_submit(i));
        pool->async_shutdown(ts::shutdown_mode::discard, round % 2 == 0 ? 0ns : 1h,
                             [&](error_code) { pool.reset(); });
        threads.join();
        BOOST_TEST(!pool);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
