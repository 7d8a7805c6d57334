// SPDX-License-Identifier: BSL-1.0
// The item with the lowest number is popped first; among equal numbers, the oldest.

#include <turnstile/channel/priority_queue.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>
#include <fmt/format.h>

#include <string>
#include <vector>

namespace asio = boost::asio;

namespace {

// [priority-queue]
asio::awaitable<void> by_priority()
{
    turnstile::priority_queue<std::string> queue(co_await asio::this_coro::executor, 10);
    co_await queue.async_push("LOW", 3);
    co_await queue.async_push("CRITICAL", 1);
    co_await queue.async_push("HIGH", 2);
    co_await queue.async_push("NORMAL", 3);

    std::vector<std::string> items;
    for (int i = 0; i != 4; ++i)
        items.push_back(co_await queue.async_pop());
    fmt::print("Items dequeued by priority: {}\n", fmt::join(items, ", "));
}

asio::awaitable<void> with_changed_priorities()
{
    turnstile::priority_queue<std::string> queue(co_await asio::this_coro::executor,
                                                 turnstile::unbounded);
    auto report = co_await queue.async_push("report", 5);
    auto backup = co_await queue.async_push("backup", 4);

    fmt::print("changed: {}\n", queue.change_priority(report, 1));
    fmt::print("first: {}\n", co_await queue.async_pop());
    fmt::print("changed: {}\n", queue.change_priority(report, 9)); // it was popped
    fmt::print("taken out: {}\n", queue.erase(backup).value_or("nothing"));
}

asio::awaitable<void> only_the_best()
{
    // Room for two items: the worst one is dropped.
    turnstile::priority_queue<std::string> queue(co_await asio::this_coro::executor, 2,
                                                 turnstile::overflow::drop_worst);
    co_await queue.async_push("third", 3);
    co_await queue.async_push("first", 1);
    co_await queue.async_push("second", 2);
    fmt::print("{}, ", co_await queue.async_pop());
    fmt::print("{}; dropped {}\n", co_await queue.async_pop(), queue.dropped());
}

asio::awaitable<void> everything()
{
    co_await by_priority();
    co_await with_changed_priorities();
    co_await only_the_best();
}

// [/priority-queue]

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
