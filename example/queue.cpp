// SPDX-License-Identifier: BSL-1.0
// A bounded queue between a producer and a consumer: the faster side waits. Then workers that are
// joined, a batch, and a queue that is closed.

#include <turnstile/channel/queue.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/core.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;

namespace {

// [queue]
// ---- One producer, one consumer ----------------------------------------------------------

asio::awaitable<void> produce(turnstile::queue<int>& queue, int n)
{
    for (int i = 0; i != n; ++i)
        co_await queue.async_push(i); // waits while the queue is full
    fmt::print("Producer done\n");
}

asio::awaitable<void> consume(turnstile::queue<int>& queue, int n)
{
    asio::steady_timer work(co_await asio::this_coro::executor);
    for (int i = 0; i != n; ++i) {
        const int item = co_await queue.async_pop();
        work.expires_after(1ms);
        co_await work.async_wait(asio::use_awaitable);
        queue.task_done();
        if (item == n - 1)
            fmt::print("Consumer done\n");
    }
}

asio::awaitable<void> one_to_one()
{
    turnstile::queue<int> queue(co_await asio::this_coro::executor, 3);
    co_await (produce(queue, 10) && consume(queue, 10));
    co_await queue.async_join(); // completes at once: every item is done
    fmt::print("All 10 items processed\n");
}

// ---- Workers until the queue is closed -----------------------------------------------------

asio::awaitable<void> work(turnstile::queue<int>& jobs, int& sum)
{
    for (;;) {
        auto [ec, job] = co_await jobs.async_pop(asio::as_tuple(asio::use_awaitable));
        if (ec == turnstile::errc::closed)
            co_return; // and no item is left
        sum += job;
        jobs.task_done();
    }
}

asio::awaitable<void> feed(turnstile::queue<int>& jobs)
{
    for (int job = 1; job <= 100; ++job)
        co_await jobs.async_push(job);
    co_await jobs.async_join(); // waits until every job is done
    jobs.close();
}

asio::awaitable<void> workers()
{
    turnstile::queue<int> jobs(co_await asio::this_coro::executor, 2);
    int sum = 0;
    co_await (feed(jobs) && work(jobs, sum) && work(jobs, sum) && work(jobs, sum));
    fmt::print("Three workers: {}\n", sum);
}

// ---- More -----------------------------------------------------------------------------------

asio::awaitable<void> batches_and_deadlines()
{
    turnstile::queue<int> queue(co_await asio::this_coro::executor, 4);
    asio::steady_timer deadline(co_await asio::this_coro::executor, 1ms);

    // No item comes, so the timer wins. An item that comes later is not lost.
    auto first = co_await (queue.async_pop() || deadline.async_wait(asio::use_awaitable));
    fmt::print("{}\n", first.index() == 0 ? "an item" : "too late");

    // Reserves a place first, and fills it when the value exists.
    auto place = co_await queue.async_reserve();
    place.push(1);
    for (int i = 2; i <= 4; ++i)
        co_await queue.async_push(i);
    int full = 5;
    fmt::print("{}\n", queue.try_push(full) ? "room" : "full");

    auto batch = co_await queue.async_pop_n(3); // at least one, up to three
    fmt::print("{} items, {} left\n", batch.size(), queue.size());
}

asio::awaitable<void> latest()
{
    // Keeps only the latest readings: a push never waits.
    turnstile::queue<int> readings(co_await asio::this_coro::executor, 2,
                                   turnstile::overflow::drop_oldest);
    for (int i = 1; i <= 5; ++i)
        co_await readings.async_push(i);
    readings.close();
    const auto kept = co_await readings.async_pop_n(5);
    fmt::print("{} and {}, dropped {}\n", kept.at(0), kept.at(1), readings.dropped());
}

asio::awaitable<void> functions()
{
    turnstile::queue<std::function<void()>> jobs(co_await asio::this_coro::executor, 2);
    // g++ 12 destroys the captures of a lambda that is a temporary in a co_await twice.
    std::string text = "work";
    std::function<void()> job = [text] { fmt::print("Doing {}\n", text); };
    co_await jobs.async_push(std::move(job));
    const auto next = co_await jobs.async_pop();
    next();
}

asio::awaitable<void> everything()
{
    co_await one_to_one();
    co_await workers();
    co_await batches_and_deadlines();
    co_await latest();
    co_await functions();
}

// [/queue]

} // namespace

int main()
{
    asio::io_context io;
    asio::co_spawn(io, everything(), [](std::exception_ptr failed) {
        if (failed)
            std::rethrow_exception(failed);
    });
    io.run();
}
