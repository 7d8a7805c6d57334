// SPDX-License-Identifier: BSL-1.0
#include "channel/operation.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/priority_queue.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <random>
#include <set>
#include <string>

namespace {

using namespace channels;

template <class Threading>
using priority_queue_of =
    turnstile::basic_priority_queue<int, int, std::less<int>, asio::any_io_executor, Threading>;
using priority_numbers = turnstile::priority_queue<int>;

BOOST_AUTO_TEST_SUITE(priority_queue)

BOOST_AUTO_TEST_CASE_TEMPLATE(the_lowest_is_first_and_among_equals_the_oldest, Threading,
                              kit::policies)
{
    kit::drained_context io;
    priority_queue_of<Threading> q(io, turnstile::unbounded);
    int value = 0;
    for (int priority : {2, 1, 2, 0, 1, 2})
        BOOST_TEST(static_cast<bool>(q.try_push(value++, priority)));
    BOOST_TEST((drain(q) == numbers{3, 1, 4, 0, 2, 5}));
}

BOOST_AUTO_TEST_CASE(another_order_and_other_priorities)
{
    asio::io_context io;
    turnstile::priority_queue<int, std::string, std::greater<>> q(io, turnstile::unbounded);
    (void)q.try_push(1, "a");
    (void)q.try_push(2, "c");
    (void)q.try_push(3, "b");
    BOOST_TEST((drain(q) == numbers{2, 3, 1}));

    const auto nearer_to_ten = [](int a, int b) { return std::abs(a - 10) < std::abs(b - 10); };
    turnstile::priority_queue<int, int, decltype(nearer_to_ten)> near(io, 5, overflow::wait,
                                                                      nearer_to_ten);
    for (int n : {1, 12, 9})
        (void)near.try_push(n, n);
    BOOST_TEST((drain(near) == numbers{9, 12, 1}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failed_try_push_reports_whether_waiting_would_help, Threading,
                              kit::policies)
{
    kit::drained_context io;
    priority_queue_of<Threading> q(io, 1);
    error_code ec = errc::broken;
    BOOST_TEST(static_cast<bool>(q.try_push(1, 1, ec)));
    BOOST_TEST(!ec);
    ec = errc::broken;
    BOOST_TEST(!q.try_push(2, 2, ec));
    BOOST_TEST(!ec);
    q.close();
    BOOST_TEST(!q.try_push(2, 2, ec));
    BOOST_TEST((ec == errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_push_waits_for_room_whatever_its_priority, Threading, kit::policies)
{
    kit::drained_context io;
    priority_queue_of<Threading> q(io, 1);
    operation pushes[3];
    q.async_push(0, 5, pushes[0].pushed());
    q.async_push(1, 9, pushes[1].pushed());
    q.async_push(2, 0, pushes[2].pushed());
    BOOST_TEST(!q.try_push(3, 0));
    BOOST_TEST(q.size() == 1U);
    BOOST_TEST(*q.try_pop() == 0);
    BOOST_TEST(*q.try_pop() == 1);
    BOOST_TEST(*q.try_pop() == 2);
    kit::run(io);
    for (const auto& op : pushes)
        BOOST_TEST(op.succeeded());
}

BOOST_AUTO_TEST_CASE(a_full_queue_drops_the_worst_item)
{
    kit::drained_context io;
    priority_numbers q(io, 2, overflow::drop_worst);
    BOOST_TEST(static_cast<bool>(q.try_push(1, 5)));
    const auto second = q.try_push(2, 7);
    BOOST_TEST(static_cast<bool>(q.try_push(3, 6)), "displaces 2");
    BOOST_TEST(!q.change_priority(second, 0));
    const auto worst = q.try_push(4, 6);
    BOOST_TEST(static_cast<bool>(worst), "is taken, and displaced itself: 3 was first");
    BOOST_TEST(!q.change_priority(worst, 0));
    BOOST_TEST(q.dropped() == 2U);
    operation cancelled;
    q.async_push(5, 0, cancelled.pushed());
    BOOST_TEST(q.dropped() == 3U);
    cancelled.cancel(); // too late: the worst item was dropped
    operation itself;
    q.async_push(6, 8, itself.pushed());
    kit::run(io);
    BOOST_TEST(cancelled.succeeded());
    BOOST_TEST(itself.succeeded());
    BOOST_TEST(!q.change_priority(itself.item, 0));
    BOOST_TEST(q.dropped() == 4U);
    BOOST_TEST(q.change_priority(cancelled.item, 9));
    BOOST_TEST((drain(q) == numbers{1, 5}));
    BOOST_CHECK_THROW(priority_numbers(io, 1, overflow::drop_oldest), system_error);

    priority_numbers newest(io, 1, overflow::drop_newest);
    (void)newest.try_push(1, 1);
    BOOST_TEST(static_cast<bool>(newest.try_push(2, 0)));
    BOOST_TEST((drain(newest) == numbers{1}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_priority_can_be_changed_while_the_item_is_in_the_queue, Threading,
                              kit::policies)
{
    kit::drained_context io;
    priority_queue_of<Threading> q(io, turnstile::unbounded);
    const auto a = q.try_push(1, 1);
    const auto b = q.try_push(2, 2);
    const auto c = q.try_push(3, 3);
    BOOST_TEST(q.change_priority(c, 0));
    BOOST_TEST(q.change_priority(a, 2), "comes before 2, which was pushed later");
    BOOST_TEST(*q.try_pop() == 3);
    BOOST_TEST(!q.change_priority(c, 0));
    BOOST_TEST(static_cast<bool>(q.try_push(4, 2)), "in memory that was used for 3");
    BOOST_TEST(!q.change_priority(c, 0));
    BOOST_TEST((drain(q) == numbers{1, 2, 4}));
    BOOST_TEST(!q.change_priority(b, 0));
    BOOST_TEST(!q.change_priority(turnstile::queue_item_id(), 0));
    priority_queue_of<Threading> other(io, turnstile::unbounded);
    const auto d = other.try_push(5, 5);
    BOOST_TEST(!q.change_priority(d, 0), "of another queue");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_item_can_be_erased_while_it_is_in_the_queue, Threading,
                              kit::policies)
{
    kit::drained_context io;
    priority_queue_of<Threading> q(io, 2);
    const auto a = q.try_push(1, 1);
    const auto b = q.try_push(2, 2);
    operation third;
    operation join;
    q.async_push(3, 3, third.pushed());
    BOOST_TEST(*q.erase(b) == 2);
    BOOST_TEST(!q.erase(b).has_value(), "it is gone");
    kit::run(io);
    BOOST_TEST(third.succeeded(), "had to wait for the place");
    BOOST_TEST(q.unfinished() == 2U);
    BOOST_TEST(*q.try_pop() == 1);
    BOOST_TEST(!q.erase(a).has_value(), "the item was popped");
    BOOST_TEST(!q.erase(turnstile::queue_item_id()).has_value());
    priority_queue_of<Threading> other(io, turnstile::unbounded);
    BOOST_TEST(!q.erase(other.try_push(5, 5)).has_value(), "of another queue");

    q.task_done();
    q.async_join(join.ended());
    BOOST_TEST(*q.erase(third.item) == 3);
    kit::run(io);
    BOOST_TEST(join.succeeded(), "what was taken out counts as done");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_item_that_is_promised_to_a_pop_is_not_erased, Threading,
                              kit::policies)
{
    kit::drained_context io;
    priority_queue_of<Threading> q(io, turnstile::unbounded);
    const auto a = q.try_push(1, 1);
    const auto b = q.try_push(2, 2);
    operation first;
    operation second;
    q.async_pop(first.popped());
    BOOST_TEST(*q.erase(a) == 1, "the pop takes what is next when it arrives");
    q.async_pop(second.popped());
    BOOST_TEST(!q.erase(b).has_value());
    second.cancel();
    kit::run(io);
    BOOST_TEST((first.values == numbers{2}));
    BOOST_TEST(second.aborted());
}

BOOST_AUTO_TEST_CASE(a_push_that_waited_gives_an_id_that_is_valid_while_the_item_is_there)
{
    kit::drained_context io;
    priority_numbers q(io, 1);
    operation first;
    operation second;
    q.async_push(1, 1, first.pushed());
    q.async_push(2, 2, second.pushed());
    BOOST_TEST(*q.try_pop() == 1);
    kit::run(io);
    BOOST_TEST(!q.change_priority(first.item, 9));
    BOOST_TEST(q.change_priority(second.item, 9));
    operation pop;
    q.async_pop(pop.popped());
    BOOST_TEST(q.change_priority(second.item, 8), "it is there until the pop is delivered");
    pop.cancel();
    BOOST_TEST(q.change_priority(second.item, 7));
    kit::run(io);
    auto place = q.try_reserve();
    BOOST_TEST(!place);
    BOOST_TEST(*q.try_pop() == 2);
    place = q.try_reserve();
    const auto third = place.push(3, 3);
    BOOST_TEST(q.change_priority(third, 4));
}

BOOST_AUTO_TEST_CASE(a_pop_gets_the_best_there_is_when_its_handler_runs)
{
    kit::drained_context io;
    priority_numbers q(io, turnstile::unbounded);
    operation pop;
    q.async_pop(pop.popped());
    (void)q.try_push(1, 5);
    (void)q.try_push(2, 0);
    kit::run(io);
    BOOST_TEST((pop.values == numbers{2}));
    BOOST_TEST((drain(q) == numbers{1}));
}

BOOST_AUTO_TEST_CASE(the_item_of_a_cancelled_pop_keeps_its_place)
{
    kit::drained_context io;
    priority_numbers q(io, turnstile::unbounded);
    std::vector<operation> pops(2);
    for (auto& op : pops)
        q.async_pop(op.popped());
    (void)q.try_push(1, 1);
    (void)q.try_push(2, 1);
    (void)q.try_push(3, 0);
    (void)q.try_push(4, 1);
    for (auto& op : pops)
        op.cancel();
    kit::run(io);
    BOOST_TEST((drain(q) == numbers{3, 1, 2, 4}));
}

BOOST_AUTO_TEST_CASE(the_shared_operations_work_as_with_queue)
{
    kit::drained_context io;
    turnstile::priority_queue<std::unique_ptr<int>, std::string> q(io, 2);
    auto kept = std::make_unique<int>(1);
    BOOST_TEST(static_cast<bool>(q.try_push(std::make_unique<int>(2), "b")));
    BOOST_TEST(static_cast<bool>(q.try_push(std::make_unique<int>(3), "a")));
    BOOST_TEST(!q.try_push(std::move(kept), "c"));
    BOOST_TEST(*kept == 1);
    operation join;
    q.async_join(join.ended());
    BOOST_TEST(**q.try_pop() == 3);
    q.close(close_mode::discard);
    BOOST_TEST(q.is_closed());
    BOOST_TEST(q.unfinished() == 1U);
    q.task_done();
    kit::run(io);
    BOOST_TEST(join.succeeded());
    BOOST_TEST(!q.try_push(std::move(kept), "d"));
}

BOOST_AUTO_TEST_CASE(many_items_against_a_model)
{
    kit::drained_context io;
    priority_numbers q(io, turnstile::unbounded);
    std::set<std::pair<int, int>>
        model; // priority and value; values grow in the order of the pushes
    std::vector<std::pair<turnstile::queue_item_id, int>> handles;
    std::vector<int> priority_of;
    std::mt19937 random(1);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int step = 0; step != 20'000; ++step) {
        const int what = below(10);
        if (what < 5) {
            const int value = static_cast<int>(priority_of.size());
            const int priority = below(50);
            priority_of.push_back(priority);
            model.emplace(priority, value);
            handles.emplace_back(q.try_push(value, priority), value);
        } else if (what < 8) {
            const auto item = q.try_pop();
            BOOST_TEST_REQUIRE(item.has_value() == !model.empty());
            if (item) {
                BOOST_TEST_REQUIRE(*item == model.begin()->second);
                model.erase(model.begin());
            }
        } else if (!handles.empty()) {
            const auto& [handle, value] =
                handles[static_cast<std::size_t>(below(static_cast<int>(handles.size())))];
            int& priority = priority_of[static_cast<std::size_t>(value)];
            const int changed = below(50);
            const bool there = model.erase({priority, value}) != 0;
            BOOST_TEST_REQUIRE(q.change_priority(handle, changed) == there);
            if (there)
                model.emplace(priority = changed, value);
        }
    }
    BOOST_TEST(q.size() == model.size());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
