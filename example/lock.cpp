// SPDX-License-Identifier: BSL-1.0
// Many tasks, one counter: a mutex makes "read, do something else, write back" safe.
// The same in three styles: coroutines, callbacks, and futures on threads that may block.

#include <turnstile/sync/mutex.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <thread>
#include <utility>

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// ---- Coroutines ------------------------------------------------------------------------

asio::awaitable<void> increment(turnstile::mutex& mutex, int& counter, int times)
{
    for (int i = 0; i != times; ++i) {
        auto lock = co_await mutex.async_lock();
        const int before = counter;
        co_await asio::post(asio::use_awaitable); // the other coroutine runs here
        counter = before + 1;
    }
}

void with_coroutines()
{
    asio::io_context io;
    turnstile::mutex mutex(io);
    int counter = 0;

    asio::co_spawn(io, increment(mutex, counter, 500), asio::detached);
    asio::co_spawn(io, increment(mutex, counter, 500), asio::detached);
    io.run();

    fmt::print("Final counter: {}\n", counter);
}

// ---- Callbacks -------------------------------------------------------------------------

void increment_then_repeat(turnstile::mutex& mutex, int& counter, int times)
{
    if (times == 0)
        return;
    mutex.async_lock([&, times](error_code ec, turnstile::mutex::lock_type lock) {
        if (ec)
            return;
        // The lock moves along with the work, and is unlocked at its end.
        const int before = counter;
        asio::post(mutex.get_executor(), [&, times, before, lock = std::move(lock)]() mutable {
            counter = before + 1;
            lock.unlock();
            increment_then_repeat(mutex, counter, times - 1);
        });
    });
}

void with_callbacks()
{
    asio::io_context io;
    turnstile::mutex mutex(io);
    int counter = 0;

    increment_then_repeat(mutex, counter, 500);
    increment_then_repeat(mutex, counter, 500);
    io.run();

    fmt::print("Final counter with callbacks: {}\n", counter);
}

// ---- Futures ---------------------------------------------------------------------------

void with_futures()
{
    asio::thread_pool pool(1);
    turnstile::mutex mutex(pool);
    int counter = 0;

    const auto increment_500_times = [&] {
        for (int i = 0; i != 500; ++i) {
            auto lock = mutex.async_lock(asio::use_future).get();
            ++counter;
        }
    };
    std::thread first(increment_500_times);
    std::thread second(increment_500_times);
    first.join();
    second.join();

    fmt::print("Final counter with futures: {}\n", counter);
}

} // namespace

int main()
{
    with_coroutines();
    with_callbacks();
    with_futures();
}
