// SPDX-License-Identifier: BSL-1.0
#include "channel/operation.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/queue_sender.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace {

using namespace channels;

template <class Threading>
using priorities_of =
    turnstile::basic_priority_queue<int, int, std::less<int>, asio::any_io_executor, Threading>;

BOOST_AUTO_TEST_SUITE(queue_sender)

using sender_type = turnstile::queue<int>::sender_type;
static_assert(std::is_nothrow_copy_constructible_v<sender_type>);
static_assert(std::is_nothrow_move_constructible_v<sender_type>);
static_assert(std::is_nothrow_default_constructible_v<sender_type>);
static_assert(std::is_copy_assignable_v<sender_type> && std::is_move_assignable_v<sender_type>);

BOOST_AUTO_TEST_CASE_TEMPLATE(the_end_of_the_last_sender_closes_the_queue, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 4);
    auto first = q.sender();
    auto second = first;
    auto third = std::move(first);
    BOOST_TEST(!first);
    BOOST_TEST(static_cast<bool>(second));
    BOOST_TEST(third.try_push(1));
    third.release();
    BOOST_TEST(!third);
    third.release();
    BOOST_TEST(!q.is_closed());
    BOOST_TEST(second.try_push(2));
    second = {};
    BOOST_TEST(q.is_closed());

    operation pops[3];
    for (auto& op : pops)
        q.async_pop(op.popped());
    kit::run(io);
    BOOST_TEST((pops[0].values == numbers{1}));
    BOOST_TEST((pops[1].values == numbers{2}));
    BOOST_TEST(pops[2].failed_with(errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_pop_that_waits_ends_with_the_last_sender, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 4);
    auto sender = q.sender();
    operation pop;
    q.async_pop(pop.popped());
    kit::poll_leaves_work(io);
    BOOST_TEST(!pop.done);
    sender.release();
    kit::run(io);
    BOOST_TEST(pop.failed_with(errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(assigning_a_sender_to_itself_keeps_the_count, Threading,
                              kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    auto sender = q.sender();
    auto& same = sender;
    sender = same;
    BOOST_TEST(static_cast<bool>(sender));
    BOOST_TEST(!q.is_closed());
    queue_of<Threading> other(io, 1);
    sender = other.sender();
    BOOST_TEST(q.is_closed(), "the assignment has released the sender of the first queue");
    BOOST_TEST(!other.is_closed());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(pushes_that_wait_enter_after_the_last_sender_is_gone, Threading,
                              kit::policies)
{
    for (const std::size_t capacity : {0U, 1U}) {
        kit::drained_context io;
        queue_of<Threading> q(io, capacity);
        auto sender = q.sender();
        if (capacity != 0)
            BOOST_TEST_REQUIRE(sender.try_push(1));
        operation pushes[2];
        sender.async_push(2, pushes[0].ended());
        sender.async_push(3, pushes[1].ended());
        sender.release();
        BOOST_TEST(q.is_closed());
        operation late;
        q.async_push(4, late.ended());
        kit::poll_leaves_work(io);
        BOOST_TEST(late.failed_with(errc::closed));
        BOOST_TEST(!pushes[0].done);
        BOOST_TEST(!pushes[1].done);

        operation pops[4];
        for (auto& op : pops)
            q.async_pop(op.popped());
        kit::run(io);
        numbers popped;
        for (auto& op : pops)
            popped.insert(popped.end(), op.values.begin(), op.values.end());
        BOOST_TEST((popped == (capacity != 0 ? numbers{1, 2, 3} : numbers{2, 3})));
        BOOST_TEST(pushes[0].succeeded());
        BOOST_TEST(pushes[1].succeeded());
        BOOST_TEST(pops[3].failed_with(errc::closed));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(pops_wait_for_operations_that_the_last_sender_left, Threading,
                              kit::policies)
{
    for (const bool cancels : {true, false}) {
        kit::drained_context io;
        queue_of<Threading> q(io, 2);
        auto sender = q.sender();
        auto place = sender.try_reserve(2);
        operation reserve;
        typename queue_of<Threading>::reservation_type granted;
        const auto reserved = [&](error_code ec, auto places) {
            reserve.done = true;
            reserve.error = ec;
            granted = std::move(places);
        };
        sender.async_reserve(2, asio::bind_cancellation_slot(reserve.signal.slot(), reserved));
        sender.release();
        operation pop;
        q.async_pop(pop.popped());
        kit::poll_leaves_work(io);
        BOOST_TEST(!reserve.done);
        if (cancels)
            reserve.cancel();
        kit::poll_leaves_work(io);
        BOOST_TEST(!pop.done, "the places that are held may be filled");
        place.release();
        if (!cancels) {
            kit::poll_leaves_work(io);
            BOOST_TEST_REQUIRE(granted.size() == 2U, "granted after the last sender was gone");
            granted.push(1);
            kit::poll_leaves_work(io);
            BOOST_TEST((pop.values == numbers{1}));
            q.async_pop(pop.popped());
            kit::poll_leaves_work(io);
            granted.release();
        }
        kit::run(io);
        BOOST_TEST(reserve.aborted() == cancels);
        BOOST_TEST(pop.failed_with(errc::closed));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(close_refuses_the_pushes_that_the_last_sender_left, Threading,
                              kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    auto sender = q.sender();
    BOOST_TEST_REQUIRE(sender.try_push(1));
    operation push;
    sender.async_push(2, push.ended());
    sender.release();
    q.close();
    kit::run(io);
    BOOST_TEST(push.failed_with(errc::closed));
    BOOST_TEST((drain(q) == numbers{1}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_closed_queue_has_no_senders, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    q.sender().release();
    error_code ec;
    BOOST_TEST(!q.sender(ec));
    BOOST_TEST((ec == errc::closed));
    BOOST_CHECK_THROW((void)q.sender(), system_error);

    queue_of<Threading> closed(io, 1);
    auto kept = closed.sender(ec);
    BOOST_TEST(!ec);
    closed.close();
    BOOST_TEST(!closed.sender(ec));
    auto copy = kept;
    BOOST_TEST(static_cast<bool>(copy), "a copy is not refused");
    BOOST_TEST(!copy.try_push(1, ec));
    BOOST_TEST((ec == errc::closed));
    BOOST_TEST(copy.is_closed());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_sender_may_outlive_its_queue, Threading, kit::policies)
{
    kit::drained_context io;
    std::optional<queue_of<Threading>> q;
    q.emplace(io.get_executor(), 1U);
    auto sender = q->sender();
    BOOST_TEST_REQUIRE(sender.try_push(1));
    operation waits;
    sender.async_push(2, waits.ended());
    q.reset();
    operation later;
    sender.async_push(3, later.ended());
    operation reserve;
    sender.async_reserve([&](error_code ec, auto place) {
        reserve.done = true;
        reserve.error = ec;
        BOOST_TEST(!place);
    });
    kit::run(io);
    BOOST_TEST(waits.aborted());
    BOOST_TEST(later.aborted());
    BOOST_TEST(reserve.aborted());
    error_code ec;
    BOOST_TEST(!sender.try_push(4, ec));
    BOOST_TEST((ec == asio::error::operation_aborted));
    BOOST_TEST(!sender.try_reserve(1, ec));
    BOOST_TEST((ec == asio::error::operation_aborted));
    auto copy = sender;
    BOOST_TEST(copy.is_closed());
    sender.release();
    bool thrown = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            try {
                co_await copy.async_push(5);
            } catch (const system_error& e) {
                thrown = e.code() == asio::error::operation_aborted;
            }
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(thrown, "the short cut reports the same error");
}

BOOST_AUTO_TEST_CASE(a_deferred_push_does_not_need_its_sender)
{
    kit::drained_context io;
    turnstile::queue<int> q(io, 1);
    auto other = q.sender();
    auto sender = q.sender();
    auto push = sender.async_push(1, asio::deferred);
    sender.release();
    operation op;
    std::move(push)(op.ended());
    kit::run(io);
    BOOST_TEST(op.succeeded());
    BOOST_TEST((drain(q) == numbers{1}));
}

BOOST_AUTO_TEST_CASE(an_empty_sender_reports_invalid_argument)
{
    turnstile::queue<int>::sender_type none;
    error_code ec;
    BOOST_TEST(!none);
    BOOST_TEST(!none.try_push(1, ec));
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_TEST(!none.try_reserve(1, ec));
    BOOST_TEST((ec == errc::invalid_argument));
    operation op;
    const auto names_it = [](const system_error& e) {
        return e.code() == errc::invalid_argument &&
               std::string(e.what()).find("queue_sender") != std::string::npos;
    };
    BOOST_CHECK_EXCEPTION(none.async_push(1, op.ended()), system_error, names_it);
    BOOST_CHECK_EXCEPTION((void)none.get_executor(), system_error, names_it);
    BOOST_CHECK_THROW((void)none.is_closed(), system_error);
    auto copy = none;
    BOOST_TEST(!copy);
}

BOOST_AUTO_TEST_CASE(a_failed_try_push_has_not_moved_from_its_value)
{
    asio::io_context io;
    turnstile::queue<std::string> q(io, 1);
    auto sender = q.sender();
    BOOST_TEST(sender.try_push("fills the queue"));
    std::string value = "still here";
    BOOST_TEST(!sender.try_push(std::move(value)));
    BOOST_TEST(value == "still here");
    sender.release();
    BOOST_TEST(!sender.try_push(std::move(value)));
    BOOST_TEST(value == "still here");
}

BOOST_AUTO_TEST_CASE(a_lifo_queue_has_senders)
{
    kit::drained_context io;
    turnstile::queue<int> q(io, 2, overflow::wait, queue_order::lifo);
    auto sender = q.sender();
    BOOST_TEST(sender.free() == 2U);
    operation pushes[3];
    for (int i = 0; i != 3; ++i)
        sender.async_push(i, pushes[i].ended());
    BOOST_TEST(sender.waiting() == 1U);
    BOOST_TEST(sender.free() == 0U);
    sender.release();
    BOOST_TEST((drain(q) == numbers{1, 2, 0}));
    kit::run(io);
    for (auto& op : pushes)
        BOOST_TEST(op.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_priority_queue_has_senders, Threading, kit::policies)
{
    kit::drained_context io;
    priorities_of<Threading> q(io, 2);
    auto sender = q.sender();
    error_code ec;
    BOOST_TEST(static_cast<bool>(sender.try_push(3, 3, ec)));
    operation pushes[2];
    sender.async_push(2, 2, pushes[0].pushed());
    sender.async_push(1, 1, pushes[1].pushed());
    BOOST_TEST(!sender.try_push(0, 0));
    sender.release();
    BOOST_TEST((drain(q) == numbers{2, 1, 3}));
    kit::run(io);
    BOOST_TEST(pushes[0].succeeded());
    BOOST_TEST(pushes[1].succeeded());
    BOOST_TEST(static_cast<bool>(pushes[1].item));
    (void)q.try_pop(ec);
    BOOST_TEST((ec == errc::closed));
}

BOOST_AUTO_TEST_CASE(an_item_may_own_a_sender)
{
    // The items are destroyed with the queue, and their sender with them.
    struct job {
        std::shared_ptr<void> sender;
    };
    asio::io_context io;
    std::weak_ptr<void> watched;
    {
        turnstile::queue<job> q(io, 1);
        auto sender = std::make_shared<turnstile::queue<job>::sender_type>(q.sender());
        watched = sender;
        job first{sender};
        BOOST_TEST(q.try_push(std::move(first)));
        sender.reset();
        BOOST_TEST(!q.is_closed());
    }
    BOOST_TEST(watched.expired());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_context_destroys_a_handler_that_owns_the_last_sender, Threading,
                              kit::policies)
{
    std::optional<asio::io_context> io(std::in_place);
    auto q = std::make_shared<queue_of<Threading>>(*io, 1);
    auto sender = std::make_shared<typename queue_of<Threading>::sender_type>(q->sender());
    std::weak_ptr<void> watched = sender;
    BOOST_TEST_REQUIRE(sender->try_push(1));
    auto& s = *sender;
    int called = 0;
    q->async_reserve([q, &called](error_code, auto) { ++called; });
    s.async_push(2, [sender, &called](error_code) { ++called; });
    sender.reset();
    q.reset();
    io.reset();
    BOOST_TEST(watched.expired());
    BOOST_TEST(called == 0);
}

BOOST_AUTO_TEST_CASE(a_sender_may_outlive_the_context)
{
    turnstile::queue<int>::sender_type sender;
    turnstile::queue<int>::sender_type copy;
    {
        asio::io_context io;
        turnstile::queue<int> q(io, 1);
        sender = q.sender();
    }
    copy = sender;
    error_code ec;
    BOOST_TEST(!copy.try_push(1, ec));
    BOOST_TEST((ec == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
