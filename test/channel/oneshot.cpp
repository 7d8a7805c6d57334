// SPDX-License-Identifier: BSL-1.0
#include "kit/chaos_executor.hpp"
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"
#include "kit/seed.hpp"

#include <turnstile/channel/oneshot.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/test/unit_test.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;

template <class P, class T = int>
using oneshot_of = turnstile::basic_oneshot<T, asio::any_io_executor, P>;

static_assert(std::is_nothrow_move_constructible_v<turnstile::oneshot_sender<int>>);
static_assert(std::is_nothrow_move_constructible_v<turnstile::oneshot_receiver<int>>);
static_assert(!std::is_copy_constructible_v<turnstile::oneshot_sender<int>>);

const auto ignore = [](auto...) {};

BOOST_AUTO_TEST_SUITE(oneshot)

BOOST_AUTO_TEST_CASE_TEMPLATE(hands_over_one_value, P, kit::policies)
{
    for (bool waiting : {false, true}) {
        kit::drained_context io;
        auto [sender, receiver] = oneshot_of<P, std::unique_ptr<int>>(io);
        completion c;
        completion second;
        const auto receive = [&, &r = receiver] {
            r.async_receive(c.handler([](std::unique_ptr<int> v) { BOOST_TEST(*v == 7); }));
            r.async_receive(second.handler(ignore));
        };
        if (waiting)
            receive();
        sender.send(std::make_unique<int>(7));
        if (!waiting) {
            BOOST_TEST(receiver.is_ready());
            receive();
        }
        BOOST_TEST(!c.done());
        kit::run(io);
        BOOST_TEST(c.succeeded());
        BOOST_TEST((second.error() == errc::closed));
        BOOST_TEST(receiver.is_closed());
        BOOST_TEST(!receiver.is_ready());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(hands_over_a_completion_without_a_value, P, kit::policies)
{
    kit::drained_context io;
    oneshot_of<P, void> o(io);
    completion c;
    o.receiver.async_receive(c.handler([] {}));
    o.sender.send();
    error_code ec;
    o.sender.send(ec);
    BOOST_TEST((ec == errc::rejected));
    kit::run(io);
    BOOST_TEST(c.succeeded());

    oneshot_of<P, void> again(io);
    BOOST_TEST(!again.receiver.try_receive());
    again.sender.send();
    BOOST_TEST(again.receiver.try_receive());
    BOOST_TEST(!again.receiver.try_receive(ec));
    BOOST_TEST((ec == errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_second_value_is_rejected_and_not_moved_from, P, kit::policies)
{
    asio::io_context io;
    auto [sender, receiver] = oneshot_of<P, std::string>(io);
    sender.send("one");
    error_code ec;
    std::string two = "two";
    sender.send(std::move(two), ec);
    BOOST_TEST((ec == errc::rejected));
    BOOST_TEST(two == "two"); // NOLINT: the moved-from state is tested
    BOOST_CHECK_THROW(sender.send("three"), turnstile::system_error);
    sender.send_error(asio::error::fault, ec);
    BOOST_TEST((ec == errc::rejected));
    BOOST_TEST(receiver.try_receive().value() == "one");
    sender.send(std::move(two), ec);
    BOOST_TEST((ec == errc::rejected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(hands_over_an_error, P, kit::policies)
{
    for (bool waiting : {false, true}) {
        kit::drained_context io;
        auto [sender, receiver] = oneshot_of<P>(io);
        completion c[2];
        const auto receive = [&, &r = receiver] {
            for (auto& each : c)
                r.async_receive(each.handler(ignore));
        };
        if (waiting)
            receive();
        error_code ec;
        sender.send_error(error_code(), ec);
        BOOST_TEST((ec == errc::invalid_argument));
        sender.send_error(asio::error::connection_reset);
        BOOST_CHECK_THROW(sender.send_error(asio::error::fault), turnstile::system_error);
        if (!waiting)
            receive();
        kit::run(io);
        for (auto& each : c)
            BOOST_TEST((each.error() == asio::error::connection_reset));
        BOOST_TEST(!receiver.try_receive(ec));
        BOOST_TEST((ec == asio::error::connection_reset));
        BOOST_TEST(!receiver.try_receive());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_error_is_thrown_into_a_coroutine, P, kit::policies)
{
    kit::drained_context io;
    auto [sender, receiver] = oneshot_of<P>(io);
    error_code caught;
    sender.send_error(asio::error::connection_reset);
    asio::co_spawn(
        io,
        [&caught, &r = receiver]() -> asio::awaitable<void> {
            try {
                co_await r.async_receive();
            } catch (const turnstile::system_error& e) {
                caught = e.code();
            }
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST((caught == asio::error::connection_reset));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_receiver_learns_that_the_sender_is_gone, P, kit::policies)
{
    for (bool waiting : {false, true}) {
        kit::drained_context io;
        std::optional<oneshot_of<P>> o(std::in_place, io);
        auto receiver = std::move(o->receiver);
        completion c;
        error_code ec;
        BOOST_TEST(!receiver.try_receive(ec));
        BOOST_TEST(!ec);
        if (waiting)
            receiver.async_receive(c.handler(ignore));
        BOOST_TEST(!receiver.is_closed());
        o.reset();
        BOOST_TEST(receiver.is_closed());
        if (!waiting)
            receiver.async_receive(c.handler(ignore));
        kit::run(io);
        BOOST_TEST((c.error() == errc::sender_gone));
        BOOST_TEST(!receiver.try_receive(ec));
        BOOST_TEST((ec == errc::sender_gone));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_outlives_its_sender, P, kit::policies)
{
    kit::drained_context io;
    std::optional<oneshot_of<P>> o(std::in_place, io);
    auto receiver = std::move(o->receiver);
    o->sender.send(7);
    o.reset();
    completion c;
    receiver.async_receive(c.handler([](int v) { BOOST_TEST(v == 7); }));
    kit::run(io);
    BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_sender_learns_that_the_receiver_is_gone, P, kit::policies)
{
    for (bool by_closing : {false, true}) {
        kit::drained_context io;
        std::optional<oneshot_of<P, std::string>> o(std::in_place, io);
        auto sender = std::move(o->sender);
        completion waiting;
        completion late;
        completion receive;
        sender.async_wait_receiver_gone(waiting.handler(ignore));
        o->receiver.async_receive(receive.handler(ignore));
        BOOST_TEST(!sender.is_closed());
        BOOST_TEST(kit::poll_leaves_work(io));
        if (by_closing)
            o->receiver.close();
        else
            o.reset();
        BOOST_TEST(sender.is_closed());
        std::string value = "value";
        error_code ec;
        sender.send(std::move(value), ec);
        BOOST_TEST((ec == errc::closed));
        BOOST_TEST(value == "value"); // NOLINT: the moved-from state is tested
        sender.send_error(asio::error::fault, ec);
        BOOST_TEST((ec == errc::closed));
        sender.async_wait_receiver_gone(late.handler(ignore));
        kit::run(io);
        BOOST_TEST(waiting.succeeded());
        BOOST_TEST(late.succeeded());
        BOOST_TEST(by_closing == (receive.error() == errc::closed));
        BOOST_TEST(by_closing != receive.aborted());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_sent_before_close_can_be_received, P, kit::policies)
{
    asio::io_context io;
    oneshot_of<P> o(io);
    o.sender.send(7);
    o.receiver.close();
    BOOST_TEST(o.receiver.is_ready());
    BOOST_TEST(o.receiver.try_receive().value() == 7);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_that_is_not_received_is_destroyed_with_the_receiver, P,
                              kit::policies)
{
    kit::drained_context io;
    std::optional<oneshot_of<P, std::shared_ptr<int>>> o(std::in_place, io);
    auto sender = std::move(o->sender);
    auto value = std::make_shared<int>(7);
    completion on_its_way;
    o->receiver.async_receive(on_its_way.handler(ignore));
    sender.send(value);
    BOOST_TEST(value.use_count() == 2);
    o.reset();
    BOOST_TEST(value.use_count() == 1);
    kit::run(io);
    BOOST_TEST(on_its_way.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_waits_of_a_sender_are_aborted_with_it, P, kit::policies)
{
    for (bool on_its_way : {false, true}) {
        kit::drained_context io;
        std::optional<oneshot_of<P>> o(std::in_place, io);
        auto receiver = std::move(o->receiver);
        completion c;
        o->sender.async_wait_receiver_gone(c.handler(ignore));
        if (on_its_way)
            receiver.close();
        o.reset();
        kit::run(io);
        BOOST_TEST(c.aborted());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ends_move_with_their_waits_pending, P, kit::policies)
{
    kit::drained_context io;
    oneshot_of<P> o(io);
    completion c;
    completion gone;
    o.receiver.async_receive(c.handler([](int v) { BOOST_TEST(v == 7); }));
    o.sender.async_wait_receiver_gone(gone.handler(ignore));
    auto receiver = std::move(o.receiver);
    auto sender = std::move(o.sender);
    sender.send(7);
    kit::poll_leaves_work(io);
    BOOST_TEST(c.succeeded());
    oneshot_of<P> other(io);
    receiver = std::move(other.receiver); // the previous receiver is destroyed
    kit::run(io);
    BOOST_TEST(gone.succeeded());
    other.sender.send(8);
    BOOST_TEST(receiver.try_receive().value() == 8);
    sender = std::move(other.sender);
    BOOST_TEST(!sender.is_closed());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_receive_leaves_the_value, P, kit::policies)
{
    using namespace asio::experimental::awaitable_operators;
    kit::drained_context io;
    oneshot_of<P> a(io);
    oneshot_of<P> b(io);
    a.sender.send(1);
    b.sender.send(2);
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const auto first = co_await (a.receiver.async_receive() || b.receiver.async_receive());
            BOOST_TEST(a.receiver.is_ready() == (first.index() == 1));
            BOOST_TEST(b.receiver.is_ready() == (first.index() == 0));
        },
        asio::detached);
    kit::run(io);
}

struct copy_throws {
    copy_throws() = default;
    copy_throws(const copy_throws&) { throw std::runtime_error("no copy"); }
    copy_throws(copy_throws&&) noexcept = default;
    copy_throws& operator=(copy_throws&&) noexcept = default;
};

BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_that_cannot_be_made_was_not_sent, P, kit::policies)
{
    asio::io_context io;
    oneshot_of<P, copy_throws> o(io);
    const copy_throws value;
    BOOST_CHECK_THROW(o.sender.send(value), std::runtime_error);
    BOOST_TEST(!o.receiver.is_ready());
    o.sender.send(copy_throws());
    BOOST_TEST(o.receiver.is_ready());
}

// The ends and the context are destroyed in a random order, with waits at both ends and sometimes a
// value. Every wait must complete once, and nothing may leak.
template <class P>
void end_in_any_order(std::uint64_t seed)
{
    auto value = std::make_shared<int>(7);
    {
        kit::chaos_context chaos(seed);
        oneshot_of<P, std::shared_ptr<int>> o(chaos.get_executor());
        std::optional sender(std::move(o.sender));
        std::optional receiver(std::move(o.receiver));
        completion received;
        completion gone;
        bool got = false;
        receiver->async_receive(received.handler([&](auto v) { got = v == value; }));
        sender->async_wait_receiver_gone(gone.handler(ignore));
        bool sent = false;
        asio::post(chaos.get_executor(), [&] { sender.reset(); });
        asio::post(chaos.get_executor(), [&] { receiver.reset(); });
        asio::post(chaos.get_executor(), [&] {
            error_code ec = asio::error::not_connected;
            if (sender)
                sender->send(value, ec);
            sent = !ec;
        });
        chaos.run();
        BOOST_TEST(received.done());
        BOOST_TEST(gone.done());
        BOOST_TEST(received.succeeded() == got);
        BOOST_TEST((sent || !got));
        BOOST_TEST((got || received.aborted() || received.error() == errc::sender_gone));
    }
    BOOST_TEST(value.use_count() == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_ends_may_be_destroyed_in_any_order, P, kit::policies)
{
    kit::for_each_seed(200, [](std::uint64_t seed) { end_in_any_order<P>(seed); });
}

// A receive that is cancelled at step k, and another behind it: one value, received once.
template <class P>
void cancel_at_any_step(std::uint64_t seed)
{
    for (std::size_t k = 0, steps = 1; k <= steps; ++k) {
        kit::chaos_context chaos(seed);
        oneshot_of<P> o(chaos.get_executor());
        completion first;
        completion second;
        asio::cancellation_signal signal;
        int got = 0;
        const auto count = [&](int v) { got += v; };
        asio::post(chaos.get_executor(), [&] {
            o.receiver.async_receive(
                asio::bind_cancellation_slot(signal.slot(), first.handler(count)));
        });
        asio::post(chaos.get_executor(), [&] { o.receiver.async_receive(second.handler(count)); });
        asio::post(chaos.get_executor(), [&] { o.sender.send(1); });
        steps = 0;
        for (; steps != k && chaos.run_one(); ++steps) {
        }
        signal.emit(asio::cancellation_type::total);
        while (chaos.run_one())
            ++steps;
        BOOST_TEST(first.done());
        BOOST_TEST(second.done());
        BOOST_TEST(got == 1);
        BOOST_TEST(!second.aborted());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_at_any_step_loses_and_doubles_nothing, P, kit::policies)
{
    kit::for_each_seed(200, [](std::uint64_t seed) { cancel_at_any_step<P>(seed); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_that_is_not_sent_has_not_been_moved_from, P, kit::policies)
{
    asio::io_context io;
    turnstile::basic_oneshot<std::shared_ptr<const int>, asio::any_io_executor, P> o(io);
    auto same = std::make_shared<const int>(1);
    auto other = std::make_unique<int>(2); // converted to another type
    o.receiver.close();
    error_code ec;
    o.sender.send(std::move(same), ec);
    BOOST_TEST((ec == errc::closed));
    o.sender.send(std::move(other), ec);
    BOOST_TEST((ec == errc::closed));
    BOOST_TEST((same && other));
}

// Both waits are granted: the one for the value, and the one for the end of the receiver.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_wait_for_the_receivers_end_gives_back_no_value, P,
                              kit::policies)
{
    kit::drained_context io;
    oneshot_of<P> o(io);
    completion first;
    completion second;
    completion gone;
    asio::cancellation_signal signal;
    int received = 0;
    const auto count = [&](int) { ++received; };
    o.receiver.async_receive(first.handler(count));
    o.receiver.async_receive(second.handler(count));
    o.sender.async_wait_receiver_gone(
        asio::bind_cancellation_slot(signal.slot(), gone.handler(ignore)));
    o.sender.send(1);
    o.receiver.close();
    signal.emit(asio::cancellation_type::total);
    kit::run(io);
    BOOST_TEST(received == 1);
    BOOST_TEST(first.succeeded());
    BOOST_TEST((second.error() == errc::closed));
    BOOST_TEST(gone.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_receive_behind_a_granted_one_waits_though_closed, P, kit::policies)
{
    for (const bool comes_back : {false, true}) {
        kit::drained_context io;
        oneshot_of<P> o(io);
        completion first;
        completion second;
        asio::cancellation_signal signal;
        o.sender.send(1);
        o.receiver.async_receive(
            asio::bind_cancellation_slot(signal.slot(), first.handler(ignore)));
        o.receiver.close();
        BOOST_TEST(!o.receiver.is_closed(), "the value may come back");
        o.receiver.async_receive(second.handler(ignore));
        if (comes_back)
            signal.emit(asio::cancellation_type::total);
        kit::run(io);
        BOOST_TEST(first.succeeded() == !comes_back);
        BOOST_TEST(second.succeeded() == comes_back);
        BOOST_TEST((comes_back || second.error() == errc::closed));
    }
}

// The first cause decides: a value or error, the destruction of the sender, a close.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_receive_reports_the_sender_before_the_close, P, kit::policies)
{
    const auto error_after = [](auto happens) {
        kit::drained_context io;
        oneshot_of<P> o(io);
        std::optional sender(std::move(o.sender));
        happens(sender, o.receiver);
        completion c;
        o.receiver.async_receive(c.handler(ignore));
        kit::run(io);
        BOOST_TEST(c.done());
        return c.error();
    };
    error_code ec;
    const error_code sent = asio::error::eof;
    BOOST_TEST((error_after([](auto&, auto& r) { r.close(); }) == errc::closed));
    BOOST_TEST((error_after([](auto& s, auto& r) {
                    r.close();
                    s.reset();
                }) == errc::sender_gone));
    BOOST_TEST((error_after([&](auto& s, auto& r) {
                    s->send_error(sent);
                    r.close();
                    s.reset();
                }) == sent));
    BOOST_TEST((error_after([&](auto& s, auto& r) {
                    s->send(1);
                    (void)r.try_receive(ec);
                    s.reset();
                }) == errc::closed));
    BOOST_TEST(!error_after([&](auto& s, auto& r) {
        s->send(1);
        r.close();
        s.reset();
    }));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
