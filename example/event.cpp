// SPDX-License-Identifier: BSL-1.0
// A start signal: a worker waits until another coroutine has set the event.
// The same in three styles: coroutines, callbacks, and a future for a thread that may block.

#include <turnstile/sync/event.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <future>

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// ---- Coroutines ------------------------------------------------------------------------

// [start-signal]
asio::awaitable<void> worker(turnstile::event& ready)
{
    fmt::print("Worker waiting for signal\n");
    co_await ready.async_wait();
    fmt::print("Worker received signal and proceeding\n");
}

asio::awaitable<void> start_up(turnstile::event& ready)
{
    co_await asio::post(asio::use_awaitable); // prepares the start
    fmt::print("Signal sent\n");
    ready.set();
}
// [/start-signal]

void with_coroutines()
{
    asio::io_context io;
    turnstile::event ready(io);

    asio::co_spawn(io, worker(ready), asio::detached);
    asio::co_spawn(io, start_up(ready), asio::detached);
    io.run();
}

// ---- Callbacks -------------------------------------------------------------------------

void with_callbacks()
{
    asio::io_context io;
    turnstile::event ready(io);

    fmt::print("Callback waiting for signal\n");
    ready.async_wait([](error_code ec) {
        if (!ec)
            fmt::print("Callback received signal and proceeding\n");
    });
    asio::post(io, [&] {
        fmt::print("Signal sent to callback\n");
        ready.set();
    });
    io.run();
}

// ---- Futures ---------------------------------------------------------------------------

void with_futures()
{
    asio::thread_pool pool(1);
    turnstile::event ready(pool);

    fmt::print("Thread waiting for signal\n");
    std::future<void> signal = ready.async_wait(asio::use_future);
    asio::post(pool, [&] {
        fmt::print("Signal sent to thread\n");
        ready.set();
    });
    signal.get();
    fmt::print("Thread received signal and proceeding\n");
}

} // namespace

int main()
{
    with_coroutines();
    with_callbacks();
    with_futures();
}
