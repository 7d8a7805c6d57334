// SPDX-License-Identifier: BSL-1.0
// Broadcast, watch and oneshot on several threads: the invariants, and data races for the thread
// sanitizer.
#include "kit/threads.hpp"

#include <turnstile/channel/broadcast.hpp>
#include <turnstile/channel/oneshot.hpp>
#include <turnstile/channel/watch.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace {

namespace asio = boost::asio;
using turnstile::errc;
using turnstile::error_code;

constexpr int rounds = kit::rounds(1000);

kit::expectation expect;

// Receives all values in order, and adds up the received and the missed ones.
asio::awaitable<void> count_all(turnstile::broadcast_receiver<int> receiver,
                                std::atomic<std::uint64_t>& total)
{
    int last = -1;
    for (;;) {
        auto [ec, message] = co_await receiver.async_receive(asio::as_tuple(asio::use_awaitable));
        if (ec)
            co_return;
        const auto passed = static_cast<std::uint64_t>(*message - last);
        expect(passed == message.missed() + 1);
        last = *message;
        total += passed;
    }
}

BOOST_AUTO_TEST_SUITE(stress_fanout)

BOOST_AUTO_TEST_CASE(every_receiver_accounts_for_every_value)
{
    for (std::size_t capacity : {2U, 64U}) {
        asio::io_context io;
        turnstile::broadcast<int> b(io, capacity);
        std::atomic<std::uint64_t> total = 0;
        constexpr int receivers = 8;
        for (int i = 0; i != receivers; ++i)
            asio::co_spawn(io, count_all(b.subscribe(), total), asio::detached);
        {
            kit::joining_thread sender([&] {
                for (int i = 0; i != rounds; ++i)
                    b.send(i);
                b.close();
            });
            kit::run_on_threads(io);
        }
        BOOST_TEST(total == static_cast<std::uint64_t>(receivers * rounds));
        BOOST_TEST(expect.failures() == 0);
    }
}

BOOST_AUTO_TEST_CASE(receivers_come_and_go_while_values_are_sent)
{
    asio::io_context io;
    auto b = std::make_unique<turnstile::broadcast<std::shared_ptr<int>>>(io, 4);
    std::atomic<int> finished = 0;
    const auto visitor = [&](turnstile::broadcast<std::shared_ptr<int>>& channel,
                             int id) -> asio::awaitable<void> {
        for (int i = 0; i != rounds / 4; ++i) {
            // The receiver is destroyed while a receive is pending, granted or complete.
            std::optional receiver(channel.subscribe());
            receiver->async_receive([](error_code, auto) {});
            if ((i + id) % 2 == 0)
                co_await asio::post(asio::use_awaitable);
            auto moved = std::move(receiver);
            moved.reset();
        }
        ++finished;
    };
    for (int i = 0; i != 6; ++i)
        asio::co_spawn(io, visitor(*b, i), asio::detached);
    {
        kit::joining_thread sender([&] {
            for (int i = 0; i != rounds; ++i)
                b->send(std::make_shared<int>(i));
        });
        kit::run_on_threads(io);
    }
    BOOST_TEST(finished == 6);
    BOOST_TEST(b->receivers() == 0U);
}

BOOST_AUTO_TEST_CASE(racing_cancellations_lose_no_value)
{
    asio::io_context io;
    turnstile::broadcast<int> b(io, static_cast<std::size_t>(rounds));
    std::atomic<int> complete = 0;
    const auto reader = [&](turnstile::broadcast_receiver<int> receiver,
                            int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        int next = 0;
        for (int i = 0;; ++i) {
            kit::racing_cancellation cancellation(executor, (i + id) % 3 == 0);
            auto [ec, message] = co_await receiver.async_receive(cancellation.token());
            co_await cancellation.emitted();
            if (ec == errc::closed)
                break;
            if (!ec)
                expect(*message == next++);
        }
        complete += next == rounds ? 1 : 0;
    };
    for (int i = 0; i != 4; ++i)
        asio::co_spawn(asio::make_strand(io), reader(b.subscribe(), i), asio::detached);
    {
        kit::joining_thread sender([&] {
            for (int i = 0; i != rounds; ++i)
                b.send(i);
            b.close();
        });
        kit::run_on_threads(io);
    }
    BOOST_TEST(complete == 4);
    BOOST_TEST(expect.failures() == 0);
}

BOOST_AUTO_TEST_CASE(every_reader_sees_the_last_value)
{
    asio::io_context io;
    turnstile::watch<int> w(io, 0);
    std::atomic<int> saw_last = 0;
    std::atomic<int> satisfied = 0;
    const auto reader = [&]() -> asio::awaitable<void> {
        auto now = w.get();
        for (;;) {
            auto [ec, next] =
                co_await w.async_wait_changed(now.version(), asio::as_tuple(asio::use_awaitable));
            if (ec)
                break;
            expect(next.version() > now.version());
            now = std::move(next);
        }
        saw_last += *now == 2 * rounds ? 1 : 0;
    };
    for (int i = 0; i != 8; ++i) {
        asio::co_spawn(io, reader(), asio::detached);
        w.async_wait_for([](int v) { return v >= rounds; },
                         [&](error_code ec, auto) { satisfied += ec ? 0 : 1; });
    }
    {
        kit::joining_thread closer([&] {
            kit::on_threads(
                [&](int) {
                    for (int j = 0; j != rounds; ++j)
                        w.update([](int& v) { ++v; });
                },
                2);
            w.close();
        });
        kit::run_on_threads(io);
    }
    BOOST_TEST(*w.get() == 2 * rounds);
    BOOST_TEST(saw_last == 8);
    BOOST_TEST(expect.failures() == 0);
    BOOST_TEST(satisfied == 8);
}

BOOST_AUTO_TEST_CASE(the_first_wait_never_misses_the_last_value_before_close)
{
    asio::io_context io;
    std::vector<std::unique_ptr<turnstile::watch<int>>> watches(kit::rounds(20'000));
    for (auto& w : watches)
        w = std::make_unique<turnstile::watch<int>>(io, 1);
    std::atomic<std::size_t> at = 0; // the writer closes the watch that the reader uses
    kit::joining_thread writer([&] {
        for (std::size_t i = 0; i != watches.size(); ++i) {
            while (at < i) {
            }
            watches[i]->set(2);
            watches[i]->close();
        }
    });
    for (std::size_t i = 0; i != watches.size(); ++i) {
        at = i;
        for (int wait = 0; wait != 8; ++wait)
            watches[i]->async_wait_changed(1, [](error_code ec, auto) { expect(!ec); });
    }
    writer.join();
    io.run();
    BOOST_TEST(expect.failures() == 0);
}

BOOST_AUTO_TEST_CASE(a_watch_may_be_destroyed_while_predicates_run)
{
    for (int round = 0; round != rounds / 4; ++round) {
        asio::io_context io;
        std::optional<turnstile::watch<int>> w(std::in_place, io, 0);
        std::atomic<int> ended = 0;
        for (int i = 0; i != 4; ++i)
            w->async_wait_for([](int v) { return v == 100; }, [&](error_code, auto) { ++ended; });
        kit::joining_thread other([&] { io.run(); });
        w->set(1);
        w.reset();
        io.run();
        other.join();
        BOOST_TEST(ended == 4);
    }
}

BOOST_AUTO_TEST_CASE(the_ends_of_a_oneshot_meet_on_two_threads)
{
    asio::io_context io;
    kit::context_thread runner(io);
    std::atomic<int> values = 0;
    std::atomic<int> errors = 0;
    int sent = 0;
    for (int i = 0; i != rounds; ++i) {
        turnstile::oneshot<std::unique_ptr<int>> o(io);
        kit::joining_thread far_end([&, i, receiver = std::move(o.receiver)]() mutable {
            receiver.async_receive(
                [&](error_code ec, std::unique_ptr<int> v) { ++(!ec && v ? values : errors); });
            if (i % 3 != 0) {
                error_code ec; // the receiver stays until it has a value or an error
                while (!receiver.is_closed() && !ec)
                    (void)receiver.try_receive(ec);
            }
        });
        error_code ec = errc::closed;
        std::optional sender(std::move(o.sender));
        if (i % 4 != 0)
            sender->send(std::make_unique<int>(i), ec);
        sent += ec ? 0 : 1;
    } // the sender is destroyed first, then the far end is joined
    runner.finish();
    BOOST_TEST(values + errors == rounds);
    BOOST_TEST(values <= sent);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
