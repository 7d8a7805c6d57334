// SPDX-License-Identifier: BSL-1.0
// A consumer that waits for signals: each signal completes one wait, and a signal without a waiter
// is stored. In three styles: a coroutine, callbacks, and a future for a thread that may block.

#include <turnstile/sync/auto_reset_event.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <deque>
#include <future>
#include <string>

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// ---- Coroutines ------------------------------------------------------------------------

// Reads all letters, then waits for a signal. A signal that is set while the consumer is busy is
// stored, so no letter is overlooked. Two such signals count as one, which is enough.
asio::awaitable<void> consumer(std::deque<std::string>& letters, turnstile::auto_reset_event& more)
{
    for (;;) {
        co_await more.async_wait();
        fmt::print("Consumer woken, {} to read\n", letters.size());
        for (; !letters.empty(); letters.pop_front()) {
            if (letters.front() == "stop")
                co_return;
            fmt::print("Read {}\n", letters.front());
            co_await asio::post(asio::use_awaitable); // reading takes some time
        }
    }
}

void with_coroutines()
{
    asio::io_context io;
    std::deque<std::string> letters;
    turnstile::auto_reset_event more(io);
    const auto send = [&](const char* letter) {
        letters.emplace_back(letter);
        more.set();
    };

    send("a letter");
    send("another"); // no operation waits yet: one signal is stored for both
    asio::co_spawn(io, consumer(letters, more), asio::detached);
    io.poll();
    fmt::print("Consumer waiting\n");
    send("stop");
    io.run();
}

// ---- Callbacks -------------------------------------------------------------------------

void with_callbacks()
{
    asio::io_context io;
    turnstile::auto_reset_event more(io);

    for (const char* name : {"first", "second"}) {
        more.async_wait([name](error_code ec) {
            fmt::print("The {} callback {}\n", name, ec ? "was cancelled" : "got a signal");
        });
    }
    more.set();
    io.poll();
    fmt::print("One signal, one callback\n");
    more.set();
    io.run();
}

// ---- Futures ---------------------------------------------------------------------------

void with_futures()
{
    asio::thread_pool pool(1);
    turnstile::auto_reset_event more(pool);

    fmt::print("Thread waiting for signal\n");
    std::future<void> signal = more.async_wait(asio::use_future);
    asio::post(pool, [&] {
        fmt::print("Signal sent to thread\n");
        more.set();
    });
    signal.get();
    fmt::print("Thread received signal, {}\n",
               more.is_set() ? "and it is still there" : "and consumed it");
}

} // namespace

int main()
{
    with_coroutines();
    with_callbacks();
    with_futures();
}
