// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/run.hpp"

#include <turnstile/work/task_group.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <exception>
#include <functional>
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

asio::awaitable<void> forever()
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_at(asio::steady_timer::time_point::max());
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> nothing() { co_return; }

asio::awaitable<void> failing(std::string what)
{
    throw std::runtime_error(what);
    co_return;
}

// Joins, and returns the text of the exception; "" if there is none.
template <class Group>
asio::awaitable<void> join(Group& group, std::string& text)
{
    try {
        co_await group.async_join();
        text = "none";
    } catch (const ts::multiple_errors& e) {
        text = std::to_string(e.errors().size()) + " errors";
    } catch (const std::exception& e) {
        text = e.what();
    }
}

BOOST_AUTO_TEST_SUITE(task_group)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_join_completes_after_the_last_child, Group, groups)
{
    kit::drained_context io;
    Group group(io);
    asio::steady_timer timer(io, asio::steady_timer::time_point::max());
    int ended = 0;
    for (int i = 0; i != 3; ++i) {
        group.spawn([&]() -> asio::awaitable<void> {
            error_code ec;
            co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
            ++ended;
        });
    }
    kit::completion first;
    kit::completion second;
    group.async_join(first.handler([&] { BOOST_TEST(ended == 3); }));
    group.async_join(second.handler([&] { BOOST_TEST(ended == 3); }));
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(!first.done());
    BOOST_TEST(group.stats().running == 3U);
    timer.cancel();
    kit::run(io);
    BOOST_TEST(first.succeeded());
    BOOST_TEST(second.succeeded());
    BOOST_TEST(group.stats().succeeded == 3U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(children_are_functions_awaitables_and_operations, Group, groups)
{
    kit::drained_context io;
    Group group(io);
    asio::steady_timer timer(io, asio::steady_timer::time_point::min());
    group.spawn(nothing);
    group.spawn(nothing());
    group.spawn(timer.async_wait(asio::deferred));
    group.spawn([&](auto token) { return timer.async_wait(std::move(token)); });
    std::string text;
    asio::co_spawn(io, join(group, text), asio::detached);
    kit::run(io);
    BOOST_TEST(text == "none");
    BOOST_TEST(group.stats().succeeded == 4U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_first_failure_cancels_the_others, Group, groups)
{
    kit::drained_context io;
    Group group(io);
    group.spawn(forever);
    group.spawn(failing("first"));
    group.spawn_when_free(forever);
    std::string text;
    asio::co_spawn(io, join(group, text), asio::detached);
    kit::run(io);
    BOOST_TEST(text == "first");
    BOOST_TEST(group.stats().failed == 1U);
    BOOST_TEST(group.stats().cancelled == 2U);
    BOOST_TEST(group.is_closed());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(wait_all_reports_every_error, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.policy = ts::join_policy::wait_all});
    group.spawn(failing("one"));
    group.spawn(nothing);
    group.spawn(failing("two"));
    std::string text;
    asio::co_spawn(io, join(group, text), asio::detached);
    kit::run(io);
    BOOST_TEST(text == "2 errors");
    BOOST_TEST(group.errors().size() == 2U);
    kit::completion joined;
    group.async_join(joined.handler([] {}));
    kit::run(io);
    BOOST_TEST((joined.error() == ts::errc::operation_failed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_first_success_cancels_the_others, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.policy = ts::join_policy::first_success});
    group.spawn(failing("one"));
    group.spawn(forever);
    group.spawn(nothing);
    std::string text;
    asio::co_spawn(io, join(group, text), asio::detached);
    kit::run(io);
    BOOST_TEST(text == "none");
    BOOST_TEST(group.stats().cancelled == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(without_a_success_first_success_reports_the_errors, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.policy = ts::join_policy::first_success});
    group.spawn(failing("one"));
    group.spawn(failing("two"));
    std::string text;
    asio::co_spawn(io, join(group, text), asio::detached);
    kit::run(io);
    BOOST_TEST(text == "2 errors");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_ends_the_children_and_is_no_failure, Group, groups)
{
    kit::drained_context io;
    Group group(io);
    group.spawn(forever);
    group.spawn(forever);
    BOOST_TEST(kit::poll_leaves_work(io));
    group.cancel();
    BOOST_TEST(!group.is_closed());
    std::string text;
    asio::co_spawn(io, join(group, text), asio::detached);
    kit::run(io);
    BOOST_TEST(text == "none");
    BOOST_TEST(group.stats().cancelled == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_child_that_ignores_its_cancellation_is_awaited, Group, groups)
{
    kit::drained_context io;
    Group group(io);
    asio::steady_timer timer(io, asio::steady_timer::time_point::max());
    group.spawn([&]() -> asio::awaitable<void> {
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        error_code ec;
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    });
    kit::poll_leaves_work(io);
    group.cancel();
    kit::completion joined;
    group.async_join(joined.handler([] {}));
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(!joined.done());
    timer.cancel();
    kit::run(io);
    BOOST_TEST(joined.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(above_the_limit_a_spawn_is_rejected_and_not_moved_from, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.limit = 1});
    group.spawn(forever);
    auto value = std::make_unique<int>(1);
    auto op = [v = std::move(value)]() -> asio::awaitable<void> { co_return; };
    error_code ec;
    group.spawn(std::move(op), ec);
    BOOST_TEST((ec == ts::errc::rejected));
    BOOST_TEST(!group.try_spawn(std::move(op)));
    BOOST_CHECK_THROW(group.spawn(std::move(op)), ts::system_error);
    group.close();
    group.spawn(std::move(op), ec);
    BOOST_TEST((ec == ts::errc::closed));
    group.spawn_when_free(std::move(op), "", ec);
    BOOST_TEST((ec == ts::errc::closed));
    BOOST_TEST(group.stats().spawned == 1U);
    group.cancel();
    kit::run(io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(queued_children_start_as_places_get_free, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.limit = 2});
    std::size_t running = 0;
    std::size_t most = 0;
    for (int i = 0; i != 100; ++i) {
        group.spawn_when_free([&]() -> asio::awaitable<void> {
            most = std::max(most, ++running);
            co_await asio::post(io, asio::use_awaitable);
            --running;
        });
    }
    std::string text;
    asio::co_spawn(io, join(group, text), asio::detached);
    kit::run(io);
    BOOST_TEST(text == "none");
    BOOST_TEST(most == 2U);
    BOOST_TEST(group.stats().succeeded == 100U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(async_spawn_waits_for_a_place, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.limit = 1});
    asio::steady_timer timer(io, asio::steady_timer::time_point::max());
    group.spawn([&]() -> asio::awaitable<void> {
        error_code ec;
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    });
    bool cancelled_ran = false;
    bool ran = false;
    kit::completion cancelled;
    kit::completion placed;
    asio::cancellation_signal signal;
    const auto note = [](bool& flag) {
        return [&flag]() -> asio::awaitable<void> {
            flag = true;
            co_return;
        };
    };
    group.async_spawn(note(cancelled_ran),
                      asio::bind_cancellation_slot(signal.slot(), cancelled.handler([] {})));
    group.async_spawn(note(ran), placed.handler([] {}));
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(!placed.done());
    signal.emit(asio::cancellation_type::total);
    timer.cancel();
    kit::run(io);
    BOOST_TEST(cancelled.aborted());
    BOOST_TEST(placed.succeeded());
    BOOST_TEST(!cancelled_ran);
    BOOST_TEST(ran);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(close_refuses_waiting_spawns, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.limit = 1});
    group.spawn(forever);
    kit::completion placed;
    group.async_spawn(nothing, placed.handler([] {}));
    kit::poll_leaves_work(io);
    BOOST_TEST(group.waiting() == 1U);
    group.close();
    kit::poll_leaves_work(io);
    BOOST_TEST((placed.error() == ts::errc::closed));
    group.cancel();
    kit::run(io);
}

// The wait is granted when the first child ends, and its handler has not run yet.
template <class Group>
void grant_async_spawn(asio::io_context& io, Group& group, kit::completion& placed)
{
    asio::steady_timer timer(io, asio::steady_timer::time_point::max());
    group.spawn([&]() -> asio::awaitable<void> {
        error_code ec;
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    });
    group.async_spawn(forever, placed.handler([] {}));
    kit::poll_leaves_work(io);
    timer.cancel();
    while (group.stats().running != 0)
        io.poll_one();
    BOOST_TEST(group.waiting() == 0U);
    BOOST_TEST(!placed.done());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_reaches_the_child_of_a_granted_async_spawn, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.limit = 1});
    kit::completion placed;
    grant_async_spawn(io, group, placed);
    group.cancel();
    kit::completion joined;
    group.async_join(joined.handler([] {}));
    kit::run(io);
    BOOST_TEST(placed.succeeded());
    BOOST_TEST(joined.succeeded());
    BOOST_TEST(group.stats().cancelled == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancellation_before_the_grant_does_not_reach_the_child, Group,
                              groups)
{
    kit::drained_context io;
    Group group(io, {.limit = 1});
    group.cancel();
    kit::completion placed;
    grant_async_spawn(io, group, placed);
    kit::poll_leaves_work(io);
    BOOST_TEST(placed.succeeded());
    BOOST_TEST(group.stats().running == 1U);
    group.cancel();
    kit::run(io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failure_reaches_the_child_of_a_granted_async_spawn, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.limit = 2});
    asio::steady_timer timer(io, asio::steady_timer::time_point::max());
    const auto child = [&](bool fails) -> asio::awaitable<void> {
        error_code ec;
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
        if (fails)
            throw std::runtime_error("child");
    };
    group.spawn(child(false)); // its end grants the wait
    group.spawn(child(true));  // ends before the handler of the wait runs
    kit::completion placed;
    kit::completion joined;
    group.async_spawn(forever, placed.handler([] {}));
    kit::poll_leaves_work(io);
    timer.cancel();
    kit::poll_leaves_work(io);
    group.async_join(joined.handler([] {}));
    kit::run(io);
    BOOST_TEST(joined.done());
    BOOST_TEST(group.stats().failed == 1U);
    BOOST_TEST(group.stats().running == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_child_spawns_into_its_own_group_under_a_limit, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.limit = 1});
    int depth = 0;
    std::function<asio::awaitable<void>()> nested = [&]() -> asio::awaitable<void> {
        if (++depth != 1000)
            group.spawn_when_free(nested);
        co_return;
    };
    group.spawn(nested);
    kit::run(io);
    BOOST_TEST(depth == 1000);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_a_join_ends_the_wait_only, Group, groups)
{
    kit::drained_context io;
    Group group(io);
    group.spawn(forever);
    kit::completion joined;
    asio::cancellation_signal signal;
    group.async_join(asio::bind_cancellation_slot(signal.slot(), joined.handler([] {})));
    kit::poll_leaves_work(io);
    signal.emit(asio::cancellation_type::terminal);
    kit::poll_leaves_work(io);
    BOOST_TEST(joined.aborted());
    BOOST_TEST(group.stats().running == 1U);
    BOOST_TEST(group.is_closed());
    group.cancel();
    kit::run(io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(children_lists_the_names_of_those_that_run, Group, groups)
{
    kit::drained_context io;
    Group group(io);
    group.spawn(forever, "reader");
    group.spawn(nothing, "short");
    group.spawn(forever, "writer");
    kit::poll_leaves_work(io);
    const auto all = group.children();
    BOOST_TEST_REQUIRE(all.size() == 2U);
    BOOST_TEST(all[0].name == "reader");
    BOOST_TEST(all[1].name == "writer");
    BOOST_TEST(all[1].id == 3U);
    group.cancel();
    kit::run(io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_destroyed_group_cancels_its_children, Group, groups)
{
    kit::drained_context io;
    auto group = std::make_unique<Group>(io);
    auto token = std::make_shared<int>(0);
    group->spawn([token]() -> asio::awaitable<void> { co_await forever(); });
    kit::poll_leaves_work(io);
    group->cancel(); // without it the destructor asserts
    group.reset();
    BOOST_TEST(token.use_count() == 2);
    kit::run(io);
    BOOST_TEST(token.use_count() == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_destroyed_context_frees_children_that_run_or_wait, Group, groups)
{
    auto token = std::make_shared<int>(0);
    {
        asio::io_context io;
        auto group = std::make_shared<Group>(io, ts::task_group_options{.limit = 1});
        const auto child = [token, group]() -> asio::awaitable<void> { co_await forever(); };
        group->spawn(child);
        group->spawn_when_free(child);
        group->async_spawn(child, asio::detached);
        group->async_join([token](error_code) { BOOST_ERROR("called"); });
        kit::poll_leaves_work(io);
    }
    BOOST_TEST(token.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_limit_of_zero_is_refused)
{
    asio::io_context io;
    BOOST_CHECK_EXCEPTION(
        ts::task_group<>(io, {.limit = 0}), ts::system_error, [](const ts::system_error& e) {
            return e.code() == ts::errc::invalid_argument &&
                   std::string(e.what()).find("limit must not be 0") != std::string::npos;
        });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_stopped_context_destroys_a_handler_that_owns_a_group, Group, groups)
{
    asio::io_context io;
    auto group = std::make_shared<Group>(io);
    group->spawn(forever);
    // The service of the timers is newer than that of the group, and is shut down before it.
    auto timer = std::make_shared<asio::steady_timer>(io, asio::steady_timer::time_point::max());
    timer->async_wait([group, timer](error_code) {});
    io.poll();
    io.stop();
    group.reset();
    BOOST_TEST(timer.use_count() == 2);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
