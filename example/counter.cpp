// SPDX-License-Identifier: BSL-1.0
// A counter of running workers: each decrements it when it finishes, and a coroutine waits until it
// is zero. Then other thresholds, and changes from another thread.

#include <turnstile/sync/counter.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <thread>

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// ---- Workers finish, main waits for zero -----------------------------------------------

// [counter]
asio::awaitable<void> worker(int id, turnstile::counter& running)
{
    for (int i = 0; i != id; ++i)
        co_await asio::post(asio::use_awaitable); // does its work
    fmt::print("worker {} finished, {} left\n", id, running.sub());
}

asio::awaitable<void> start_workers(turnstile::counter& running)
{
    for (int id = 1; id <= 3; ++id) {
        running.add();
        asio::co_spawn(co_await asio::this_coro::executor, worker(id, running), asio::detached);
    }
    co_await running.async_wait_zero();
    fmt::print("all workers finished\n");
}
// [/counter]

// ---- Other thresholds ------------------------------------------------------------------

// [counter-thresholds]
asio::awaitable<void> wait_for_clients(turnstile::counter& clients)
{
    co_await clients.async_wait_at_least(3);
    fmt::print("three clients are connected\n");
    co_await clients.async_wait_at_most(1);
    fmt::print("at most one is left\n");
}

asio::awaitable<void> wait_for_an_even_number(turnstile::counter& clients)
{
    const auto is_even = [](std::int64_t n) { return n > 0 && n % 2 == 0; };
    co_await clients.async_wait(is_even);
    fmt::print("there was an even number\n");
}
// [/counter-thresholds]

// ---- Misuse ----------------------------------------------------------------------------

void misuse(turnstile::counter& counter)
{
    // [counter-bounds]
    error_code ec;
    counter.sub(100, ec); // would be negative
    if (ec == turnstile::errc::negative_count)
        fmt::print("{}; it is still {}\n", ec.message(), counter.value());
    // [/counter-bounds]
}

} // namespace

int main()
{
    asio::io_context io;
    turnstile::counter running(io);
    asio::co_spawn(io, start_workers(running), asio::detached);
    io.run();
    io.restart();

    turnstile::counter clients(io);
    asio::co_spawn(io, wait_for_clients(clients), asio::detached);
    asio::co_spawn(io, wait_for_an_even_number(clients), asio::detached);
    io.poll();
    // From another thread: any thread may change a turnstile::counter.
    std::thread([&] {
        for (int i = 0; i != 3; ++i)
            clients.add();
    }).join();
    io.poll();
    clients.sub(2);
    io.run();
    misuse(clients);
}
