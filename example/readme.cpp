// The code sample of README.md.

// [readme]
#include <turnstile/turnstile.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

namespace asio = boost::asio;

asio::awaitable<void> deposit(turnstile::mutex& mutex, int& balance)
{
    auto lock = co_await mutex.async_lock(); // a unique_lock; does not suspend if free
    const int before = balance;
    co_await asio::post(asio::use_awaitable); // others run here, and queue for the lock
    balance = before + 1;
}

int main()
{
    asio::io_context io;
    turnstile::mutex mutex(io);
    int balance = 0;
    for (int i = 0; i != 100; ++i)
        asio::co_spawn(io, deposit(mutex, balance), asio::detached);
    io.run();
    fmt::print("Balance: {}\n", balance); // 100, and not 1
}
// [/readme]
