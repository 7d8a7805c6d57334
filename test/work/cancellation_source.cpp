// SPDX-License-Identifier: BSL-1.0
#include "kit/manual_clock.hpp"

#include <turnstile/channel/queue.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/work/cancellation_source.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using namespace std::chrono_literals;
using ts::error_code;

BOOST_AUTO_TEST_SUITE(cancellation_source_)

BOOST_AUTO_TEST_CASE(one_call_cancels_all_bound_operations)
{
    asio::io_context io;
    ts::cancellation_source stop(io);
    ts::event never(io);
    asio::steady_timer timer(io, 1h);
    int aborted = 0;
    const auto count = [&](error_code ec) { aborted += ec == asio::error::operation_aborted; };
    never.async_wait(stop.bind(count));
    timer.async_wait(stop.bind(count));
    bool ended = false;
    const auto waits = [&]() -> asio::awaitable<void> {
        co_await never.async_wait(asio::use_awaitable);
        BOOST_ERROR("not cancelled");
    };
    asio::co_spawn(io, waits, stop.bind([&](std::exception_ptr e) { ended = e != nullptr; }));
    io.poll();
    BOOST_TEST(aborted == 0);
    BOOST_TEST(!stop.is_cancelled());
    stop.cancel();
    BOOST_TEST(stop.is_cancelled());
    BOOST_TEST(aborted == 0); // no handler runs inside cancel()
    io.run();
    BOOST_TEST(aborted == 2);
    BOOST_TEST(ended);
}

BOOST_AUTO_TEST_CASE(an_operation_that_has_completed_is_not_touched)
{
    asio::io_context io;
    ts::cancellation_source stop(io);
    ts::queue<int> q(io, 1);
    BOOST_TEST(q.try_push(1));
    int got = 0;
    q.async_pop(stop.bind([&](error_code ec, int value) { got = ec ? -1 : value; }));
    io.run();
    BOOST_TEST(got == 1);
    stop.cancel();
    io.restart();
    io.run();
}

BOOST_AUTO_TEST_CASE(an_operation_on_a_cancelled_source_does_not_start)
{
    asio::io_context io;
    ts::cancellation_source stop(io);
    stop.cancel();
    bool started = false;
    const auto op = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [&](auto) { started = true; }, token);
    };
    error_code seen;
    op(stop.bind([&](error_code ec) { seen = ec; }));
    BOOST_TEST(!seen); // posted
    bool ran = false;
    std::exception_ptr thrown;
    const auto never_runs = [&]() -> asio::awaitable<void> {
        ran = true;
        co_return;
    };
    asio::co_spawn(io, never_runs, stop.bind([&](std::exception_ptr e) { thrown = e; }));
    io.run();
    BOOST_TEST(!started);
    BOOST_TEST(!ran);
    BOOST_TEST((seen == asio::error::operation_aborted));
    BOOST_TEST((thrown != nullptr));
}

BOOST_AUTO_TEST_CASE(the_operations_own_slot_still_works)
{
    asio::io_context io;
    ts::cancellation_source stop(io);
    ts::event never(io);
    asio::cancellation_signal own;
    error_code seen;
    never.async_wait(
        stop.bind(asio::bind_cancellation_slot(own.slot(), [&](error_code ec) { seen = ec; })));
    io.poll();
    own.emit(asio::cancellation_type::total);
    io.run();
    BOOST_TEST((seen == asio::error::operation_aborted));
    BOOST_TEST(!stop.is_cancelled());
    own.emit(asio::cancellation_type::terminal); // late: does nothing
    stop.cancel();
}

BOOST_AUTO_TEST_CASE(the_type_is_passed_on)
{
    for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                            asio::cancellation_type::total}) {
        asio::io_context io;
        ts::cancellation_source stop(io);
        asio::cancellation_type_t seen = asio::cancellation_type::none;
        const auto op = [&](auto token) {
            return asio::async_initiate<decltype(token), void(error_code)>(
                [&](auto handler) {
                    auto slot = asio::get_associated_cancellation_slot(handler);
                    auto kept = std::make_shared<decltype(handler)>(std::move(handler));
                    slot.assign([&seen, kept](asio::cancellation_type_t t) {
                        seen = t;
                        std::move (*kept)(error_code(asio::error::operation_aborted));
                    });
                },
                token);
        };
        int called = 0;
        op(stop.bind([&](error_code) { ++called; }));
        stop.cancel(type);
        io.run();
        BOOST_TEST(called == 1);
        BOOST_TEST((seen == type));
    }
}

BOOST_AUTO_TEST_CASE(none_is_no_cancellation)
{
    asio::io_context io;
    ts::cancellation_source stop(io);
    stop.cancel(asio::cancellation_type::none);
    BOOST_TEST(!stop.is_cancelled());
}

BOOST_AUTO_TEST_CASE(a_hundred_thousand_operations_are_cancelled_in_one_call)
{
    asio::io_context io;
    ts::cancellation_source stop(io);
    ts::event never(io);
    constexpr int n = 100'000;
    int aborted = 0;
    for (int i = 0; i != n; ++i)
        never.async_wait(stop.bind([&](error_code ec) { aborted += ec ? 1 : 0; }));
    stop.cancel();
    io.run();
    BOOST_TEST(aborted == n);
}

BOOST_AUTO_TEST_CASE(each_operation_is_cancelled_on_its_own_executor)
{
    asio::io_context a;
    asio::io_context b;
    ts::cancellation_source stop(a);
    std::string log;
    const auto op = [&](asio::io_context& where, char name, auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [&, name](auto handler) {
                auto slot = asio::get_associated_cancellation_slot(handler);
                auto kept = std::make_shared<decltype(handler)>(std::move(handler));
                slot.assign([&log, &where, name, kept](asio::cancellation_type_t) {
                    BOOST_TEST(where.get_executor().running_in_this_thread());
                    log += name;
                    std::move (*kept)(error_code());
                });
            },
            token);
    };
    op(a, 'a', stop.bind(asio::bind_executor(a, [](error_code) {})));
    op(b, 'b', stop.bind(asio::bind_executor(b, [](error_code) {})));
    stop.cancel();
    BOOST_TEST(log.empty());
    b.run();
    BOOST_TEST(log == "b");
    a.run();
    BOOST_TEST(log == "ba");
}

BOOST_AUTO_TEST_CASE(children_are_cancelled_with_their_parent_and_not_the_reverse)
{
    asio::io_context io;
    ts::cancellation_source parent(io);
    ts::cancellation_source child = parent.child();
    ts::cancellation_source sibling = parent.child();
    ts::cancellation_source grandchild = child.child();
    int cancelled = 0;
    grandchild.async_wait([&](error_code ec) { cancelled += ec ? 0 : 1; });
    sibling.async_wait([&](error_code ec) { cancelled += ec ? 0 : 1; });
    child.cancel();
    io.poll();
    BOOST_TEST(cancelled == 1);
    BOOST_TEST(grandchild.is_cancelled());
    BOOST_TEST(!parent.is_cancelled());
    BOOST_TEST(!sibling.is_cancelled());
    parent.cancel();
    io.run();
    BOOST_TEST(cancelled == 2);
    BOOST_TEST(parent.child().is_cancelled());
}

BOOST_AUTO_TEST_CASE(a_deep_tree_is_cancelled_without_recursion)
{
    asio::io_context io;
    std::vector<std::unique_ptr<ts::cancellation_source>> chain;
    chain.push_back(std::make_unique<ts::cancellation_source>(io));
    for (int i = 0; i != 20'000; ++i)
        chain.emplace_back(new ts::cancellation_source(chain.back()->child()));
    chain.front()->cancel();
    BOOST_TEST(chain.back()->is_cancelled());
    while (!chain.empty())
        chain.erase(chain.begin()); // from the top, so the last one frees the whole chain
}

BOOST_AUTO_TEST_CASE(a_child_may_outlive_its_parent)
{
    asio::io_context io;
    std::optional<ts::cancellation_source> parent(std::in_place, io);
    ts::cancellation_source child = parent->child();
    parent.reset();
    BOOST_TEST(!child.is_cancelled());
    child.cancel();
    BOOST_TEST(child.is_cancelled());
}

BOOST_AUTO_TEST_CASE(operations_continue_when_their_source_is_destroyed)
{
    asio::io_context io;
    std::optional<ts::cancellation_source> stop(std::in_place, io);
    ts::event set(io);
    error_code seen = asio::error::eof;
    set.async_wait(stop->bind([&](error_code ec) { seen = ec; }));
    auto token = stop->bind([&](error_code) {});
    stop.reset();
    set.async_wait(std::move(token)); // also a token that was made before
    set.set();
    io.run();
    BOOST_TEST(!seen);
}

BOOST_AUTO_TEST_CASE(destroying_a_source_aborts_its_waiters)
{
    asio::io_context io;
    std::optional<ts::cancellation_source> stop(std::in_place, io);
    error_code seen;
    stop->async_wait([&](error_code ec) { seen = ec; });
    stop.reset();
    io.run();
    BOOST_TEST((seen == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(destroying_the_context_destroys_bound_handlers)
{
    const auto owned = std::make_shared<int>(0);
    for (const bool cancelled : {false, true}) {
        std::optional<asio::io_context> io(std::in_place);
        ts::cancellation_source stop(*io);
        ts::event never(*io);
        never.async_wait(stop.bind([owned](error_code) { BOOST_ERROR("called"); }));
        if (cancelled)
            stop.cancel();
        io.reset();
        BOOST_TEST(owned.use_count() == 1);
    }
}

BOOST_AUTO_TEST_CASE(every_token)
{
    asio::io_context io;
    ts::cancellation_source stop(io);
    ts::event never(io);
    asio::steady_timer timer(io, 1h);
    auto future = never.async_wait(stop.bind(asio::use_future));
    auto deferred = never.async_wait(stop.bind(asio::deferred));
    int ended = 0;
    std::move(deferred)([&](error_code ec) { ended += ec ? 1 : 0; });
    never.async_wait(stop.bind(asio::detached));
    const auto coroutine = [&]() -> asio::awaitable<void> {
        auto [ec] = co_await timer.async_wait(stop.bind(asio::as_tuple(asio::use_awaitable)));
        BOOST_TEST((ec == asio::error::operation_aborted));
        error_code redirected;
        co_await never.async_wait(stop.bind(asio::redirect_error(asio::use_awaitable, redirected)));
        BOOST_TEST((redirected == asio::error::operation_aborted));
        BOOST_CHECK_THROW(co_await timer.async_wait(stop.bind()), ts::system_error);
        ++ended;
    };
    asio::co_spawn(io, coroutine, asio::detached);
    io.poll();
    stop.cancel();
    io.run();
    BOOST_TEST(ended == 2);
    BOOST_CHECK_THROW(future.get(), ts::system_error);
}

BOOST_AUTO_TEST_CASE(cancelling_at_any_step_loses_nothing)
{
    bool completed_before = false;
    for (int k = 0; !completed_before; ++k) {
        asio::io_context io;
        ts::cancellation_source stop(io);
        ts::queue<int> q(io, 2);
        int calls = 0;
        std::size_t taken = 0;
        asio::post(io, [&] {
            q.async_pop(stop.bind([&](error_code ec, int) {
                ++calls;
                taken = ec ? 0 : 1;
            }));
        });
        asio::post(io, [&] { BOOST_TEST(q.try_push(1)); });
        int steps = 0;
        while (steps != k && io.poll_one() != 0)
            ++steps;
        completed_before = steps != k;
        stop.cancel();
        io.restart();
        io.run();
        BOOST_TEST(calls == 1);
        BOOST_TEST(q.size() + taken == 1u);
    }
}

BOOST_AUTO_TEST_CASE(cancel_after_a_negative_delay_is_an_error_and_changes_nothing)
{
    asio::io_context io;
    ts::cancellation_source stop(io);
    BOOST_CHECK_EXCEPTION(stop.cancel_after(-1s), ts::system_error, [](const auto& e) {
        return e.code() == ts::errc::invalid_argument &&
               std::string(e.what()).find("delay") != std::string::npos;
    });
    BOOST_TEST(!stop.is_cancelled());
    BOOST_TEST(io.run() == 0u); // no timer
    stop.cancel_after(0s);
    BOOST_TEST(stop.is_cancelled());
}

BOOST_AUTO_TEST_CASE(cancel_after_cancels_when_its_time_has_come)
{
    kit::manual_clock::reset();
    asio::io_context io;
    ts::basic_cancellation_source<asio::any_io_executor, ts::thread_safe, kit::manual_clock> stop(
        io);
    stop.cancel_after(10s);
    stop.cancel_after(20s); // replaces the first
    kit::manual_clock::advance(io, 20s - 1ns);
    BOOST_TEST(!stop.is_cancelled());
    kit::manual_clock::advance(io, 1ns);
    BOOST_TEST(stop.is_cancelled());
    BOOST_TEST(io.stopped()); // no timer is left
}

BOOST_AUTO_TEST_CASE(cancel_after_adds_a_type_to_a_cancellation)
{
    for (const bool deadline_first : {false, true}) {
        kit::manual_clock::reset();
        asio::io_context io;
        ts::basic_cancellation_source<asio::any_io_executor, ts::thread_safe, kit::manual_clock>
            stop(io);
        ts::event never(io);
        bool waited = false;
        bool ended = false;
        stop.async_wait([&](error_code ec) { waited = !ec; });
        // co_spawn passes on terminal only.
        asio::co_spawn(io, never.async_wait(asio::use_awaitable),
                       stop.bind([&](std::exception_ptr) { ended = true; }));
        if (deadline_first)
            stop.cancel_after(10s);
        stop.cancel(asio::cancellation_type::total);
        if (!deadline_first)
            stop.cancel_after(10s);
        kit::manual_clock::advance(io, 10s - 1ns);
        BOOST_TEST(waited);
        BOOST_TEST(!ended);
        kit::manual_clock::advance(io, 1ns);
        BOOST_TEST(ended);
        BOOST_TEST(io.stopped());
        stop.cancel_after(10s); // has nothing to add, and no timer
        io.restart();
        BOOST_TEST(io.run() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_local_source_works_on_one_strand)
{
    asio::io_context io;
    ts::local::cancellation_source stop(io);
    ts::local::event never(io);
    error_code seen;
    never.async_wait(stop.bind([&](error_code ec) { seen = ec; }));
    ts::local::cancellation_source child = stop.child();
    asio::post(io, [&] { stop.cancel(); });
    io.run();
    BOOST_TEST((seen == asio::error::operation_aborted));
    BOOST_TEST(child.is_cancelled());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
