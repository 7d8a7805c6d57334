// SPDX-License-Identifier: BSL-1.0
#include "channel/operation.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/queue.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>

namespace {

using namespace channels;

// The capacity has no default.
static_assert(!std::is_constructible_v<turnstile::queue<int>, asio::io_context&>);
static_assert(!std::is_constructible_v<turnstile::queue<int>, asio::any_io_executor>);
static_assert(!std::is_constructible_v<turnstile::priority_queue<int>, asio::io_context&>);
static_assert(!std::is_constructible_v<turnstile::priority_queue<int>, asio::any_io_executor>);

BOOST_AUTO_TEST_SUITE(queue)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_waits_for_room_and_enters_in_its_turn, Threading,
                              kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 2);
    fill(q, {1, 2});
    BOOST_TEST(!q.try_push(9));
    operation third;
    operation fourth;
    q.async_push(3, third.ended());
    q.async_push(4, fourth.ended());
    kit::poll_leaves_work(io);
    BOOST_TEST(!third.done);
    BOOST_TEST(*q.try_pop() == 1);
    BOOST_TEST(!q.try_push(9), "overtook those who wait");
    kit::poll_leaves_work(io);
    BOOST_TEST(third.succeeded());
    BOOST_TEST(!fourth.done);
    BOOST_TEST((drain(q) == numbers{2, 3, 4}));
    kit::run(io);
    BOOST_TEST(fourth.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failed_try_reports_whether_waiting_would_help, Threading,
                              kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    const error_code before = errc::broken; // overwritten by every call
    error_code ec = before;
    BOOST_TEST(!q.try_pop(ec));
    BOOST_TEST(!ec);
    ec = before;
    BOOST_TEST(q.try_pop_n(3, ec).empty());
    BOOST_TEST(!ec);
    BOOST_TEST(q.try_pop_n(0, ec).empty());
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_TEST(q.try_push(1, ec));
    BOOST_TEST(!ec);
    ec = before;
    BOOST_TEST(!q.try_push(2, ec));
    BOOST_TEST(!ec, "it is only full");
    ec = before;
    BOOST_TEST(!q.try_reserve(ec));
    BOOST_TEST(!ec);

    q.close();
    BOOST_TEST(!q.try_push(2, ec));
    BOOST_TEST((ec == errc::closed));
    ec = before;
    BOOST_TEST(!q.try_reserve(ec));
    BOOST_TEST((ec == errc::closed));
    BOOST_TEST(*q.try_pop(ec) == 1, "what is there can be taken");
    BOOST_TEST(!ec);
    BOOST_TEST(!q.try_pop(ec));
    BOOST_TEST((ec == errc::closed));
    ec = before;
    BOOST_TEST(q.try_pop_n(3, ec).empty());
    BOOST_TEST((ec == errc::closed));

    queue_of<Threading> refusing(io, 1, overflow::reject);
    fill(refusing, {1});
    BOOST_TEST(!refusing.try_push(2, ec));
    BOOST_TEST((ec == errc::rejected));
    ec = before;
    BOOST_TEST(!refusing.try_reserve(ec));
    BOOST_TEST((ec == errc::rejected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(without_capacity_items_change_hands_directly, Threading,
                              kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 0);
    BOOST_TEST(q.capacity() == 0U);
    BOOST_TEST(!q.try_push(9), "no pop waits for it");
    operation push;
    operation pop;
    q.async_push(1, push.ended());
    kit::poll_leaves_work(io);
    BOOST_TEST(!push.done);
    BOOST_TEST(q.size() == 0U);
    BOOST_TEST(*q.try_pop() == 1);
    kit::run(io);
    BOOST_TEST(push.succeeded());

    q.async_pop(pop.popped());
    BOOST_TEST(q.try_push(2), "a pop waits for it");
    BOOST_TEST(!q.try_push(3));
    kit::run(io);
    BOOST_TEST((pop.values == numbers{2}));

    std::vector<operation> pushes(3);
    int value = 10;
    for (auto& op : pushes)
        q.async_push(value++, op.ended());
    operation batch;
    q.async_pop_n(5, batch.popped_some());
    kit::run(io);
    BOOST_TEST((batch.values == numbers{10, 11, 12}));
    for (auto& op : pushes)
        BOOST_TEST(op.succeeded());
}

BOOST_AUTO_TEST_CASE(the_item_of_a_cancelled_granted_pop_keeps_its_place)
{
    // Several granted pops, cancelled in either order, while pushes fill the queue.
    for (const bool first_first : {true, false}) {
        for (const auto o : {queue_order::fifo, queue_order::lifo}) {
            kit::drained_context io;
            turnstile::queue<int> q(io, 2, overflow::wait, o);
            std::vector<operation> pops(3);
            for (auto& op : pops)
                q.async_pop(op.popped());
            fill(q, {1, 2, 3}); // granted, in this order
            fill(q, {4, 5});    // the queue is full again
            pops[first_first ? 0 : 1].cancel();
            pops[first_first ? 1 : 0].cancel();
            BOOST_TEST(q.size() == 4U);
            BOOST_TEST(!q.try_push(6));
            kit::run(io);
            BOOST_TEST(pops[0].aborted());
            BOOST_TEST(pops[1].aborted());
            // It was granted by 3, but takes the item that is first when its handler runs.
            BOOST_TEST((pops[2].values == (o == queue_order::fifo ? numbers{1} : numbers{5})));
            BOOST_TEST(
                (drain(q) == (o == queue_order::fifo ? numbers{2, 3, 4, 5} : numbers{4, 3, 2, 1})));
        }
    }
}

BOOST_AUTO_TEST_CASE(after_a_cancelled_pop_the_others_still_get_their_items_in_order)
{
    kit::drained_context io;
    turnstile::queue<int> q(io, 2);
    std::vector<operation> pops(3);
    for (auto& op : pops)
        q.async_pop(op.popped());
    fill(q, {1, 2});
    pops[0].cancel();
    kit::run(io);
    BOOST_TEST(pops[0].aborted());
    BOOST_TEST((pops[1].values == numbers{1}));
    BOOST_TEST((pops[2].values == numbers{2}));
}

BOOST_AUTO_TEST_CASE(an_item_popped_meanwhile_precedes_the_item_of_a_granted_pop)
{
    kit::drained_context io;
    turnstile::queue<int> q(io, 2);
    operation pop;
    q.async_pop(pop.popped());
    fill(q, {1, 2, 3});
    BOOST_TEST(q.size() == 2U, "one of three is promised");
    BOOST_TEST((q.try_pop_n(2) == numbers{1, 2}));
    BOOST_TEST(!q.try_pop());
    kit::run(io);
    BOOST_TEST((pop.values == numbers{3}));
}

BOOST_AUTO_TEST_CASE(a_cancelled_push_leaves_the_items_that_are_promised)
{
    for (const bool another : {true, false}) {
        kit::drained_context io;
        turnstile::queue<int> q(io, turnstile::unbounded);
        operation pop;
        operation push;
        q.async_pop(pop.popped());
        q.async_push(1, push.ended()); // promised to the pop
        if (another)
            fill(q, {2});
        push.cancel();
        kit::run(io);
        BOOST_TEST(push.aborted() == another);
        BOOST_TEST(push.succeeded() == !another);
        BOOST_TEST((pop.values == numbers{another ? 2 : 1}));
        BOOST_TEST(q.unfinished() == 1U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_push_leaves_nothing_behind, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    fill(q, {1});
    std::vector<operation> pushes(3);
    for (int i = 0; i != 3; ++i)
        q.async_push(2 + i, pushes[static_cast<std::size_t>(i)].ended());
    pushes[1].cancel(); // while it waits
    BOOST_TEST(*q.try_pop() == 1);
    BOOST_TEST(q.size() == 1U);
    pushes[0].cancel(); // its item has entered, its handler has not run
    BOOST_TEST(q.unfinished() == 2U);
    kit::run(io);
    BOOST_TEST(pushes[0].aborted());
    BOOST_TEST(pushes[1].aborted());
    BOOST_TEST(pushes[2].succeeded());
    BOOST_TEST((drain(q) == numbers{4}));

    operation ready;
    q.async_push(5, ready.ended());
    ready.cancel();
    kit::run(io);
    BOOST_TEST(ready.aborted());
    BOOST_TEST(q.empty());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_whose_item_was_popped_has_succeeded, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    operation push;
    q.async_push(1, push.ended());
    BOOST_TEST(*q.try_pop() == 1);
    push.cancel();
    push.cancel();
    kit::run(io);
    BOOST_TEST(push.succeeded());

    // The same if the pop is then cancelled.
    operation pop;
    operation second;
    q.async_pop(pop.popped());
    q.async_push(2, second.ended());
    pop.cancel();
    kit::run(io);
    BOOST_TEST(second.succeeded());
    BOOST_TEST((drain(q) == numbers{2}));
}

BOOST_AUTO_TEST_CASE(closing_fails_waiting_pops)
{
    kit::drained_context io;
    turnstile::queue<int> q(io, turnstile::unbounded);
    operation pop;
    operation batch;
    q.async_pop(pop.popped());
    q.async_pop_n(3, batch.popped_some());
    q.close();
    kit::run(io);
    BOOST_TEST(pop.failed_with(errc::closed));
    BOOST_TEST(batch.failed_with(errc::closed));
}

BOOST_AUTO_TEST_CASE(an_item_that_may_come_back_keeps_a_closed_queue_from_being_empty)
{
    for (const bool comes_back : {true, false}) {
        kit::drained_context io;
        turnstile::queue<int> q(io, turnstile::unbounded);
        operation first;
        operation second;
        q.async_pop(first.popped());
        q.async_pop(second.popped());
        fill(q, {1});
        q.close();
        if (comes_back)
            first.cancel();
        kit::run(io);
        BOOST_TEST(first.aborted() == comes_back);
        BOOST_TEST((second.values == (comes_back ? numbers{1} : numbers{})));
        BOOST_TEST(second.failed_with(errc::closed) == !comes_back);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(joining_waits_for_every_item, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 3);
    operation nothing;
    q.async_join(nothing.ended());
    kit::run(io);
    BOOST_TEST(nothing.succeeded());
    BOOST_CHECK_THROW(q.task_done(), system_error);

    fill(q, {1, 2});
    operation join;
    q.async_join(join.ended());
    error_code ec;
    q.task_done(ec);
    BOOST_TEST((ec == errc::negative_count), "nothing was popped yet");
    BOOST_TEST(drain(q).size() == 2U);
    q.task_done();
    kit::poll_leaves_work(io);
    BOOST_TEST(!join.done);
    q.task_done();
    fill(q, {3}); // the join is already granted
    kit::run(io);
    BOOST_TEST(join.succeeded());
    q.task_done(ec);
    BOOST_TEST((ec == errc::negative_count));
    BOOST_TEST(q.unfinished() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_batch_takes_the_available_items, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 4);
    BOOST_TEST(q.try_pop_n(3).empty());
    BOOST_TEST(q.try_pop_n(0).empty());
    fill(q, {1, 2, 3, 4});
    operation push;
    q.async_push(5, push.ended());
    BOOST_TEST((q.try_pop_n(3) == numbers{1, 2, 3}));
    BOOST_TEST((q.try_pop_n(100) == numbers{4, 5}));

    operation waits;
    q.async_pop_n(3, waits.popped_some());
    fill(q, {6, 7, 8, 9}); // the first push grants the pop
    kit::run(io);
    BOOST_TEST((waits.values == numbers{6, 7, 8}));
    operation cancelled;
    fill(q, {10});
    q.async_pop_n(3, cancelled.popped_some());
    fill(q, {11});
    cancelled.cancel();
    operation none;
    q.async_pop_n(0, none.popped_some());
    kit::run(io);
    BOOST_TEST(cancelled.aborted());
    BOOST_TEST(none.failed_with(errc::invalid_argument));
    BOOST_TEST((drain(q) == numbers{9, 10, 11}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_batch_that_waited_takes_all_items_that_have_come, Threading,
                              kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> bounded(io, std::size_t(1) << 60U);
    queue_of<Threading> unbounded(io, turnstile::unbounded);
    queue_of<Threading> rendezvous(io, 0);
    operation all;
    operation some;
    operation handed_over;
    bounded.async_pop_n(50, all.popped_some());
    unbounded.async_pop_n(turnstile::unbounded, some.popped_some());
    rendezvous.async_pop_n(5, handed_over.popped_some());
    std::vector<operation> pushes(3);
    for (auto& op : pushes)
        rendezvous.async_push(1, op.ended());
    for (int i = 0; i != 1000; ++i) {
        BOOST_TEST_REQUIRE(bounded.try_push(i));
        BOOST_TEST_REQUIRE(unbounded.try_push(i));
    }
    kit::run(io);
    BOOST_TEST(all.values.size() == 50U);
    BOOST_TEST(std::is_sorted(all.values.begin(), all.values.end()));
    BOOST_TEST(some.values.size() == 64U);
    BOOST_TEST(handed_over.values.size() == 3U);
    for (const auto& op : pushes)
        BOOST_TEST(op.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_batch_takes_more_than_64_items_if_they_are_there, Threading,
                              kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, std::size_t(1) << 60U);
    for (int i = 0; i != 1000; ++i)
        BOOST_TEST_REQUIRE(q.try_push(i));
    operation all;
    q.async_pop_n(turnstile::unbounded, all.popped_some());
    kit::run(io);
    BOOST_TEST(all.values.size() == 1000U);
    BOOST_TEST(std::is_sorted(all.values.begin(), all.values.end()));
}

// A waiting pop makes room for one item, however many it would take.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_waiting_batch_makes_room_for_one, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    operation batch;
    q.async_pop_n(64, batch.popped_some());
    auto first = q.try_reserve();
    auto second = q.try_reserve();
    BOOST_TEST(static_cast<bool>(first));
    BOOST_TEST(static_cast<bool>(second));
    BOOST_TEST(!q.try_reserve());
    first.push(1);
    second.push(2);
    kit::run(io);
    BOOST_TEST((batch.values == numbers{1, 2}));
}

BOOST_AUTO_TEST_CASE(a_cancelled_batch_leaves_all_of_its_items)
{
    kit::drained_context io;
    turnstile::queue<int> q(io, turnstile::unbounded);
    operation batch;
    operation next;
    fill(q, {1, 2, 3, 4});
    q.async_pop_n(3, batch.popped_some());
    q.async_pop_n(3, next.popped_some());
    batch.cancel();
    kit::run(io);
    BOOST_TEST(batch.aborted());
    BOOST_TEST((next.values == numbers{1, 2, 3}));
    BOOST_TEST((drain(q) == numbers{4}));
    BOOST_TEST(q.unfinished() == 4U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
