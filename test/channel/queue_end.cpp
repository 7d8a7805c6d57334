// SPDX-License-Identifier: BSL-1.0

// The result of a push whose queue is destroyed or closed before its handler has run.
#include "channel/operation.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"
#include "kit/thread_executor.hpp"

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>

namespace {

using namespace channels;

template <class Threading>
using priority_queue_of =
    turnstile::basic_priority_queue<int, int, std::less<int>, asio::any_io_executor, Threading>;

// A full queue of capacity 1, and a push that waits for room.
template <class Threading>
struct crowded_queue {
    crowded_queue()
    {
        q.emplace(io, 1U);
        fill(*q, {1});
        q->async_push(2, push.ended());
    }
    void destroy_and_run()
    {
        q.reset();
        kit::run(io);
        BOOST_TEST(push.done);
    }

    kit::drained_context io;
    operation push;
    std::optional<queue_of<Threading>> q;
};

BOOST_AUTO_TEST_SUITE(queue_end)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_whose_item_was_popped_succeeds_though_the_queue_is_destroyed,
                              Threading, kit::policies)
{
    crowded_queue<Threading> c;
    BOOST_TEST((drain(*c.q) == numbers{1, 2}));
    c.destroy_and_run();
    BOOST_TEST(c.push.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_whose_item_is_destroyed_with_the_queue_is_aborted, Threading,
                              kit::policies)
{
    crowded_queue<Threading> c;
    BOOST_TEST((c.q->try_pop() == 1));
    BOOST_TEST(c.q->size() == 1U);
    c.destroy_and_run();
    BOOST_TEST(c.push.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_signal_after_the_queue_changes_neither, Threading, kit::policies)
{
    for (const bool popped : {false, true}) {
        crowded_queue<Threading> c;
        BOOST_TEST((c.q->try_pop() == 1));
        if (popped)
            BOOST_TEST((c.q->try_pop() == 2));
        c.q.reset();
        c.push.cancel();
        kit::run(c.io);
        BOOST_TEST(c.push.succeeded() == popped);
        BOOST_TEST(c.push.aborted() == !popped);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_that_waits_is_aborted_with_its_queue, Threading, kit::policies)
{
    crowded_queue<Threading> c;
    c.destroy_and_run();
    BOOST_TEST(c.push.aborted());
}

// The pop of a coroutine takes the item, and the next handler destroys the queue.
BOOST_AUTO_TEST_CASE_TEMPLATE(the_push_of_a_coroutine_succeeds_if_its_item_was_popped, Threading,
                              kit::policies)
{
    kit::drained_context io;
    std::optional<queue_of<Threading>> q(std::in_place, io, 1U);
    fill(*q, {1});
    std::optional<error_code> pushed;
    numbers popped;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const auto [ec] = co_await q->async_push(2, asio::as_tuple(asio::use_awaitable));
            pushed = ec;
        },
        asio::detached);
    kit::poll_leaves_work(io);
    popped = drain(*q);
    q.reset();
    kit::run(io);
    BOOST_TEST((popped == numbers{1, 2}));
    BOOST_TEST_REQUIRE(pushed.has_value());
    BOOST_TEST(!*pushed);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_that_completes_elsewhere_reports_the_same, Threading,
                              kit::policies)
{
    for (const bool popped : {false, true}) {
        kit::drained_context home;
        kit::drained_context elsewhere;
        std::optional<queue_of<Threading>> q(std::in_place, home, 1U);
        fill(*q, {1});
        std::optional<error_code> pushed;
        q->async_push(2, asio::bind_executor(elsewhere, [&](error_code ec) { pushed = ec; }));
        BOOST_TEST((q->try_pop() == 1));
        if (popped)
            BOOST_TEST((q->try_pop() == 2));
        q.reset();
        kit::poll_leaves_work(home);
        kit::run(elsewhere);
        BOOST_TEST_REQUIRE(pushed.has_value());
        BOOST_TEST(!*pushed == popped);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_priority_queue_reports_the_same, Threading, kit::policies)
{
    for (const bool popped : {false, true}) {
        kit::drained_context io;
        operation push;
        std::optional<priority_queue_of<Threading>> q(std::in_place, io, 1U);
        BOOST_TEST_REQUIRE(static_cast<bool>(q->try_push(1, 1)));
        q->async_push(2, 2, push.pushed());
        BOOST_TEST((q->try_pop() == 1));
        if (popped)
            BOOST_TEST((q->try_pop() == 2));
        q.reset();
        kit::run(io);
        BOOST_TEST(push.succeeded() == popped);
        BOOST_TEST(push.aborted() == !popped);
    }
}

// A granted pop whose handler has not run is aborted with the queue. Its item is lost, so the push
// of that item is aborted as well.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_whose_item_was_promised_to_an_aborted_pop_is_aborted,
                              Threading, kit::policies)
{
    for (const std::size_t capacity : {0U, 1U}) {
        for (const bool pop_first : {false, true}) {
            kit::drained_context io;
            std::optional<queue_of<Threading>> q(std::in_place, io, capacity);
            operation push;
            operation pop;
            if (pop_first)
                q->async_pop(pop.popped());
            q->async_push(1, push.ended());
            if (!pop_first)
                q->async_pop(pop.popped());
            q.reset();
            kit::run(io);
            BOOST_TEST(pop.aborted());
            BOOST_TEST(push.aborted());
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_whose_item_was_promised_to_an_aborted_batch_is_aborted,
                              Threading, kit::policies)
{
    for (const bool cancelled : {false, true}) {
        crowded_queue<Threading> c;
        operation another;
        operation batch;
        c.q->async_push(3, another.ended());
        c.q->async_pop_n(2, batch.popped_some());
        c.q.reset();
        if (cancelled) { // too late to have an effect
            batch.cancel();
            c.push.cancel();
        }
        kit::run(c.io);
        BOOST_TEST(batch.aborted());
        BOOST_TEST(batch.values.empty());
        BOOST_TEST(c.push.aborted());
        BOOST_TEST(another.aborted());
    }
}

// One of two pops has completed, and so has taken its item, before the queue is destroyed.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_succeeds_exactly_if_a_pop_completes_with_its_item, Threading,
                              kit::policies)
{
    kit::drained_context io;
    std::optional<queue_of<Threading>> q(std::in_place, io, 0U);
    operation second;
    numbers popped;
    q->async_pop([&](error_code ec, int value) {
        BOOST_TEST(!ec);
        popped.push_back(value);
        q.reset();
    });
    q->async_pop(second.popped());
    operation pushes[2];
    q->async_push(1, pushes[0].ended());
    q->async_push(2, pushes[1].ended());
    kit::run(io);
    BOOST_TEST((popped == numbers{1}));
    BOOST_TEST(second.aborted());
    BOOST_TEST(pushes[0].succeeded());
    BOOST_TEST(pushes[1].aborted());
}

// A push that has dropped an item cannot be cancelled, but its own item may be lost.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_that_dropped_an_item_is_aborted_if_its_own_is_destroyed,
                              Threading, kit::policies)
{
    for (const bool promised : {false, true}) {
        kit::drained_context io;
        std::optional<queue_of<Threading>> q(std::in_place, io, 1U, overflow::drop_oldest);
        fill(*q, {1});
        operation push;
        operation pop;
        q->async_push(2, push.ended());
        if (promised)
            q->async_pop(pop.popped());
        push.cancel();
        q.reset();
        kit::run(io);
        BOOST_TEST(push.aborted());
        BOOST_TEST(pop.aborted() == promised);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_that_dropped_an_item_succeeds_if_its_own_has_left_the_queue,
                              Threading, kit::policies)
{
    for (const bool popped : {false, true}) {
        kit::drained_context io;
        std::optional<queue_of<Threading>> q(std::in_place, io, 1U, overflow::drop_oldest);
        fill(*q, {1});
        operation push;
        q->async_push(2, push.ended());
        if (popped)
            BOOST_TEST((q->try_pop() == 2));
        else
            BOOST_TEST(q->try_push(3)); // drops 2
        q.reset();
        kit::run(io);
        BOOST_TEST(push.succeeded());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_that_dropped_its_own_item_succeeds, Threading, kit::policies)
{
    kit::drained_context io;
    std::optional<queue_of<Threading>> q(std::in_place, io, 1U, overflow::drop_newest);
    fill(*q, {1});
    operation push;
    q->async_push(2, push.ended());
    q.reset();
    kit::run(io);
    BOOST_TEST(push.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_that_dropped_the_worst_reports_the_same, Threading,
                              kit::policies)
{
    for (const bool worst : {false, true}) {
        kit::drained_context io;
        std::optional<priority_queue_of<Threading>> q(std::in_place, io, 1U, overflow::drop_worst);
        BOOST_TEST_REQUIRE(static_cast<bool>(q->try_push(1, 5)));
        operation push;
        q->async_push(2, worst ? 9 : 1, push.pushed());
        q.reset();
        kit::run(io);
        BOOST_TEST(push.succeeded() == worst);
        BOOST_TEST(push.aborted() == !worst);
    }
}

// A queue that is idle again uses the fast path, which must notice the close.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_used_queue_takes_nothing_after_close, Threading, kit::policies)
{
    for (const auto how : {close_mode::drain, close_mode::discard}) {
        kit::drained_context io;
        queue_of<Threading> q(io, 8);
        fill(q, {1, 2});
        BOOST_TEST((q.try_pop() == 1));
        fill(q, {3});
        q.close(how);
        error_code ec;
        BOOST_TEST(!q.try_push(4, ec));
        BOOST_TEST((ec == errc::closed));
        operation push;
        q.async_push(5, push.ended());
        kit::run(io);
        BOOST_TEST(push.failed_with(errc::closed));
        BOOST_TEST((drain(q) == (how == close_mode::drain ? numbers{2, 3} : numbers{})));
    }
}

// With this executor a handler runs inside the call that grants it. So the handler of the push
// runs after an item is promised to the batch, and before the batch takes it.
BOOST_AUTO_TEST_CASE(a_pop_that_starts_while_a_batch_is_taken_waits_for_the_batch)
{
    asio::io_context io;
    operation pop;
    turnstile::queue<int> q(asio::any_io_executor(kit::thread_executor(io)), 1);
    fill(q, {1});
    q.async_push(2, [&](error_code ec) {
        BOOST_TEST(!ec);
        BOOST_TEST((q.try_pop() == 1));
        q.close();
        q.async_pop(pop.popped());
        BOOST_TEST(!pop.done, "the batch may give its item back");
    });
    BOOST_TEST((q.try_pop_n(1) == numbers{2}));
    BOOST_TEST(pop.failed_with(errc::closed));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
