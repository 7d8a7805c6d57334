// SPDX-License-Identifier: BSL-1.0
// Heap bytes of a queued item, and of an operation that waits to pop.
#include "support/enroll.hpp"
#include "support/heap.hpp"
#include "support/queues.hpp"

namespace bench {
namespace {

constexpr std::int64_t many = 10'000;

// The heap bytes that each call of `add` after the first leaves allocated.
template <class Queue, class Add>
double bytes_left(std::size_t capacity, Add add)
{
    asio::io_context context;
    Queue queue(context, capacity);
    add(context, queue, 0);
    const std::size_t before = heap::bytes_in_use();
    for (std::int64_t i = 0; i != many; ++i)
        add(context, queue, i);
    return static_cast<double>(heap::bytes_in_use() - before) / many;
}

template <class Queue>
double bytes_of_item()
{
    return bytes_left<Queue>(many + 1, [](asio::io_context&, Queue& queue, std::int64_t i) {
        static_cast<void>(queue.put(i));
    });
}

template <class Queue>
double bytes_of_callback()
{
    return bytes_left<Queue>(1, [](asio::io_context&, Queue& queue, std::int64_t) {
        queue.wait([](const boost::system::error_code&, std::int64_t) {});
    });
}

template <class Queue>
double bytes_of_coroutine()
{
    return bytes_left<Queue>(1, [](asio::io_context& context, Queue& queue, std::int64_t) {
        asio::co_spawn(
            context, [&queue]() -> asio::awaitable<void> { co_await queue.pop(); }, asio::detached);
        context.poll();
        context.restart();
    });
}

template <class Queue>
void enroll_as(const std::string& competitor)
{
    enroll_bytes("bytes_item/" + competitor, &bytes_of_item<Queue>);
    enroll_bytes("bytes_pop_callback/" + competitor, &bytes_of_callback<Queue>);
    enroll_bytes("bytes_pop_coroutine/" + competitor, &bytes_of_coroutine<Queue>);
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_as<turnstile_queue<turnstile::queue<std::int64_t>>>("ours");
    enroll_as<turnstile_queue<turnstile::local::queue<std::int64_t>>>("local");
    enroll_as<channel_queue<item_channel>>("channel");
    enroll_as<channel_queue<concurrent_item_channel>>("concurrent_channel");
    return true;
}();

} // namespace
} // namespace bench
