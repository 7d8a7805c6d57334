// SPDX-License-Identifier: BSL-1.0
#include "channel/operation.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/queue_receiver.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace {

using namespace channels;

BOOST_AUTO_TEST_SUITE(queue_receiver)

using receiver_type = turnstile::queue<int>::receiver_type;
static_assert(std::is_nothrow_copy_constructible_v<receiver_type>);
static_assert(std::is_nothrow_move_constructible_v<receiver_type>);

BOOST_AUTO_TEST_CASE_TEMPLATE(the_end_of_the_last_receiver_fails_the_senders, Threading,
                              kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    auto sender = q.sender();
    auto first = q.receiver();
    auto second = first;
    BOOST_TEST_REQUIRE(sender.try_push(1));
    operation pushes[2];
    sender.async_push(2, pushes[0].ended());
    first.release();
    BOOST_TEST(!first);
    BOOST_TEST(!q.is_closed());
    second.release();
    BOOST_TEST(q.is_closed());
    BOOST_TEST(q.empty(), "the items are discarded");
    BOOST_TEST(q.unfinished() == 0U);
    sender.async_push(3, pushes[1].ended());
    kit::run(io);
    BOOST_TEST(pushes[0].failed_with(errc::closed));
    BOOST_TEST(pushes[1].failed_with(errc::closed));
    error_code ec;
    BOOST_TEST(!sender.try_push(4, ec));
    BOOST_TEST((ec == errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_receiver_pops, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 8);
    const auto receiver = q.receiver();
    fill(q, {1, 2, 3, 4});
    BOOST_TEST(receiver.size() == 4U);
    operation pop;
    receiver.async_pop(pop.popped());
    kit::run(io);
    BOOST_TEST((pop.values == numbers{1}));
    error_code ec;
    BOOST_TEST((receiver.try_pop(ec) == 2));
    BOOST_TEST(!ec);
    operation batch;
    receiver.async_pop_n(9, batch.popped_some());
    kit::run(io);
    BOOST_TEST((batch.values == numbers{3, 4}));
    BOOST_TEST(receiver.try_pop_n(1, ec).empty());
    BOOST_TEST(!ec);
    BOOST_TEST(receiver.try_pop_n(0, ec).empty());
    BOOST_TEST((ec == errc::invalid_argument));
    for (int i = 0; i != 4; ++i)
        receiver.task_done();
    BOOST_CHECK_THROW(receiver.task_done(), system_error);
    BOOST_TEST(receiver.empty());
    receiver.async_pop(pop.popped());
    BOOST_TEST(receiver.waiting() == 1U);
    q.close();
    kit::run(io);
    BOOST_TEST(pop.failed_with(errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(pops_of_the_last_receiver, Threading, kit::policies)
{
    // A pop that waits fails, and a granted one is delivered.
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    auto receiver = q.receiver();
    operation granted;
    operation waits;
    receiver.async_pop(granted.popped());
    receiver.async_pop(waits.popped());
    fill(q, {1});
    receiver.release();
    kit::run(io);
    BOOST_TEST((granted.values == numbers{1}));
    BOOST_TEST(waits.failed_with(errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_queue_that_drains_has_receivers, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 2);
    fill(q, {1, 2});
    q.close();
    error_code ec;
    auto receiver = q.receiver(ec);
    BOOST_TEST(!ec);
    BOOST_TEST((receiver.try_pop() == 1));
    receiver.release();
    BOOST_TEST(q.empty());
    BOOST_TEST(!q.receiver(ec));
    BOOST_TEST((ec == errc::closed));
    BOOST_CHECK_THROW((void)q.receiver(), system_error);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(pushes_left_by_the_last_sender_fail_with_the_last_receiver, Threading,
                              kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 1);
    auto sender = q.sender();
    auto receiver = q.receiver();
    BOOST_TEST_REQUIRE(sender.try_push(1));
    operation push;
    sender.async_push(2, push.ended());
    sender.release();
    receiver.release();
    kit::run(io);
    BOOST_TEST(push.failed_with(errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_receiver_may_outlive_its_queue, Threading, kit::policies)
{
    kit::drained_context io;
    std::optional<queue_of<Threading>> q;
    q.emplace(io.get_executor(), 1U);
    auto receiver = q->receiver();
    operation waits;
    operation later;
    operation batch;
    receiver.async_pop(waits.popped());
    q.reset();
    receiver.async_pop(later.popped());
    receiver.async_pop_n(2, batch.popped_some());
    kit::run(io);
    BOOST_TEST(waits.aborted());
    BOOST_TEST(later.aborted());
    BOOST_TEST(batch.aborted());
    error_code ec;
    BOOST_TEST(!receiver.try_pop(ec));
    BOOST_TEST((ec == asio::error::operation_aborted));
    BOOST_TEST(receiver.try_pop_n(2, ec).empty());
    BOOST_TEST((ec == asio::error::operation_aborted));
    const auto copy = receiver;
    BOOST_TEST(copy.is_closed());
}

BOOST_AUTO_TEST_CASE(an_empty_receiver_reports_invalid_argument)
{
    receiver_type none;
    error_code ec;
    BOOST_TEST(!none.try_pop(ec));
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_TEST(none.try_pop_n(1, ec).empty());
    BOOST_TEST((ec == errc::invalid_argument));
    ec = {};
    none.task_done(ec);
    BOOST_TEST((ec == errc::invalid_argument));
    operation op;
    BOOST_CHECK_THROW(none.async_pop(op.popped()), system_error);
    none.release();
}

BOOST_AUTO_TEST_CASE(the_last_receiver_destroys_the_items)
{
    asio::io_context io;
    turnstile::queue<std::shared_ptr<int>> q(io, 2);
    turnstile::priority_queue<std::shared_ptr<int>> p(io, 2);
    auto value = std::make_shared<int>(1);
    BOOST_TEST(q.try_push(value));
    BOOST_TEST(static_cast<bool>(p.try_push(value, 1)));
    BOOST_TEST(value.use_count() == 3);
    q.receiver().release();
    p.receiver().release();
    BOOST_TEST(value.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
