// SPDX-License-Identifier: BSL-1.0
#include "kit/run.hpp"

#include <turnstile/work/scope.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;

int ended = 0;

asio::awaitable<void> forever()
{
    struct count {
        ~count() { ++ended; }
    } at_end;
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_at(asio::steady_timer::time_point::max());
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> brief()
{
    co_await asio::post(asio::use_awaitable);
    ++ended;
}

asio::awaitable<void> failing()
{
    throw std::runtime_error("child");
    co_return;
}

// Runs the coroutine, and returns the text of its exception, or "none".
std::string outcome(asio::io_context& io, asio::awaitable<void> a)
{
    std::string text = "not ended";
    asio::co_spawn(io, std::move(a), [&](std::exception_ptr e) {
        try {
            text = "none";
            if (e)
                std::rethrow_exception(e);
        } catch (const ts::multiple_errors& errors) {
            text = std::to_string(errors.errors().size()) + " errors";
        } catch (const std::exception& thrown) {
            text = thrown.what();
        }
    });
    kit::run(io);
    return text;
}

BOOST_AUTO_TEST_SUITE(scope)

BOOST_AUTO_TEST_CASE(a_scope_returns_after_its_children_have_ended)
{
    ended = 0;
    kit::drained_context io;
    auto counted = std::make_shared<int>(7);
    int total = 0;
    const auto temporary = [](int& t) -> asio::awaitable<void> {
        t = co_await ts::async_scope([&](ts::task_group<>& g) -> asio::awaitable<int> {
            g.spawn(brief);
            g.spawn(brief);
            co_return 2;
        });
        BOOST_TEST(ended == 2);
    };
    const auto text = outcome(io, temporary(total));
    BOOST_TEST(text == "none");
    BOOST_TEST(total == 2);
    {
        auto owning = [counted](ts::task_group<>&) -> asio::awaitable<void> { co_return; };
        BOOST_TEST(outcome(io, ts::async_scope(std::move(owning))) == "none");
    }
    BOOST_TEST(counted.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_throwing_body_cancels_and_awaits_the_children)
{
    ended = 0;
    kit::drained_context io;
    const auto body = [](ts::task_group<>& g) -> asio::awaitable<void> {
        g.spawn(forever);
        co_await asio::post(asio::use_awaitable);
        throw std::runtime_error("body");
    };
    BOOST_TEST(outcome(io, ts::async_scope(body)) == "body");
    BOOST_TEST(ended == 1);
}

BOOST_AUTO_TEST_CASE(a_failing_child_cancels_the_body)
{
    ended = 0;
    kit::drained_context io;
    const auto body = [](ts::task_group<>& g) -> asio::awaitable<void> {
        g.spawn(failing);
        co_await forever();
    };
    BOOST_TEST(outcome(io, ts::async_scope(body)) == "child");
    BOOST_TEST(ended == 1);
}

BOOST_AUTO_TEST_CASE(the_exceptions_of_the_body_and_of_a_child_are_reported)
{
    kit::drained_context io;
    const auto body = [](ts::task_group<>& g) -> asio::awaitable<void> {
        g.spawn(failing);
        throw std::runtime_error("body");
        co_return;
    };
    BOOST_TEST(outcome(io, ts::async_scope(body, {.policy = ts::join_policy::wait_all})) ==
               "2 errors");
}

BOOST_AUTO_TEST_CASE(the_parents_cancellation_reaches_body_and_children)
{
    ended = 0;
    kit::drained_context io;
    asio::cancellation_signal signal;
    std::exception_ptr thrown;
    bool done = false;
    const auto body = [](ts::task_group<>& g) -> asio::awaitable<void> {
        g.spawn(forever);
        const auto inner = [](ts::task_group<>& nested) -> asio::awaitable<void> {
            nested.spawn(forever);
            co_return;
        };
        co_await ts::async_scope(inner);
    };
    asio::co_spawn(io, ts::async_scope(body),
                   asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) {
                       done = true;
                       thrown = e;
                       BOOST_TEST(ended == 2);
                   }));
    kit::poll_leaves_work(io);
    BOOST_TEST(!done);
    signal.emit(asio::cancellation_type::terminal);
    kit::run(io);
    BOOST_TEST(done);
    BOOST_TEST(ts::failure(thrown).is_cancelled());
}

BOOST_AUTO_TEST_CASE(a_scope_with_a_bad_option_changes_nothing_in_its_caller)
{
    kit::drained_context io;
    bool throws = false;
    const auto body = [](ts::task_group<>&) -> asio::awaitable<void> { co_return; };
    const auto caller = [&]() -> asio::awaitable<void> {
        try {
            co_await ts::async_scope(body, {.limit = 0});
        } catch (const ts::system_error& e) {
            BOOST_TEST((e.code() == ts::errc::invalid_argument));
        }
        throws = co_await asio::this_coro::throw_if_cancelled();
    };
    BOOST_TEST(outcome(io, caller()) == "none");
    BOOST_TEST(throws);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
