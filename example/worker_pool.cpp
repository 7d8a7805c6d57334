// SPDX-License-Identifier: BSL-1.0
// 100 items for 5 workers, of which one fails; and a graceful shutdown. Then work for the CPU on
// threads of its own, and a shutdown that discards.
#include <turnstile/work/worker_pool.hpp>

#include <boost/asio.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <stdexcept>

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct item {
    int id;
};

int running = 0;
int most_running = 0;

asio::awaitable<void> process(item& i)
{
    struct visit {
        visit() { most_running = std::max(most_running, ++running); }
        ~visit() { --running; }
    } const here;
    co_await asio::post(asio::use_awaitable); // an operation that takes time
    if (i.id == 42)
        throw std::runtime_error("no such item");
}

asio::awaitable<void> hundred_items()
{
    const auto executor = co_await asio::this_coro::executor;
    // [pool]
    turnstile::worker_pool<item> pool(
        executor,
        {.workers = 5,
         .capacity = 10,
         .job_timeout = 30s,
         .on_error =
             [](item& i, std::exception_ptr why) {
                 try {
                     std::rethrow_exception(why);
                 } catch (const std::exception& e) {
                     std::cout << "item " << i.id << ": " << e.what() << '\n';
                 }
             }},
        [](item& i) -> asio::awaitable<void> { co_await process(i); });
    for (int id = 1; id <= 100; ++id)
        co_await pool.async_submit(item{id}); // waits while 10 items are queued
    co_await pool.async_shutdown();           // every item has been processed
    // [/pool]
    const auto stats = pool.stats();
    std::cout << "done " << stats.done << ", failed " << stats.failed << ", at most "
              << most_running << " at a time\n";
    turnstile::error_code ec;
    if (!pool.try_submit(item{101}, ec))
        std::cout << "after the shutdown: " << ec.message() << '\n';
}

long sum_of_squares(int& n)
{
    long sum = 0;
    for (long i = 1; i <= n; ++i)
        sum += i * i;
    return sum;
}

asio::awaitable<void> computations()
{
    // [cpu]
    asio::thread_pool cpus(2);
    turnstile::worker_pool<int, long> sums(cpus, {.workers = 2}, sum_of_squares);
    std::cout << "sum: " << co_await sums.async_run(1000, asio::use_awaitable) << '\n';
    co_await sums.async_shutdown();
    // [/cpu]
}

asio::awaitable<void> in_a_hurry()
{
    const auto executor = co_await asio::this_coro::executor;
    int discarded = 0;
    int cut_off = 0;
    // [discard]
    turnstile::worker_pool<item> pool(executor,
                                      {.workers = 2,
                                       .on_error = [&](item&, std::exception_ptr) { ++cut_off; },
                                       .on_discard = [&](item&&) { ++discarded; },
                                       .priority = [](const item& i) { return i.id; }},
                                      [](item&) -> asio::awaitable<void> {
                                          asio::steady_timer timer(
                                              co_await asio::this_coro::executor, 1h);
                                          co_await timer.async_wait(asio::use_awaitable);
                                      });
    for (int id = 0; id != 10; ++id)
        co_await pool.async_submit(item{id});
    co_await asio::post(asio::use_awaitable); // two of them start
    turnstile::error_code ec;
    co_await pool.async_shutdown(turnstile::shutdown_mode::discard, 10ms,
                                 asio::redirect_error(asio::use_awaitable, ec));
    std::cout << "discarded " << discarded << ", cut off " << cut_off << ": " << ec.message()
              << '\n';
    // [/discard]
}

int main()
{
    asio::io_context io;
    const auto report = [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    };
    asio::co_spawn(io, hundred_items(), report);
    io.run();
    io.restart();
    asio::co_spawn(io, computations(), report);
    io.run();
    io.restart();
    asio::co_spawn(io, in_a_hurry(), report);
    io.run();
}
