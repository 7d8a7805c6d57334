// SPDX-License-Identifier: BSL-1.0
// waiting() of every channel, and of every end of a channel.
#include "channel/operation.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/broadcast.hpp>
#include <turnstile/channel/oneshot.hpp>
#include <turnstile/channel/watch.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <optional>
#include <utility>

namespace {

using namespace channels;

constexpr auto ignore = [](auto&&...) {};

template <class Queue>
void expect_waiting(const Queue& q, std::size_t pushes, std::size_t pops, std::size_t joins)
{
    BOOST_TEST(q.waiting_pushes() == pushes);
    BOOST_TEST(q.waiting_pops() == pops);
    BOOST_TEST(q.waiting() == pushes + pops + joins);
}

BOOST_AUTO_TEST_SUITE(waiting)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_full_queue_counts_pushes_reservations_and_joins, Threading,
                              kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    expect_waiting(q, 0, 0, 0);
    q.async_push(1, ignore); // enters
    expect_waiting(q, 0, 0, 0);
    operation push;
    q.async_push(2, push.ended());
    q.async_reserve(ignore);
    q.async_join(ignore);
    expect_waiting(q, 2, 0, 1);
    push.cancel();
    expect_waiting(q, 1, 0, 1);
    BOOST_TEST(q.try_pop().has_value());
    expect_waiting(q, 0, 0, 1);
    q.task_done();
    expect_waiting(q, 0, 0, 0);
    q.close(close_mode::discard);
    kit::run(io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_empty_queue_counts_pops, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 0);
    operation pop;
    q.async_pop(pop.popped());
    q.async_pop_n(3, ignore);
    q.async_pop(ignore);
    expect_waiting(q, 0, 3, 0);
    pop.cancel();
    expect_waiting(q, 0, 2, 0);
    BOOST_TEST(q.try_push(1));
    expect_waiting(q, 0, 1, 0);
    q.close();
    kit::run(io);
    expect_waiting(q, 0, 0, 0);
}

BOOST_AUTO_TEST_CASE(a_priority_queue_counts_as_a_queue_does)
{
    kit::drained_context io;
    turnstile::priority_queue<int> q(io, 1);
    q.async_pop(ignore);
    expect_waiting(q, 0, 1, 0);
    BOOST_TEST(static_cast<bool>(q.try_push(1, 1)));
    q.async_push(2, 2, ignore);
    q.async_push(3, 3, ignore);
    expect_waiting(q, 1, 0, 0);
    q.close();
    expect_waiting(q, 0, 0, 0);
    kit::run(io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_broadcast_counts_the_receives_of_all_receivers, Threading,
                              kit::policies)
{
    kit::drained_context io;
    turnstile::basic_broadcast<int, asio::any_io_executor, Threading> b(io, 2);
    auto first = b.subscribe();
    auto second = std::make_optional(b.subscribe());
    first.async_receive(ignore);
    second->async_receive(ignore);
    second->async_receive(ignore);
    BOOST_TEST(first.waiting() == 1U);
    BOOST_TEST(second->waiting() == 2U);
    BOOST_TEST(b.waiting() == 3U);
    b.send(1);
    BOOST_TEST(first.waiting() == 0U);
    BOOST_TEST(second->waiting() == 1U);
    BOOST_TEST(b.waiting() == 1U);
    second.reset();
    BOOST_TEST(b.waiting() == 0U);
    kit::run(io);
}

// Each way in which a wait ends is counted.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_wait_is_not_counted, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    BOOST_TEST(q.try_push(1));
    operation join;
    operation push;
    q.async_join(join.ended());
    q.async_join(ignore);
    q.async_push(2, push.ended());
    expect_waiting(q, 1, 0, 2);
    join.cancel();
    expect_waiting(q, 1, 0, 1);

    turnstile::basic_broadcast<int, asio::any_io_executor, Threading> b(io, 2);
    auto receiver = b.subscribe();
    operation receive;
    receiver.async_receive(asio::bind_cancellation_slot(receive.signal.slot(), ignore));
    receiver.async_receive(ignore);
    BOOST_TEST(receiver.waiting() == 2U);
    receive.cancel();
    BOOST_TEST(receiver.waiting() == 1U);
    b.close();
    BOOST_TEST(receiver.waiting() == 0U);

    turnstile::basic_oneshot<int, asio::any_io_executor, Threading> o(io);
    operation received;
    operation gone;
    o.receiver.async_receive(asio::bind_cancellation_slot(received.signal.slot(), ignore));
    o.receiver.async_receive(ignore);
    o.sender.async_wait_receiver_gone(gone.ended());
    o.sender.async_wait_receiver_gone(ignore);
    gone.cancel();
    BOOST_TEST(o.sender.waiting() == 1U);
    BOOST_TEST(o.receiver.waiting() == 2U);
    received.cancel();
    BOOST_TEST(o.sender.waiting() == 1U);
    BOOST_TEST(o.receiver.waiting() == 1U);
    {
        const auto destroyed = std::move(o.receiver);
    }
    BOOST_TEST(o.sender.waiting() == 0U);

    q.close(close_mode::discard);
    expect_waiting(q, 0, 0, 0);
    kit::run(io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_watch_counts_both_kinds_of_waits, Threading, kit::policies)
{
    kit::drained_context io;
    turnstile::basic_watch<int, asio::any_io_executor, Threading> w(io, 1);
    w.async_wait_changed(1, ignore);
    w.async_wait_for([](int value) { return value == 3; }, ignore);
    kit::poll_leaves_work(io);
    BOOST_TEST(w.waiting() == 2U);
    w.set(2);
    kit::poll_leaves_work(io);
    BOOST_TEST(w.waiting() == 1U); // the predicate has rejected 2
    w.set(3);
    kit::run(io);
    BOOST_TEST(w.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(each_end_of_a_oneshot_counts_its_own_waits, Threading, kit::policies)
{
    kit::drained_context io;
    turnstile::basic_oneshot<int, asio::any_io_executor, Threading> o(io);
    o.receiver.async_receive(ignore);
    o.receiver.async_receive(ignore);
    o.sender.async_wait_receiver_gone(ignore);
    BOOST_TEST(o.receiver.waiting() == 2U);
    BOOST_TEST(o.sender.waiting() == 1U);
    o.sender.send(1);
    BOOST_TEST(o.receiver.waiting() == 1U);
    BOOST_TEST(o.sender.waiting() == 1U);
    o.receiver.close();
    BOOST_TEST(o.sender.waiting() == 0U);
    kit::run(io);
    BOOST_TEST(o.receiver.waiting() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
