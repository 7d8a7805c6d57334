// SPDX-License-Identifier: BSL-1.0
// Every kind of handler on every executor that Asio ships, of its own type and type-erased.
#include <turnstile/work/worker_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using namespace std::chrono_literals;
using ts::error_code;

BOOST_AUTO_TEST_SUITE(worker_pool_executors)

// 21 jobs of which one fails, and the last delivers its result.
template <class Executor, class Handler>
void run_jobs(const Executor& executor, Handler handler)
{
    std::atomic<int> failed{0};
    ts::basic_worker_pool<int, int, Executor> pool(
        executor,
        {.workers = 3, .capacity = 5, .on_error = [&](int&, std::exception_ptr) { ++failed; }},
        handler);
    std::promise<void> ended;
    asio::co_spawn(
        executor,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != 20; ++i)
                co_await pool.async_submit(i, asio::use_awaitable);
            const int result = co_await pool.async_run(21, asio::use_awaitable);
            BOOST_TEST(result == 42);
            co_await pool.async_shutdown(asio::use_awaitable);
        },
        [&](std::exception_ptr e) { e ? ended.set_exception(e) : ended.set_value(); });
    ended.get_future().get();
    BOOST_TEST(failed == 1);
    BOOST_TEST(pool.stats().done == 20U);
}

int twice(int job) { return job == 13 ? throw std::runtime_error("unlucky") : 2 * job; }

template <class Executor>
void run_handlers(const Executor& executor)
{
    run_jobs(executor, [](int& job) { return twice(job); });
    run_jobs(executor, [](int& job) -> asio::awaitable<int> {
        co_await asio::post(asio::use_awaitable);
        co_return twice(job);
    });
    run_jobs(executor, [executor](int& job) { // a callback operation
        return [executor, job](auto token) {
            return asio::async_initiate<decltype(token), void(std::exception_ptr, int)>(
                [executor, job](auto h) {
                    asio::post(executor, [h = std::move(h), job]() mutable {
                        try {
                            std::move(h)(std::exception_ptr(), twice(job));
                        } catch (...) {
                            std::move(h)(std::current_exception(), 0);
                        }
                    });
                },
                token);
        };
    });
}

template <class Context>
void run_executors(Context& context)
{
    run_handlers(context.get_executor());
    run_handlers(asio::make_strand(context));
    run_handlers(asio::any_io_executor(context.get_executor()));
    run_handlers(asio::any_io_executor(asio::make_strand(context)));
    run_handlers(
        asio::any_io_executor(asio::make_strand(asio::any_io_executor(context.get_executor()))));
}

BOOST_AUTO_TEST_CASE(handlers_run_on_an_io_context_and_its_strands)
{
    asio::io_context io;
    auto work = asio::make_work_guard(io);
    std::jthread first([&] { io.run(); });
    std::jthread second([&] { io.run(); });
    run_executors(io);
    work.reset();
}

BOOST_AUTO_TEST_CASE(handlers_run_on_a_thread_pool_and_its_strands)
{
    asio::thread_pool threads(2);
    run_executors(threads);
    threads.join();
}

// A copy of the operation has a copy of the job.
BOOST_AUTO_TEST_CASE(deferred_operations_can_be_copied_if_their_job_can)
{
    asio::io_context io;
    int sum = 0;
    ts::worker_pool<int, int> pool(io, {}, [&](int& job) { return sum += job; });
    auto submit = pool.async_submit(5, asio::deferred);
    auto second_submit = submit;
    std::move(submit)([](error_code ec) { BOOST_TEST(!ec); });
    std::move(second_submit)([](error_code ec) { BOOST_TEST(!ec); });
    auto run = pool.async_run(7, asio::deferred);
    auto second_run = run;
    std::move(run)([](error_code ec, int) { BOOST_TEST(!ec); });
    std::move(second_run)([](error_code ec, int) { BOOST_TEST(!ec); });
    ts::worker_pool<std::unique_ptr<int>> owners(io, {},
                                                 [&](std::unique_ptr<int>& job) { sum += *job; });
    owners.async_run(std::make_unique<int>(100),
                     asio::deferred)([](error_code ec) { BOOST_TEST(!ec); });
    io.run();
    BOOST_TEST(sum == 124);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
