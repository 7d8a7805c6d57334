// SPDX-License-Identifier: BSL-1.0
// Groups in groups, and groups that are cancelled at any step: scenarios of asyncio.TaskGroup,
// trio, errgroup and tokio, which doc/testing.md lists.
#include "kit/completion.hpp"
#include "kit/run.hpp"

#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/work/scope.hpp>
#include <turnstile/work/task_group.hpp>

#include <boost/asio.hpp>
#include <boost/asio/any_completion_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using ts::error_code;

using groups = std::tuple<ts::task_group<>, ts::local::task_group<>>;

// Counts the coroutines that have not ended.
struct alive {
    explicit alive(int& n) : count(&n) { ++*count; }
    alive(const alive&) = delete;
    ~alive() { --*count; }
    int* count;
};

asio::awaitable<void> forever(int& running)
{
    const alive here(running);
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_at(asio::steady_timer::time_point::max());
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> failing()
{
    throw std::runtime_error("child");
    co_return;
}

asio::awaitable<void> nested(int depth, int& running)
{
    const auto body = [&](ts::task_group<>& group) -> asio::awaitable<void> {
        group.spawn(forever(running));
        if (depth != 0)
            group.spawn(nested(depth - 1, running));
        co_await forever(running);
    };
    co_await ts::async_scope(body);
}

std::string text_of(const std::exception_ptr& thrown)
{
    try {
        if (thrown)
            std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
        return e.what();
    }
    return "none";
}

BOOST_AUTO_TEST_SUITE(task_group_scenarios)

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_a_group_reaches_the_groups_of_its_children, Group, groups)
{
    kit::drained_context io;
    int running = 0;
    Group group(io);
    group.spawn(nested(3, running));
    kit::poll_leaves_work(io);
    BOOST_TEST(running == 8);
    kit::completion joined;
    group.async_join(joined.handler([] {}));
    group.cancel();
    kit::run(io);
    BOOST_TEST(running == 0);
    BOOST_TEST(joined.succeeded());
    BOOST_TEST(group.stats().cancelled == 1U);
}

BOOST_AUTO_TEST_CASE(a_failure_in_an_inner_scope_ends_the_outer_one_after_all_children)
{
    kit::drained_context io;
    int running = 0;
    std::string text;
    const auto inner = [&](ts::task_group<>& group) -> asio::awaitable<void> {
        group.spawn(forever(running));
        co_await asio::post(asio::use_awaitable);
        group.spawn(failing);
    };
    const auto outer = [&](ts::task_group<>& group) -> asio::awaitable<void> {
        group.spawn(forever(running));
        co_await ts::async_scope(inner);
        BOOST_ERROR("not reached");
    };
    asio::co_spawn(io, ts::async_scope(outer), [&](std::exception_ptr thrown) {
        text = text_of(thrown);
        BOOST_TEST(running == 0);
    });
    kit::run(io);
    BOOST_TEST(text == "child");
}

BOOST_AUTO_TEST_CASE(a_handled_failure_of_an_inner_scope_leaves_the_outer_one_alone)
{
    kit::drained_context io;
    int ended = 0;
    std::string inner_text;
    std::string outer_text;
    const auto inner = [](ts::task_group<>& group) -> asio::awaitable<void> {
        group.spawn(failing);
        co_return;
    };
    const auto outer = [&](ts::task_group<>& group) -> asio::awaitable<void> {
        group.spawn([&]() -> asio::awaitable<void> {
            for (int i = 0; i != 10; ++i)
                co_await asio::post(asio::use_awaitable);
            ++ended;
        });
        try {
            co_await ts::async_scope(inner);
        } catch (const std::exception& e) {
            inner_text = e.what();
        }
    };
    asio::co_spawn(io, ts::async_scope(outer),
                   [&](std::exception_ptr thrown) { outer_text = text_of(thrown); });
    kit::run(io);
    BOOST_TEST(inner_text == "child");
    BOOST_TEST(outer_text == "none");
    BOOST_TEST(ended == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(children_that_spawn_under_a_limit_do_not_deadlock, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.limit = 3});
    int ended = 0;
    struct tree {
        static asio::awaitable<void> grow(Group& g, int depth, int& count)
        {
            if (depth != 0) {
                g.spawn_when_free(grow(g, depth - 1, count));
                co_await asio::post(asio::use_awaitable);
                g.spawn_when_free(grow(g, depth - 1, count));
            }
            ++count;
        }
    };
    group.spawn(tree::grow(group, 9, ended));
    kit::run(io);
    BOOST_TEST(ended == 1023);
    BOOST_TEST(group.stats().running == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_group_of_no_children_is_joined_at_once, Group, groups)
{
    kit::drained_context io;
    Group group(io);
    kit::completion first;
    kit::completion second;
    group.async_join(first.handler([] {}));
    kit::run(io);
    BOOST_TEST(first.succeeded());
    group.async_join(second.handler([] {}));
    kit::run(io);
    BOOST_TEST(second.succeeded());
    BOOST_CHECK_THROW(group.spawn(failing), ts::system_error);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_group_is_used_again_after_a_cancellation, Group, groups)
{
    kit::drained_context io;
    int running = 0;
    Group group(io);
    group.spawn(forever(running));
    kit::poll_leaves_work(io);
    group.cancel();
    kit::run(io);
    BOOST_TEST(running == 0);
    bool ran = false;
    group.spawn([&]() -> asio::awaitable<void> {
        ran = true;
        co_return;
    });
    kit::run(io);
    BOOST_TEST(ran);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_child_cancels_its_own_group, Group, groups)
{
    kit::drained_context io;
    int running = 0;
    Group group(io);
    group.spawn(forever(running));
    group.spawn([&]() -> asio::awaitable<void> {
        group.cancel();
        co_await forever(running);
    });
    kit::completion joined;
    group.async_join(joined.handler([] {}));
    kit::run(io);
    BOOST_TEST(running == 0);
    BOOST_TEST(joined.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_child_may_fail_while_it_is_being_cancelled, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.policy = ts::join_policy::wait_all});
    ts::event never(io);
    group.spawn([&]() -> asio::awaitable<void> {
        try {
            co_await never.async_wait();
        } catch (const ts::system_error&) {
            throw std::runtime_error("clean-up failed");
        }
    });
    kit::poll_leaves_work(io);
    group.cancel();
    std::string text;
    asio::co_spawn(io, group.async_join(),
                   [&](std::exception_ptr thrown) { text = text_of(thrown); });
    kit::run(io);
    BOOST_TEST(text == "clean-up failed");
}

// The contract excludes these properties for groups, because children are outstanding work.
BOOST_AUTO_TEST_CASE(a_wait_for_a_group_is_outstanding_work_and_honours_every_type)
{
    for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                            asio::cancellation_type::total}) {
        kit::drained_context home;
        kit::drained_context elsewhere;
        int running = 0;
        ts::task_group<> group(home, {.limit = 1});
        group.spawn(forever(running));
        kit::poll_leaves_work(home);
        asio::cancellation_signal signals[2];
        kit::completion placed;
        kit::completion joined;
        const auto there = [&](asio::cancellation_signal& signal, const kit::completion& c) {
            return asio::bind_cancellation_slot(
                signal.slot(),
                asio::bind_executor(asio::any_completion_executor(elsewhere.get_executor()),
                                    c.handler([] {})));
        };
        group.async_spawn(failing, there(signals[0], placed));
        group.async_spawn(failing, asio::detached);
        signals[0].emit(asio::cancellation_type::none);
        kit::poll_leaves_work(home);
        BOOST_TEST(kit::poll_leaves_work(elsewhere));
        BOOST_TEST(!placed.done());
        signals[0].emit(type);
        kit::poll_leaves_work(home);
        kit::run(elsewhere);
        BOOST_TEST(placed.aborted());
        group.async_join(there(signals[1], joined));
        BOOST_TEST(kit::poll_leaves_work(elsewhere));
        signals[1].emit(type);
        kit::poll_leaves_work(home);
        kit::run(elsewhere);
        BOOST_TEST(joined.aborted());
        group.cancel();
        kit::run(home);
        BOOST_TEST(running == 0);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_a_group_at_any_step_ends_every_child, Group, groups)
{
    bool completed_before = false;
    for (int k = 0; !completed_before; ++k) {
        kit::drained_context io;
        ts::mutex mutex(io);
        Group group(io, {.limit = 2, .policy = ts::join_policy::wait_all});
        std::vector<int> ends;
        int running = 0;
        const auto child = [&]() -> asio::awaitable<void> {
            const alive here(running);
            const auto lock = co_await mutex.async_lock();
            co_await asio::post(asio::use_awaitable);
            ends.push_back(running);
        };
        kit::completion placed;
        kit::completion joined;
        group.spawn(child);
        group.spawn_when_free(child);
        group.spawn_when_free(child);
        group.async_spawn(child, placed.handler([] {}));
        asio::post(io, [&] { group.async_join(joined.handler([] {})); });
        int steps = 0;
        while (steps != k && io.poll_one() != 0)
            ++steps;
        completed_before = steps != k;
        group.cancel();
        kit::run(io);
        const auto stats = group.stats();
        BOOST_TEST(running == 0);
        BOOST_TEST(placed.done());
        BOOST_TEST(joined.succeeded());
        BOOST_TEST(!mutex.is_locked());
        BOOST_TEST(stats.running + stats.queued + stats.waiting + stats.failed == 0U);
        BOOST_TEST(stats.succeeded == ends.size());
        BOOST_TEST(stats.succeeded + stats.cancelled == (placed.succeeded() ? 4U : 3U));
    }
}

BOOST_AUTO_TEST_CASE(cancelling_a_scope_at_any_step_ends_every_child)
{
    bool completed_before = false;
    for (int k = 0; !completed_before; ++k) {
        kit::drained_context io;
        asio::cancellation_signal signal;
        int running = 0;
        int calls = 0;
        const auto yields = [&]() -> asio::awaitable<void> {
            const alive here(running);
            co_await asio::post(asio::use_awaitable);
            co_await asio::post(asio::use_awaitable);
        };
        const auto body = [&](ts::task_group<>& group) -> asio::awaitable<void> {
            group.spawn(yields);
            co_await asio::post(asio::use_awaitable);
            group.spawn(yields);
        };
        asio::co_spawn(io, ts::async_scope(body),
                       asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr thrown) {
                           ++calls;
                           BOOST_TEST((!thrown || ts::failure(thrown).is_cancelled()));
                           BOOST_TEST(running == 0);
                       }));
        int steps = 0;
        while (steps != k && io.poll_one() != 0)
            ++steps;
        completed_before = steps != k;
        signal.emit(asio::cancellation_type::terminal);
        kit::run(io);
        BOOST_TEST(calls == 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
