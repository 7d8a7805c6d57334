// SPDX-License-Identifier: BSL-1.0
// A program of somebody who uses Turnstile.

#include <turnstile/sync/mutex.hpp>
#include <turnstile/version.hpp>

#include <boost/asio.hpp>

#include <cstdio>

namespace asio = boost::asio;

int main()
{
    asio::io_context io;
    turnstile::mutex mutex(io);
    int counter = 0;

    for (int i = 0; i != 10; ++i) {
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                auto lock = co_await mutex.async_lock();
                const int before = counter;
                co_await asio::post(asio::use_awaitable);
                counter = before + 1;
            },
            asio::detached);
    }
    io.run();

    std::printf("Turnstile %s: %d\n", TURNSTILE_VERSION_STRING, counter);
    return counter == 10 ? 0 : 1;
}
