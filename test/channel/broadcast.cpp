// SPDX-License-Identifier: BSL-1.0
#include "kit/chaos_executor.hpp"
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"
#include "kit/seed.hpp"

#include <turnstile/channel/broadcast.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;

template <class P, class T = int>
using broadcast_of = turnstile::basic_broadcast<T, asio::any_io_executor, P>;

static_assert(!std::is_move_constructible_v<turnstile::broadcast<int>>);
static_assert(std::is_nothrow_move_constructible_v<turnstile::broadcast_receiver<int>>);
static_assert(!std::is_copy_constructible_v<turnstile::broadcast_receiver<int>>);

// Records the values and errors of receives.
struct log {
    std::vector<int> values;
    std::uint64_t missed = 0;
    std::vector<error_code> errors;

    auto handler()
    {
        return [this](error_code ec, auto message) {
            if (ec)
                return errors.push_back(ec);
            values.push_back(*message);
            missed += message.missed();
        };
    }
};

// Receives all available values without waiting.
template <class Receiver>
log drain(Receiver& receiver)
{
    log all;
    while (auto message = receiver.try_receive())
        all.handler()(error_code(), message);
    return all;
}

using numbers = std::vector<int>;

BOOST_AUTO_TEST_SUITE(broadcast)

BOOST_AUTO_TEST_CASE_TEMPLATE(every_receiver_sees_every_value_from_its_subscription_on, P,
                              kit::policies)
{
    asio::io_context io;
    broadcast_of<P> b(io, 10);
    BOOST_TEST(b.send(0) == 0U); // no receiver
    auto first = b.subscribe();
    BOOST_TEST(b.send(1) == 1U);
    auto second = b.subscribe();
    BOOST_TEST(b.receivers() == 2U);
    BOOST_TEST(b.send(2) == 2U);
    BOOST_TEST(first.available() == 2U);
    BOOST_TEST(second.available() == 1U);
    BOOST_TEST((drain(first).values == numbers{1, 2}));
    BOOST_TEST((drain(second).values == numbers{2}));
    BOOST_TEST(!first.try_receive());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failed_try_receive_reports_whether_more_will_come, P, kit::policies)
{
    asio::io_context io;
    broadcast_of<P> b(io, 10);
    auto receiver = b.subscribe();
    error_code ec = errc::broken;
    BOOST_TEST(!receiver.try_receive(ec));
    BOOST_TEST(!ec);
    b.send(1);
    b.close();
    ec = errc::broken;
    BOOST_TEST(*receiver.try_receive(ec) == 1);
    BOOST_TEST(!ec);
    BOOST_TEST(!receiver.try_receive(ec));
    BOOST_TEST((ec == errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_is_stored_once_and_shared, P, kit::policies)
{
    asio::io_context io;
    broadcast_of<P, std::shared_ptr<int>> b(io, 10);
    auto first = b.subscribe();
    auto second = b.subscribe();
    auto value = std::make_shared<int>(7);
    b.send(value);
    BOOST_TEST(value.use_count() == 2);
    const auto m = first.try_receive();
    const auto n = second.try_receive();
    BOOST_TEST(m.get() == n.get());
    BOOST_TEST(value.use_count() == 2);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_received_value_is_sent_on_without_a_copy, P, kit::policies)
{
    asio::io_context io;
    broadcast_of<P, std::string> b(io, 4);
    broadcast_of<P, std::string> next(io, 4);
    auto r = b.subscribe();
    auto s = next.subscribe();
    b.send("text");
    const auto message = r.try_receive();
    BOOST_TEST(next.send(message) == 1U);
    BOOST_TEST(s.try_receive().get() == message.get());
    error_code ec;
    next.send(turnstile::shared_value<std::string, P>(), ec);
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_TEST(s.available() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_slow_receiver_learns_exactly_how_many_it_missed, P, kit::policies)
{
    for (int capacity : {1, 2, 3, 7}) {
        for (int sent = 0; sent != 30; ++sent) {
            asio::io_context io;
            broadcast_of<P> b(io, static_cast<std::size_t>(capacity));
            auto slow = b.subscribe();
            for (int i = 0; i != sent; ++i)
                b.send(i);
            const int kept = std::min(sent, capacity);
            BOOST_TEST(slow.available() == static_cast<std::uint64_t>(kept));
            if (sent != 0) {
                const auto oldest = slow.try_receive();
                BOOST_TEST(*oldest == sent - kept);
                BOOST_TEST(oldest.missed() == static_cast<std::uint64_t>(sent - kept));
            }
            const log rest = drain(slow);
            BOOST_TEST(rest.missed == 0U); // reported once
            BOOST_TEST(rest.values.size() == static_cast<std::size_t>(std::max(kept - 1, 0)));
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_send_grants_all_waiting_receivers_in_order, P, kit::policies)
{
    kit::drained_context io;
    broadcast_of<P> b(io, 4);
    std::vector<typename broadcast_of<P>::receiver_type> receivers;
    std::vector<completion> all(200); // more than one batch
    for (const auto& c : all) {
        receivers.push_back(b.subscribe());
        receivers.back().async_receive(c.handler([](auto m) { BOOST_TEST(*m == 5); }));
    }
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(b.send(5) == 200U);
    kit::run(io);
    for (std::size_t i = 0; i != all.size(); ++i) {
        BOOST_TEST(all[i].succeeded());
        if (i != 0)
            BOOST_TEST(all[i - 1].before(all[i]));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(closing_drains_each_receiver_then_reports_closed, P, kit::policies)
{
    kit::drained_context io;
    std::optional<broadcast_of<P>> b;
    b.emplace(io.get_executor(), 4U);
    auto behind = b->subscribe();
    b->send(1);
    b->send(2);
    auto waiting = b->subscribe();
    log w;
    waiting.async_receive(w.handler());
    b->close();
    BOOST_TEST(b->is_closed());
    BOOST_TEST(behind.is_closed());
    error_code ec;
    BOOST_TEST(b->send(3, ec) == 0U);
    BOOST_TEST((ec == errc::closed));
    BOOST_CHECK_THROW(b->send(3), turnstile::system_error);
    b.reset(); // the receivers keep the remaining values
    log l;
    for (int i = 0; i != 3; ++i)
        behind.async_receive(l.handler());
    kit::run(io);
    BOOST_TEST((l.values == numbers{1, 2}));
    BOOST_TEST((l.errors == std::vector<error_code>{errc::closed}));
    BOOST_TEST((w.errors == std::vector<error_code>{errc::closed}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_granted_before_close_still_arrives, P, kit::policies)
{
    kit::drained_context io;
    broadcast_of<P> b(io, 4);
    auto r = b.subscribe();
    log l;
    r.async_receive(l.handler());
    b.send(1);
    b.close();
    kit::run(io);
    BOOST_TEST((l.values == numbers{1}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_value_of_a_cancelled_receive_outlasts_close, P, kit::policies)
{
    for (const bool cancelled : {true, false}) {
        kit::drained_context io;
        broadcast_of<P> b(io, 4);
        auto receiver = b.subscribe();
        completion first;
        completion second;
        completion late;
        asio::cancellation_signal signal;
        receiver.async_receive(asio::bind_cancellation_slot(
            signal.slot(), first.handler([](auto message) { BOOST_TEST(*message == 1); })));
        receiver.async_receive(second.handler([](auto message) { BOOST_TEST(*message == 1); }));
        b.send(1); // granted to the first
        b.close();
        receiver.async_receive(late.handler([](auto) {}));
        if (cancelled)
            signal.emit(asio::cancellation_type::total);
        kit::run(io);
        BOOST_TEST(first.aborted() == cancelled);
        BOOST_TEST(second.succeeded() == cancelled);
        BOOST_TEST((second.error() == errc::closed) == !cancelled);
        BOOST_TEST((late.error() == errc::closed));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destroying_it_aborts_receives_and_later_ones_are_closed, P,
                              kit::policies)
{
    kit::drained_context io;
    std::optional<broadcast_of<P>> b;
    b.emplace(io.get_executor(), 4U);
    auto on_its_way = b->subscribe();
    auto behind = b->subscribe();
    log l;
    on_its_way.async_receive(l.handler());
    b->send(1);
    auto waiting = b->subscribe();
    waiting.async_receive(l.handler());
    b.reset();
    kit::run(io);
    const error_code aborted = asio::error::operation_aborted;
    BOOST_TEST((l.errors == std::vector<error_code>{aborted, aborted}));
    log later;
    on_its_way.async_receive(later.handler());
    behind.async_receive(later.handler());
    kit::run(io);
    const error_code closed = errc::closed;
    BOOST_TEST((later.errors == std::vector<error_code>{closed, closed}));
    BOOST_TEST(!behind.try_receive());
    BOOST_TEST(behind.available() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destroying_a_receiver_aborts_its_receives_and_no_others, P,
                              kit::policies)
{
    kit::drained_context io;
    broadcast_of<P> b(io, 4);
    auto stays = b.subscribe();
    std::optional goes(b.subscribe());
    std::optional goes_granted(b.subscribe());
    completion waiting;
    completion granted;
    completion other;
    goes_granted->async_receive(granted.handler([](auto) {}));
    b.send(1);
    BOOST_TEST(!!goes->try_receive());
    BOOST_TEST(!!stays.try_receive());
    goes->async_receive(waiting.handler([](auto) {}));
    stays.async_receive(other.handler([](auto m) { BOOST_TEST(*m == 2); }));
    goes.reset();
    goes_granted.reset(); // with a granted receive
    BOOST_TEST(b.receivers() == 1U);
    kit::poll_leaves_work(io);
    BOOST_TEST(waiting.aborted());
    BOOST_TEST(granted.aborted());
    BOOST_TEST(!other.done());
    BOOST_TEST(b.send(2) == 1U);
    kit::run(io);
    BOOST_TEST(other.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(receivers_are_made_and_destroyed_inside_handlers, P, kit::policies)
{
    kit::drained_context io;
    broadcast_of<P> b(io, 4);
    std::optional first(b.subscribe());
    std::optional second(b.subscribe());
    std::optional<typename broadcast_of<P>::receiver_type> third;
    completion one;
    completion two;
    completion three;
    first->async_receive(one.handler([&](auto) {
        second.reset(); // with a granted receive
        first.reset();
        third.emplace(b.subscribe());
        third->async_receive(three.handler([](auto m) { BOOST_TEST(*m == 2); }));
        BOOST_TEST(b.send(2) == 1U);
    }));
    second->async_receive(two.handler([](auto) {}));
    b.send(1);
    kit::run(io);
    BOOST_TEST(one.succeeded());
    BOOST_TEST(two.aborted());
    BOOST_TEST(three.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_receiver_moves_with_a_receive_pending, P, kit::policies)
{
    kit::drained_context io;
    broadcast_of<P> b(io, 4);
    auto r = b.subscribe();
    log l;
    r.async_receive(l.handler());
    auto moved = std::move(r);
    b.send(1);
    auto again = b.subscribe();
    again = std::move(moved);
    BOOST_TEST(b.receivers() == 1U);
    kit::run(io);
    BOOST_TEST((l.values == numbers{1}));
    BOOST_TEST(b.send(2) == 1U);
    BOOST_TEST((drain(again).values == numbers{2}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_displaced_before_delivery_counts_as_missed, P, kit::policies)
{
    kit::drained_context io;
    broadcast_of<P> b(io, 2);
    auto r = b.subscribe();
    log l;
    for (int i = 0; i != 4; ++i) // more than the ring holds
        r.async_receive(l.handler());
    for (int i = 0; i != 7; ++i)
        b.send(i);
    kit::poll_leaves_work(io);
    BOOST_TEST((l.values == numbers{5, 6})); // two receives still wait
    BOOST_TEST(l.missed == 5U);
    b.send(7);
    b.send(8);
    kit::run(io);
    BOOST_TEST((l.values == numbers{5, 6, 7, 8}));
    BOOST_TEST(l.missed == 5U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_loser_of_a_race_has_received_nothing, P, kit::policies)
{
    using namespace asio::experimental::awaitable_operators;
    kit::drained_context io;
    broadcast_of<P> b(io, 4);
    auto r = b.subscribe();
    auto s = b.subscribe();
    b.send(1);
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const auto first = co_await (r.async_receive() || s.async_receive());
            BOOST_TEST(r.available() == (first.index() == 0 ? 0U : 1U));
            BOOST_TEST(s.available() == (first.index() == 0 ? 1U : 0U));
        },
        asio::detached);
    kit::run(io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_capacity_is_an_error, P, kit::policies)
{
    asio::io_context io;
    constexpr std::ptrdiff_t too_large = std::numeric_limits<std::ptrdiff_t>::max();
    for (const std::ptrdiff_t capacity : {std::ptrdiff_t(0), std::ptrdiff_t(-1), too_large}) {
        BOOST_CHECK_EXCEPTION(
            broadcast_of<P>(io, capacity), turnstile::system_error, [](const auto& e) {
                return e.code() == errc::invalid_argument &&
                       std::string(e.what()).find("broadcast: capacity") != std::string::npos;
            });
    }
    BOOST_TEST(broadcast_of<P>(io, 3).capacity() == 3U);
}

struct throws_when_copied {
    throws_when_copied() = default;
    throws_when_copied(const throws_when_copied&) { throw std::runtime_error("no copy"); }
};

BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_that_cannot_be_made_was_not_sent, P, kit::policies)
{
    kit::drained_context io;
    broadcast_of<P, throws_when_copied> b(io, 4);
    auto r = b.subscribe();
    completion c;
    r.async_receive(c.handler([](auto) {}));
    const throws_when_copied value;
    BOOST_CHECK_THROW(b.send(value), std::runtime_error);
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(!c.done());
    b.close();
    kit::run(io);
    BOOST_TEST((c.error() == errc::closed));
}

// A value that uses its channel while it is destroyed.
struct reentrant {
    explicit reentrant(turnstile::broadcast<std::shared_ptr<reentrant>>& c) : channel(c) {}
    reentrant(const reentrant&) = delete;
    ~reentrant()
    {
        const auto another = channel.subscribe();
        receivers = channel.receivers();
    }
    turnstile::broadcast<std::shared_ptr<reentrant>>& channel;
    static inline std::size_t receivers = 0;
};

BOOST_AUTO_TEST_CASE(no_value_is_destroyed_under_the_lock_of_a_broadcast)
{
    asio::io_context io;
    turnstile::broadcast<std::shared_ptr<reentrant>> b(io, 1);
    auto r = b.subscribe();
    b.send(std::make_shared<reentrant>(b));
    b.send(nullptr); // displaces the value
    BOOST_TEST(reentrant::receivers == 2U);
}

// Three receivers, a value for each of them, and a receive that is cancelled at step k.
template <class P>
void cancel_at_any_step(std::uint64_t seed)
{
    constexpr int values = 4;
    for (std::size_t k = 0, steps = 1; k <= steps; ++k) {
        kit::chaos_context chaos(seed);
        broadcast_of<P> b(chaos.get_executor(), 16U);
        std::vector<typename broadcast_of<P>::receiver_type> receivers;
        std::vector<log> logs(3);
        std::vector<asio::cancellation_signal> signals(3);
        for (std::size_t i = 0; i != 3; ++i)
            receivers.push_back(b.subscribe());
        const auto receive = [&](auto self, std::size_t i) -> void {
            receivers[i].async_receive(asio::bind_cancellation_slot(
                signals[i].slot(), [&, i, self](error_code ec, auto m) {
                    logs[i].handler()(ec, m);
                    if (ec != errc::closed)
                        self(self, i);
                }));
        };
        for (std::size_t i = 0; i != 3; ++i)
            asio::post(chaos.get_executor(), [&, i] { receive(receive, i); });
        for (int v = 0; v != values; ++v)
            asio::post(chaos.get_executor(), [&, v] { b.send(v); });
        steps = 0;
        const std::size_t victim = chaos.pick(3);
        for (; steps != k && chaos.run_one(); ++steps) {
        }
        signals[victim].emit(asio::cancellation_type::total);
        while (chaos.run_one())
            ++steps;
        b.close();
        chaos.run();
        for (std::size_t i = 0; i != 3; ++i) {
            BOOST_TEST((logs[i].values == logs[0].values));
            BOOST_TEST(logs[i].values.size() == std::size_t(values));
            BOOST_TEST(logs[i].missed == 0U);
            BOOST_TEST((logs[i].errors.size() <= 1U || i == victim));
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_at_any_step_loses_doubles_and_reorders_nothing, P,
                              kit::policies)
{
    kit::for_each_seed(200, [](std::uint64_t seed) { cancel_at_any_step<P>(seed); });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
