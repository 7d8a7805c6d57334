// SPDX-License-Identifier: BSL-1.0
// A consumer woken by signals: each lets one waiter go, and one that nobody waits for is stored.
// In three styles: a coroutine, callbacks, and a future for a thread that may block.

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

// Takes what is there, and sleeps until there is more. A signal that comes while it is busy
// is stored, so nothing is overlooked; two of them are one, which does no harm.
asio::awaitable<void> consumer(std::deque<std::string>& letters, turnstile::auto_reset_event& more)
{
    for (;;) {
        co_await more.async_wait();
        fmt::print("Consumer woken, {} to read\n", letters.size());
        for (; !letters.empty(); letters.pop_front()) {
            if (letters.front() == "stop")
                co_return;
            fmt::print("Read {}\n", letters.front());
            co_await asio::post(asio::use_awaitable); // reading takes a while
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
    send("another"); // nobody waits yet: one signal is stored for both
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
            fmt::print("The {} callback {}\n", name, ec ? "gave up" : "was let go");
        });
    }
    more.set();
    io.poll();
    fmt::print("One signal let one go\n");
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
               more.is_set() ? "and it is still there" : "and used it up");
}

} // namespace

int main()
{
    with_coroutines();
    with_callbacks();
    with_futures();
}
