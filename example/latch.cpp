// SPDX-License-Identifier: BSL-1.0
// A coroutine waits for a number of workers. Each of them counts the latch down; at zero the latch
// opens, and stays open.

#include <turnstile/sync/latch.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

namespace asio = boost::asio;

namespace {

// [latch]
asio::awaitable<void> download(int part, turnstile::latch& all_done)
{
    for (int i = 0; i != part; ++i)
        co_await asio::post(asio::use_awaitable); // downloads
    fmt::print("part {} is here\n", part);
    all_done.count_down();
}

asio::awaitable<void> assemble(turnstile::latch& all_done)
{
    fmt::print("waiting for {} parts\n", all_done.count());
    co_await all_done.async_wait();
    fmt::print("all parts are here\n");
}
// [/latch]

// Arrives and waits in one call: no runner starts before all of them are ready.
asio::awaitable<void> runner(int number, turnstile::latch& start)
{
    fmt::print("runner {} is ready\n", number);
    co_await start.async_arrive_and_wait();
    fmt::print("runner {} runs\n", number);
}

} // namespace

int main()
{
    asio::io_context io;

    turnstile::latch all_done(io, 3);
    asio::co_spawn(io, assemble(all_done), asio::detached);
    for (int part = 1; part <= 3; ++part)
        asio::co_spawn(io, download(part, all_done), asio::detached);
    io.run();
    io.restart();

    turnstile::latch start(io, 2);
    for (int number = 1; number <= 2; ++number)
        asio::co_spawn(io, runner(number, start), asio::detached);
    io.run();

    boost::system::error_code ec;
    start.count_down(1, ec);
    fmt::print("once more: {}\n", ec.message());
}
