// SPDX-License-Identifier: BSL-1.0
// Downloads pages, three at a time; and runs two jobs in a scope, of which one fails.
#include <turnstile/work/scope.hpp>
#include <turnstile/work/task_group.hpp>

#include <boost/asio.hpp>

#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <string>

namespace asio = boost::asio;

asio::awaitable<std::string> fetch(int n)
{
    co_await asio::post(asio::use_awaitable);
    co_return "page " + std::to_string(n);
}

asio::awaitable<void> forever()
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_at(asio::steady_timer::time_point::max());
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> fail()
{
    throw std::runtime_error("no route to host");
    co_return;
}

asio::awaitable<void> program()
{
    // [results]
    turnstile::task_group<std::string> pages(co_await asio::this_coro::executor, {.limit = 3});
    for (int n = 0; n != 10; ++n)
        pages.spawn_when_free(fetch(n)); // queued, started as places get free
    std::size_t size = 0;
    while (auto page = co_await pages.async_next())
        size += page->size();
    std::cout << "fetched " << size << " characters\n";
    // [/results]

    // [scope]
    try {
        co_await turnstile::async_scope([](turnstile::task_group<>& g) -> asio::awaitable<void> {
            g.spawn(forever);
            g.spawn(fail); // cancels the other child
            co_return;
        });
    } catch (const std::exception& e) {
        std::cout << "the scope has ended: " << e.what() << '\n';
    }
    // [/scope]
}

int main()
{
    asio::io_context io;
    asio::co_spawn(io, program(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}
