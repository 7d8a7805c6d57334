// SPDX-License-Identifier: BSL-1.0
// Several producers, each with a sender of its own. No producer closes the queue: the loop of the
// consumer ends when the last producer is gone. Then the reverse, and places for several items.

#include <turnstile/channel/queue.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <exception>
#include <utility>

namespace asio = boost::asio;

namespace {

using numbers = turnstile::queue<int>;

// [ends]
asio::awaitable<void> produce(numbers::sender_type sender, int first, int last)
{
    for (int i = first; i <= last; ++i)
        co_await sender.async_push(i);
    // The sender ends with the coroutine, also if the coroutine ends with an exception.
}

asio::awaitable<void> consume(numbers::receiver_type receiver)
{
    int sum = 0;
    for (;;) {
        auto [ec, value] = co_await receiver.async_pop(asio::as_tuple(asio::use_awaitable));
        if (ec == turnstile::errc::closed)
            break; // every producer is gone, and no item is left
        sum += value;
    }
    fmt::print("Three producers: {}\n", sum);
}

void start(asio::io_context& io, numbers& queue)
{
    auto sender = queue.sender();
    asio::co_spawn(io, produce(sender, 1, 10), asio::detached); // a copy for each
    asio::co_spawn(io, produce(sender, 11, 20), asio::detached);
    asio::co_spawn(io, produce(std::move(sender), 21, 30), asio::detached);
    asio::co_spawn(io, consume(queue.receiver()), asio::detached);
}
// [/ends]

// [receiver]
asio::awaitable<void> consumer_gone(numbers& queue)
{
    auto sender = queue.sender();
    {
        auto receiver = queue.receiver();
        co_await sender.async_push(1);
        fmt::print("Popped {}\n", co_await receiver.async_pop());
        co_await sender.async_push(2); // is discarded with the receiver
    }
    auto [ec] = co_await sender.async_push(3, asio::as_tuple(asio::use_awaitable));
    fmt::print("{}\n", ec == turnstile::errc::closed ? "No consumer is left" : "?");
}
// [/receiver]

// [places]
asio::awaitable<void> batch(numbers& queue)
{
    auto places = co_await queue.async_reserve(3); // all three, or it waits
    places.push(1);
    places.push(2);
    fmt::print("{} place left, {} free\n", places.size(), queue.free());
    places.release();
    fmt::print("{} free\n", queue.free());
}
// [/places]

} // namespace

int main()
{
    asio::io_context io;
    numbers first(io, 4);
    start(io, first);
    io.run();

    io.restart();
    numbers second(io, 4);
    numbers third(io, 4);
    asio::co_spawn(io, consumer_gone(second), [](std::exception_ptr failed) {
        if (failed)
            std::rethrow_exception(failed);
    });
    asio::co_spawn(io, batch(third), asio::detached);
    io.run();
}
