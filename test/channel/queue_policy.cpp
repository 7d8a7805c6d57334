// SPDX-License-Identifier: BSL-1.0
#include "channel/operation.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/queue_policy.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <string>

namespace {

using namespace channels;

BOOST_AUTO_TEST_SUITE(queue_policy)

BOOST_AUTO_TEST_CASE(the_oldest_is_first_or_the_newest)
{
    asio::io_context io;
    turnstile::queue<int> fifo(io, turnstile::unbounded);
    turnstile::queue<int> lifo(io, turnstile::unbounded, overflow::wait, queue_order::lifo);
    fill(fifo, {1, 2, 3});
    fill(lifo, {1, 2, 3});
    BOOST_TEST(fifo.size() == 3U);
    BOOST_TEST((drain(fifo) == numbers{1, 2, 3}));
    BOOST_TEST((drain(lifo) == numbers{3, 2, 1}));
    BOOST_TEST(fifo.empty());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(closing_lets_pops_drain_and_fails_pushes, Threading, kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, 2);
    fill(q, {1, 2});
    operation push;
    operation place;
    q.async_push(3, push.ended());
    q.async_reserve([&](error_code ec, auto) { place.error = ec; });
    q.close();
    BOOST_TEST(q.is_closed());
    BOOST_TEST(!q.try_push(4));
    operation late;
    q.async_push(5, late.ended());
    std::vector<operation> pops(3);
    for (auto& op : pops)
        q.async_pop(op.popped());
    kit::run(io);
    BOOST_TEST(push.failed_with(errc::closed));
    BOOST_TEST((place.error == errc::closed));
    BOOST_TEST(late.failed_with(errc::closed));
    BOOST_TEST((pops[0].values == numbers{1}));
    BOOST_TEST((pops[1].values == numbers{2}));
    BOOST_TEST(pops[2].failed_with(errc::closed));
    BOOST_TEST(!q.try_reserve());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_discarding_close_leaves_only_items_in_progress, Threading,
                              kit::policies)
{
    kit::drained_context io;
    queue_of<Threading> q(io, turnstile::unbounded);
    operation join;
    operation on_its_way;
    fill(q, {1, 2, 3});
    BOOST_TEST(*q.try_pop() == 1);
    q.async_join(join.ended());
    q.close(close_mode::discard);
    BOOST_TEST(q.size() == 0U);
    BOOST_TEST(q.unfinished() == 1U);
    kit::poll_leaves_work(io);
    BOOST_TEST(!join.done);
    q.task_done();
    kit::run(io);
    BOOST_TEST(join.succeeded());
    operation pop;
    q.async_pop(pop.popped());
    kit::run(io);
    BOOST_TEST(pop.failed_with(errc::closed));
}

BOOST_AUTO_TEST_CASE(an_item_given_back_to_a_discarded_queue_is_discarded)
{
    kit::drained_context io;
    turnstile::queue<int> q(io, turnstile::unbounded);
    operation pop;
    operation join;
    q.async_pop(pop.popped());
    fill(q, {1});
    q.async_join(join.ended());
    q.close(close_mode::discard);
    BOOST_TEST(q.unfinished() == 1U);
    pop.cancel();
    kit::run(io);
    BOOST_TEST(pop.aborted());
    BOOST_TEST(q.size() == 0U);
    BOOST_TEST(join.succeeded());
}

BOOST_AUTO_TEST_CASE(a_full_queue_drops_or_rejects_by_its_policy)
{
    kit::drained_context io;
    const auto after_three = [&](overflow policy, std::size_t capacity) {
        operation place;
        std::vector<operation> pushes(3);
        turnstile::queue<int> q(io, capacity, policy);
        int value = 1;
        for (auto& op : pushes)
            q.async_push(value++, op.ended());
        kit::run(io);
        for (auto& op : pushes)
            BOOST_TEST((op.succeeded() || op.failed_with(errc::rejected)));
        const std::size_t taken = policy == overflow::reject ? capacity : 3;
        BOOST_TEST(q.dropped() == taken - q.size());
        BOOST_TEST(q.unfinished() == q.size());
        BOOST_TEST(q.try_push(4) == (policy != overflow::reject));
        const numbers left = drain(q);
        fill(q, left);
        q.async_reserve([&](error_code ec, auto) { place.error = ec; });
        q.close();
        kit::run(io);
        BOOST_TEST((place.error == errc::rejected) == (policy == overflow::reject));
        return left;
    };
    BOOST_TEST((after_three(overflow::drop_oldest, 2) == numbers{3, 4}));
    BOOST_TEST((after_three(overflow::drop_newest, 2) == numbers{1, 2}));
    BOOST_TEST((after_three(overflow::reject, 2) == numbers{1, 2}));
    BOOST_TEST((after_three(overflow::drop_oldest, 0) == numbers{}));
    BOOST_TEST((after_three(overflow::drop_newest, 0) == numbers{}));
    BOOST_CHECK_THROW(turnstile::queue<int>(io, 1, overflow::drop_worst), system_error);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_that_has_dropped_an_item_is_too_late_to_cancel, Threading,
                              kit::policies)
{
    kit::drained_context io;
    for (const auto policy : {overflow::drop_oldest, overflow::drop_newest}) {
        for (const std::size_t capacity : {0U, 2U}) {
            queue_of<Threading> q(io, capacity, policy);
            fill(q, capacity == 0 ? numbers{} : numbers{1, 2});
            operation push;
            q.async_push(3, push.ended());
            BOOST_TEST(q.dropped() == 1U);
            push.cancel();
            kit::run(io);
            BOOST_TEST(push.succeeded());
            BOOST_TEST(q.dropped() == 1U);
            BOOST_TEST(q.unfinished() == capacity);
            const numbers left = policy == overflow::drop_oldest ? numbers{2, 3} : numbers{1, 2};
            BOOST_TEST((drain(q) == (capacity == 0 ? numbers{} : left)));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_push_that_has_dropped_nothing_can_be_cancelled)
{
    kit::drained_context io;
    turnstile::queue<int> q(io, 2, overflow::drop_oldest);
    fill(q, {1});
    operation push;
    q.async_push(2, push.ended());
    push.cancel();
    kit::run(io);
    BOOST_TEST(push.aborted());
    BOOST_TEST(q.dropped() == 0U);
    BOOST_TEST((drain(q) == numbers{1}));
}

template <class Queue, class Capacity>
void expect_no_capacity(asio::io_context& io, Capacity capacity, const std::string& name)
{
    BOOST_CHECK_EXCEPTION(Queue(io, capacity), system_error, [&](const system_error& e) {
        return e.code() == errc::invalid_argument &&
               std::string(e.what()).find(name + ": capacity") != std::string::npos;
    });
}

BOOST_AUTO_TEST_CASE(a_capacity_that_is_no_number_of_items_is_an_error)
{
    asio::io_context io;
    expect_no_capacity<turnstile::queue<int>>(io, -1, "queue");
    expect_no_capacity<turnstile::queue<int>>(io, -2L, "queue");
    expect_no_capacity<turnstile::queue<int>>(io, static_cast<signed char>(-1), "queue");
    expect_no_capacity<turnstile::local::queue<int>>(io, std::size_t(-2), "queue");
    expect_no_capacity<turnstile::priority_queue<int>>(io, -1, "priority_queue");
    BOOST_CHECK_THROW(turnstile::queue<int>(io.get_executor(), -1), system_error);

    BOOST_TEST(turnstile::queue<int>(io, 0).capacity() == 0U);
    BOOST_TEST(turnstile::queue<int>(io, 7L).capacity() == 7U);
    BOOST_TEST(turnstile::queue<int>(io, 0xffff'ffffU).capacity() == 0xffff'ffffU);
    BOOST_TEST(turnstile::queue<int>(io, turnstile::unbounded).capacity() == turnstile::unbounded);
    const unsigned long long no_limit = turnstile::unbounded;
    BOOST_TEST(turnstile::queue<int>(io, no_limit).capacity() == turnstile::unbounded);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
