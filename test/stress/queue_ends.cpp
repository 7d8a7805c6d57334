// SPDX-License-Identifier: BSL-1.0
// The counted ends of a queue on several threads: every item arrives, and the last end is noticed.
#include "kit/threads.hpp"

#include <turnstile/channel/priority_queue.hpp>
#include <turnstile/channel/queue.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using turnstile::errc;
using turnstile::error_code;

BOOST_AUTO_TEST_SUITE(stress_queue_ends)

// No producer closes the queue: the consumers end when the last producer has ended.
BOOST_AUTO_TEST_CASE(consumers_end_when_the_last_producer_is_gone)
{
    constexpr int producers = 4;
    constexpr int items = kit::rounds(2000, 20);
    for (const std::size_t capacity : {0U, 1U, 16U}) {
        asio::io_context io;
        turnstile::queue<int> q(io, capacity);
        std::atomic<int> arrived = 0;
        std::atomic<int> consumers_ended = 0;
        using sender_type = turnstile::queue<int>::sender_type;
        using receiver_type = turnstile::queue<int>::receiver_type;
        const auto produce = [](sender_type sender) -> asio::awaitable<void> {
            for (int i = 0; i != items; ++i) {
                const auto copy = sender; // counted on several threads at once
                co_await copy.async_push(i);
            }
        };
        const auto consume = [&](receiver_type receiver) -> asio::awaitable<void> {
            for (;;) {
                auto [ec, value] = co_await receiver.async_pop(asio::as_tuple(asio::use_awaitable));
                if (ec) {
                    if (ec == errc::closed)
                        ++consumers_ended;
                    co_return;
                }
                ++arrived;
            }
        };
        for (int i = 0; i != producers; ++i)
            asio::co_spawn(io, produce(q.sender()), asio::detached);
        for (int i = 0; i != producers; ++i)
            asio::co_spawn(io, consume(q.receiver()), asio::detached);
        kit::run_on_threads(io);
        BOOST_TEST(arrived == producers * items);
        BOOST_TEST(consumers_ended == producers);
    }
}

// A push of the last sender is outstanding while it is released, and a pop waits or comes.
BOOST_AUTO_TEST_CASE(the_last_sender_is_released_while_a_pop_waits)
{
    for (int round = 0; round != kit::rounds(2000, 20); ++round) {
        asio::io_context io;
        turnstile::queue<int> q(io, 0);
        auto sender = q.sender();
        std::atomic<int> popped = 0;
        std::atomic<int> closed = 0;
        for (int i = 0; i != 2; ++i)
            q.async_pop([&](error_code ec, int) { ++(ec == errc::closed ? closed : popped); });
        kit::at_once([&] { io.run(); },
                     [&] {
                         sender.async_push(1, [](error_code ec) { BOOST_TEST(!ec); });
                         sender.release();
                     });
        io.restart();
        io.run();
        BOOST_TEST(popped == 1);
        BOOST_TEST(closed == 1);
    }
}

// Receivers leave, senders push, and the queue is destroyed, all at the same time.
BOOST_AUTO_TEST_CASE(ends_leave_while_the_queue_is_destroyed)
{
    for (int round = 0; round != kit::rounds(2000, 20); ++round) {
        asio::io_context io;
        std::optional<turnstile::priority_queue<int>> q;
        q.emplace(io.get_executor(), 1U);
        auto sender = q->sender();
        auto receiver = q->receiver();
        std::atomic<int> completed = 0;
        for (int i = 0; i != 2; ++i)
            sender.async_push(i, i, [&](error_code, auto) { ++completed; });
        kit::at_once([&] { receiver.release(); }, [&] { q.reset(); },
                     [&] {
                         auto copy = sender;
                         sender.release();
                         error_code ec;
                         (void)copy.try_push(1, 1, ec);
                     });
        io.run();
        BOOST_TEST(completed == 2);
    }
}

BOOST_AUTO_TEST_CASE(reservations_of_several_places_lose_none)
{
    constexpr int rounds = kit::rounds(1000, 20);
    asio::io_context io;
    turnstile::queue<int> q(io, 5);
    std::atomic<int> arrived = 0;
    std::atomic<int> pushed = 0;
    const auto produce = [&](turnstile::queue<int>::sender_type sender,
                             std::size_t n) -> asio::awaitable<void> {
        const auto strand = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds; ++i) {
            kit::racing_cancellation cancellation(strand, i % 3 == 0);
            auto [ec, places] = co_await sender.async_reserve(n, cancellation.token());
            co_await cancellation.emitted();
            for (; places.size() > static_cast<std::size_t>(i % 2); ++pushed)
                places.push(i); // one place is given back in every second round
        }
    };
    const auto consume = [&]() -> asio::awaitable<void> {
        for (;;) {
            auto [ec, value] = co_await q.async_pop(asio::as_tuple(asio::use_awaitable));
            if (ec)
                co_return;
            ++arrived;
        }
    };
    for (std::size_t n = 1; n <= 5; ++n)
        asio::co_spawn(asio::make_strand(io), produce(q.sender(), n), asio::detached);
    asio::co_spawn(io, consume(), asio::detached);
    asio::co_spawn(io, consume(), asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(arrived == pushed);
    BOOST_TEST(pushed > 0);
    BOOST_TEST(q.free() == 5U);
    BOOST_TEST(q.is_closed());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
