// SPDX-License-Identifier: BSL-1.0
// Queues under one interface, Queue(context, capacity) with push(i) and pop() to be awaited, and
// their workload.
#pragma once

#include "threads.hpp"

#include <turnstile/channel/queue.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

namespace asio = boost::asio;

template <class Queue>
class turnstile_queue {
public:
    turnstile_queue(asio::io_context& context, std::size_t capacity) : queue_(context, capacity) {}

    auto push(std::int64_t i) { return queue_.async_push(i, asio::use_awaitable); }
    auto pop() { return queue_.async_pop(asio::use_awaitable); }
    auto pop_some(std::size_t n) { return queue_.async_pop_n(n, asio::use_awaitable); }
    bool put(std::int64_t i) { return queue_.try_push(i); }
    template <class Handler>
    void wait(Handler handler)
    {
        queue_.async_pop(std::move(handler));
    }

private:
    Queue queue_;
};

template <class Channel>
class channel_queue {
public:
    channel_queue(asio::io_context& context, std::size_t capacity) : channel_(context, capacity) {}

    auto push(std::int64_t i)
    {
        return channel_.async_send(boost::system::error_code(), i, asio::use_awaitable);
    }
    auto pop() { return channel_.async_receive(asio::use_awaitable); }
    bool put(std::int64_t i) { return channel_.try_send(boost::system::error_code(), i); }
    template <class Handler>
    void wait(Handler handler)
    {
        channel_.async_receive(std::move(handler));
    }

private:
    Channel channel_;
};

using item_signature = void(boost::system::error_code, std::int64_t);
using item_channel = asio::experimental::channel<item_signature>;
using concurrent_item_channel = asio::experimental::concurrent_channel<item_signature>;

struct traffic {
    std::int64_t sides = 1; // the number of producers, and of consumers
    std::int64_t items = 0; // for each producer
    int threads = 1;
    std::size_t batch = 1;
    std::size_t capacity = 64;
};

// Sends items through a queue and adds them up; the first tenth is not measured.
template <class Queue, class Meter>
bool transfer(Meter& meter, const traffic& size)
{
    asio::io_context context;
    Queue queue(context, size.capacity);
    const std::int64_t total = size.sides * size.items;
    const std::int64_t warm = total / 10;
    std::vector<std::int64_t> sums(static_cast<std::size_t>(size.sides) * 16); // own cache lines
    std::atomic<std::int64_t> started{0};

    const auto produce = [&]() -> asio::awaitable<void> {
        std::int64_t i = 1;
        for (const std::int64_t first = warm / size.sides; i <= first; ++i)
            co_await queue.push(i);
        if (started++ == 0)
            meter.begin();
        for (const std::int64_t last = size.items; i <= last; ++i)
            co_await queue.push(i);
    };
    const auto consume = [&](std::size_t index) -> asio::awaitable<void> {
        std::int64_t sum = 0;
        if constexpr (requires { queue.pop_some(1); }) {
            for (std::int64_t left = size.items; size.batch != 1 && left != 0;) {
                const auto most = std::min(size.batch, static_cast<std::size_t>(left));
                const auto items = co_await queue.pop_some(most);
                left -= static_cast<std::int64_t>(items.size());
                for (const std::int64_t i : items)
                    sum += i;
            }
        }
        for (std::int64_t left = size.batch == 1 ? size.items : 0; left != 0; --left)
            sum += co_await queue.pop();
        sums[index * 16] = sum;
    };
    for (std::int64_t i = 0; i != size.sides; ++i) {
        asio::co_spawn(context, produce(), asio::detached);
        asio::co_spawn(context, consume(static_cast<std::size_t>(i)), asio::detached);
    }
    run_on_threads(context, size.threads);
    meter.end(total - warm);
    std::int64_t sum = 0;
    for (const std::int64_t s : sums)
        sum += s;
    return sum == size.sides * (size.items * (size.items + 1) / 2);
}

} // namespace bench
