// SPDX-License-Identifier: BSL-1.0
// A lock attempt with a time limit, by || with a timer. Whoever gives up has taken nothing:
// the lock is free for the next, even if it was granted at the very moment of giving up.

#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/core.h>

#include <chrono>
#include <utility>
#include <variant>

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;

namespace {

// [time-limit]
// The lock, or if it could not be had in time, one that holds nothing.
asio::awaitable<turnstile::mutex::lock_type> lock_within(turnstile::mutex& mutex,
                                                         std::chrono::milliseconds limit)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, limit);
    auto first = co_await (mutex.async_lock() || timer.async_wait(asio::use_awaitable));
    if (auto* lock = std::get_if<turnstile::mutex::lock_type>(&first))
        co_return std::move(*lock);
    co_return turnstile::mutex::lock_type();
}
// [/time-limit]

asio::awaitable<void> lock_unless(turnstile::mutex& mutex, turnstile::event& stop)
{
    auto first = co_await (mutex.async_lock() || stop.async_wait());
    fmt::print("Stop and grant at once: {}\n", first.index() == 0 ? "locked" : "stopped");
}

asio::awaitable<void> run(turnstile::mutex& mutex)
{
    auto held = co_await mutex.async_lock();

    auto late = co_await lock_within(mutex, 5ms);
    fmt::print("While somebody holds it: {}\n", late ? "locked" : "gave up");

    held.unlock();
    auto mine = co_await lock_within(mutex, 1h);
    fmt::print("Once it is free: {}\n", mine ? "locked" : "gave up");

    // Now both in the same moment: the stop comes first, then the lock is granted.
    turnstile::event stop(mutex.get_executor());
    asio::co_spawn(mutex.get_executor(), lock_unless(mutex, stop), asio::detached);
    co_await asio::post(asio::use_awaitable); // it is waiting now
    stop.set();
    mine.unlock();

    auto next = co_await mutex.async_lock();
    fmt::print("The next one: {}\n", next ? "locked" : "left out");
}

} // namespace

int main()
{
    asio::io_context io;
    turnstile::mutex mutex(io);
    asio::co_spawn(io, run(mutex), asio::detached);
    io.run();
    fmt::print("Held at the end: {}\n", mutex.is_locked() ? "yes" : "no");
}
