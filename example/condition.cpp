// SPDX-License-Identifier: BSL-1.0
// A producer and a consumer: the consumer holds a lock, and waits until there are items. The second
// part cancels a waiter: it still gets its lock, and its notification goes to the next waiter.

#include <turnstile/sync/condition.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// ---- Producer and consumer -------------------------------------------------------------

// [condition]
struct shared_items {
    explicit shared_items(asio::io_context& io) : mutex(io), more(io) {}

    turnstile::mutex mutex;
    turnstile::condition more;
    std::deque<std::string> items; // guarded by the mutex
};

asio::awaitable<void> produce(shared_items& shared, std::vector<std::string> items)
{
    for (const std::string& item : items) {
        co_await asio::post(asio::use_awaitable); // makes the item
        auto lock = co_await shared.mutex.async_lock();
        shared.items.push_back(item);
        fmt::print("Producer added item: {}\n", item);
        shared.more.notify_one();
    }
}

asio::awaitable<void> consume(shared_items& shared, std::size_t n)
{
    const auto has_items = [&] { return !shared.items.empty(); };
    for (; n != 0; --n) {
        auto lock = co_await shared.mutex.async_lock();
        co_await shared.more.async_wait(lock, has_items);
        fmt::print("Consumer got: {}\n", shared.items.front()); // the lock is held again
        shared.items.pop_front();
    }
}
// [/condition]

void producer_and_consumer()
{
    asio::io_context io;
    shared_items shared(io);
    fmt::print("Consumer waiting for items\n");
    asio::co_spawn(io, consume(shared, 2), asio::detached);
    asio::co_spawn(io, produce(shared, {"A", "B"}), asio::detached);
    io.run();
}

// ---- Cancellation ----------------------------------------------------------------------

void cancel_a_waiter()
{
    asio::io_context io;
    turnstile::mutex mutex(io);
    turnstile::condition changed(io);
    asio::cancellation_signal stop;

    // [condition-cancel]
    turnstile::unique_lock first(mutex, std::try_to_lock);
    changed.async_wait(first, asio::bind_cancellation_slot(stop.slot(), [&](error_code ec) {
                           fmt::print("first: {}, lock {}\n", ec ? "cancelled" : "notified",
                                      first.owns_lock() ? "held" : "lost");
                           first.unlock();
                       }));
    turnstile::unique_lock second(mutex, std::try_to_lock);
    changed.async_wait(second, [&](error_code ec) {
        fmt::print("second: {}, lock {}\n", ec ? "cancelled" : "notified",
                   second.owns_lock() ? "held" : "lost");
        second.unlock();
    });

    changed.notify_one();                         // notifies the first waiter
    stop.emit(asio::cancellation_type::terminal); // hands over to the second
    io.run();
    // [/condition-cancel]
}

} // namespace

int main()
{
    producer_and_consumer();
    cancel_a_waiter();
}
