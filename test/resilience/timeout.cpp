// SPDX-License-Identifier: BSL-1.0
#include "kit/call_fixture.hpp"
#include "kit/failing_allocator.hpp"
#include "kit/mindful.hpp"

#include <turnstile/core/error.hpp>
#include <turnstile/resilience/timeout.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>

#include <boost/asio.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#if TURNSTILE_TEST_HAS_CONTEXT
#    include <boost/asio/spawn.hpp>
#endif
#include <boost/test/unit_test.hpp>

#include <array>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <type_traits>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::completion;
using kit::manual_clock;
using turnstile::errc;
using turnstile::error_code;
using turnstile::nanoseconds;

template <class Token>
auto after(nanoseconds limit, Token&& token)
{
    return turnstile::timeout_after<manual_clock>(limit, std::forward<Token>(token));
}

constexpr auto terminal = asio::cancellation_type::terminal;
constexpr auto total = asio::cancellation_type::total;

struct fixture : kit::call_fixture {
    void start(nanoseconds limit = 10s)
    {
        start_with([&](auto op, auto handler) { op(after(limit, std::move(handler))); });
    }
};

BOOST_FIXTURE_TEST_SUITE(timeout, fixture)

// The handler may own the object that the result refers to.
BOOST_AUTO_TEST_CASE(a_result_goes_before_its_handler)
{
    bool over = false;
    auto last = kit::last_breath(over);
    const auto op = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, kit::mindful)>(
            [&](auto handler) {
                asio::post(io, [&over, h = std::move(handler)]() mutable {
                    std::move(h)(error_code(), kit::mindful(over));
                });
            },
            token);
    };
    turnstile::async_with_timeout<manual_clock>(
        io.get_executor(), 10s, op, [last = std::move(last)](error_code, const kit::mindful& got) {
            BOOST_TEST((static_cast<bool>(got)));
        });
    kit::run(io);
    BOOST_TEST(over);
}

// --- Order of events.

BOOST_AUTO_TEST_CASE(an_operation_that_is_in_time_passes_through)
{
    start();
    advance(10s - 1ns);
    operation.succeed(0, 7);
    kit::run(io); // without waiting for the timer
    BOOST_TEST(done.succeeded());
    BOOST_TEST(value == 7);
    BOOST_TEST(!operation.was_cancelled(0));
}

BOOST_AUTO_TEST_CASE(a_failure_in_time_passes_through_as_it_is)
{
    start();
    operation.fail(0, asio::error::connection_refused);
    kit::run(io);
    BOOST_TEST(done.error() == asio::error::connection_refused);
}

BOOST_AUTO_TEST_CASE(an_operation_that_takes_too_long_is_cancelled_and_has_timed_out)
{
    start();
    advance(10s - 1ns);
    BOOST_TEST(!done.done());
    advance(1ns);
    BOOST_TEST(operation.was_cancelled(0));
    BOOST_TEST(done.error() == errc::timed_out);
}

BOOST_AUTO_TEST_CASE(the_callers_cancellation_is_not_a_timeout)
{
    start();
    signal.emit(total);
    kit::run(io);
    BOOST_TEST(done.aborted());
    BOOST_TEST((operation.cancelled(0) == total)); // passed on with its type
}

BOOST_AUTO_TEST_CASE(who_cancels_first_is_named)
{
    operation.ignore_cancellation();
    start();
    signal.emit(terminal);
    advance(10s);
    operation.fail(0, asio::error::operation_aborted);
    kit::run(io);
    BOOST_TEST(done.aborted());
}

BOOST_AUTO_TEST_CASE(a_cancellation_after_the_timeout_changes_nothing)
{
    operation.ignore_cancellation();
    start();
    advance(10s);
    signal.emit(terminal);
    operation.fail(0, asio::error::operation_aborted);
    kit::run(io);
    BOOST_TEST(done.error() == errc::timed_out);
}

BOOST_AUTO_TEST_CASE(an_operation_that_ignores_cancellation_is_awaited)
{
    operation.ignore_cancellation();
    start();
    advance(10s);
    BOOST_TEST(operation.was_cancelled(0));
    advance(1h);
    BOOST_TEST(!done.done());
    operation.fail(0, asio::error::operation_aborted);
    kit::run(io);
    BOOST_TEST(done.error() == errc::timed_out);
}

BOOST_AUTO_TEST_CASE(a_success_that_comes_in_spite_of_the_timeout_is_not_lost)
{
    operation.ignore_cancellation();
    start();
    advance(10s);
    operation.succeed(0, 7);
    kit::run(io);
    BOOST_TEST(done.succeeded());
    BOOST_TEST(value == 7);
}

BOOST_AUTO_TEST_CASE(another_failure_after_the_timeout_is_the_one_delivered)
{
    operation.ignore_cancellation();
    start();
    advance(10s);
    operation.fail(0, asio::error::connection_reset);
    kit::run(io);
    BOOST_TEST(done.error() == asio::error::connection_reset);
}

BOOST_AUTO_TEST_CASE(success_and_timeout_at_the_same_moment_give_success)
{
    start();
    operation.succeed(0, 7); // posted, not delivered
    advance(10s);
    BOOST_TEST(done.succeeded());
}

BOOST_AUTO_TEST_CASE(an_abort_that_nobody_asked_for_is_no_timeout)
{
    start();
    operation.fail(0, asio::error::operation_aborted);
    kit::run(io);
    BOOST_TEST(done.aborted());
}

// --- Durations.

BOOST_AUTO_TEST_CASE(no_time_at_all_cancels_at_once)
{
    for (nanoseconds limit : {nanoseconds(0), nanoseconds(-1), nanoseconds::min()}) {
        completion c;
        kit::scripted_operation op(io.get_executor());
        op(after(limit, c.handler([](int) {})));
        BOOST_TEST(op.started() == 1U);
        BOOST_TEST(!c.done());
        kit::run(io);
        BOOST_TEST(c.error() == errc::timed_out);
    }
}

BOOST_AUTO_TEST_CASE(no_time_at_all_takes_nothing)
{
    turnstile::mutex m(io);
    completion c;
    m.async_lock(turnstile::timeout_after(0s, c.handler([](auto) {})));
    kit::run(io);
    BOOST_TEST(c.done());
    BOOST_TEST((c.succeeded() || c.error() == errc::timed_out));
    BOOST_TEST(m.try_lock()); // the timed-out operation has not taken it
    m.unlock();
}

BOOST_AUTO_TEST_CASE(a_time_too_long_to_count_never_ends)
{
    operation(turnstile::timeout_after<manual_clock>(std::chrono::hours::max(),
                                                     done.handler([](int) {})));
    advance(24h * 365);
    BOOST_TEST(!done.done());
    operation.succeed(0, 1);
    kit::run(io);
    BOOST_TEST(done.succeeded());
}

BOOST_AUTO_TEST_CASE(a_point_in_time_is_a_limit_too)
{
    completion late;
    completion past;
    operation(turnstile::timeout_at(manual_clock::now() + 5s, late.handler([](int) {})));
    operation(turnstile::timeout_at(manual_clock::now() - 5s, past.handler([](int) {})));
    advance(0s);
    BOOST_TEST(past.error() == errc::timed_out);
    BOOST_TEST(!late.done());
    advance(5s);
    BOOST_TEST(late.error() == errc::timed_out);
}

BOOST_AUTO_TEST_CASE(a_point_in_time_may_be_in_larger_or_smaller_steps)
{
    using seconds_point = std::chrono::time_point<manual_clock, std::chrono::seconds>;
    using fine = std::chrono::duration<std::int64_t, std::pico>;
    using fine_point = std::chrono::time_point<manual_clock, fine>;
    completion never;
    completion ever;
    completion exact;
    operation(turnstile::timeout_at(seconds_point::max(), never.handler([](int) {})));
    operation(turnstile::timeout_at(seconds_point::min(), ever.handler([](int) {})));
    manual_clock::shift(-manual_clock::now().time_since_epoch()); // picoseconds are soon too many
    operation(turnstile::timeout_at(fine_point(fine(2001)), exact.handler([](int) {})));
    advance(0s);
    BOOST_TEST(ever.error() == errc::timed_out);
    advance(2ns);
    BOOST_TEST(!exact.done());
    advance(1ns);
    BOOST_TEST(exact.error() == errc::timed_out);
    advance(std::chrono::hours(24 * 365));
    BOOST_TEST(!never.done());
    operation.succeed(0, 1);
    kit::run(io);
    BOOST_TEST(never.succeeded());
}

BOOST_AUTO_TEST_CASE(the_time_counts_from_the_start_of_the_operation)
{
    auto deferred = operation(after(10s, asio::deferred));
    advance(1h);
    std::move(deferred)(done.handler([](int) {}));
    advance(10s - 1ns);
    BOOST_TEST(!done.done());
    advance(1ns);
    BOOST_TEST(done.error() == errc::timed_out);
}

// --- Tokens and signatures.

BOOST_AUTO_TEST_CASE(values_that_come_with_the_abort_are_kept)
{
    asio::readable_pipe in(io);
    asio::writable_pipe out(io);
    asio::connect_pipe(in, out);
    asio::write(out, asio::buffer("abc", 3));
    std::array<char, 10> buffer{};
    error_code error;
    std::size_t size = 0;
    asio::async_read(in, asio::buffer(buffer), after(10s, [&](error_code ec, std::size_t n) {
                         error = ec;
                         size = n;
                     }));
    kit::poll_leaves_work(io);
    advance(10s);
    kit::run(io);
    BOOST_TEST(error == errc::timed_out);
    BOOST_TEST(size == 3U);
}

BOOST_AUTO_TEST_CASE(the_signature_does_not_change)
{
    using deferred = decltype(operation(after(1s, asio::deferred)));
    static_assert(
        std::is_same_v<turnstile::operation_signature_t<deferred>, void(error_code, int)>);
    static_assert(turnstile::repeatable_operation<deferred>);
    auto future = operation(after(10s, asio::use_future));
    static_assert(std::is_same_v<decltype(future), std::future<int>>);
    kit::poll_leaves_work(io);
    operation.succeed(0, 5);
    kit::run(io);
    BOOST_TEST(future.get() == 5);
}

BOOST_AUTO_TEST_CASE(a_coroutine_gets_the_timeout_as_an_exception_or_a_value)
{
    int steps = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            BOOST_CHECK_EXCEPTION(co_await operation(after(10s, asio::use_awaitable)),
                                  turnstile::system_error,
                                  [](const auto& e) { return e.code() == errc::timed_out; });
            ++steps;
            auto [ec, n] = co_await operation(after(10s, asio::as_tuple(asio::use_awaitable)));
            BOOST_TEST(ec == errc::timed_out);
            ++steps;
            ec = {};
            co_await operation(after(10s, asio::redirect_error(asio::use_awaitable, ec)));
            BOOST_TEST(ec == errc::timed_out);
            ++steps;
        },
        asio::detached);
    for (int i = 0; i != 3; ++i) {
        kit::poll_leaves_work(io);
        advance(10s);
    }
    kit::run(io);
    BOOST_TEST(steps == 3);
}

BOOST_AUTO_TEST_CASE(a_type_erased_handler_works)
{
    asio::any_completion_handler<void(error_code, int)> handler = done.handler([](int) {});
    operation(after(10s, std::move(handler)));
    kit::poll_leaves_work(io);
    advance(10s);
    kit::run(io);
    BOOST_TEST(done.error() == errc::timed_out);
}

#if TURNSTILE_TEST_HAS_CONTEXT
BOOST_AUTO_TEST_CASE(a_stackful_coroutine_works)
{
    error_code error;
    asio::spawn(
        io, [&](asio::yield_context yield) { operation(after(10s, yield[error])); },
        asio::detached);
    kit::poll_leaves_work(io);
    advance(10s);
    BOOST_TEST(error == errc::timed_out);
}
#endif

BOOST_AUTO_TEST_CASE(it_works_inside_or_and_and)
{
    using namespace asio::experimental::awaitable_operators;
    turnstile::event never(io);
    bool timer_won = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            asio::steady_timer soon(io, 0s);
            auto result = co_await (never.async_wait(turnstile::timeout_after(1h)) ||
                                    soon.async_wait(asio::use_awaitable));
            timer_won = result.index() == 1;
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(timer_won);
}

BOOST_AUTO_TEST_CASE(timeouts_nest_and_the_inner_one_may_be_shorter)
{
    completion inner;
    completion outer;
    operation(after(10s, after(20s, inner.handler([](int) {}))));
    operation(after(20s, after(10s, outer.handler([](int) {}))));
    kit::poll_leaves_work(io);
    advance(10s);
    BOOST_TEST(inner.error() == errc::timed_out);
    BOOST_TEST(outer.error() == errc::timed_out);
}

// --- async_with_timeout, and the object.

asio::awaitable<int> wait_for(turnstile::event& e)
{
    co_await e.async_wait();
    co_return 5;
}

BOOST_AUTO_TEST_CASE(a_coroutine_is_an_operation)
{
    turnstile::event e(io);
    std::exception_ptr error;
    const auto limited = [&](auto handler) {
        turnstile::async_with_timeout<manual_clock>(
            io.get_executor(), 10s, [&] { return wait_for(e); }, std::move(handler));
        kit::poll_leaves_work(io);
    };
    limited([&](std::exception_ptr x, int v) {
        error = x;
        value = v;
    });
    e.set();
    kit::run(io);
    BOOST_TEST(!error);
    BOOST_TEST(value == 5);

    e.clear();
    limited([&](std::exception_ptr x, int) { error = x; });
    advance(10s);
    BOOST_TEST(turnstile::failure(error).code() == errc::timed_out);
}

BOOST_AUTO_TEST_CASE(a_coroutine_that_fails_differently_when_cancelled_says_so)
{
    turnstile::event e(io);
    std::exception_ptr error;
    turnstile::async_with_timeout<manual_clock>(
        io.get_executor(), 10s,
        [&]() -> asio::awaitable<void> {
            try {
                co_await e.async_wait();
            } catch (const turnstile::system_error&) {
                throw std::runtime_error("left in a hurry");
            }
        },
        [&](std::exception_ptr x) { error = x; });
    kit::poll_leaves_work(io);
    advance(10s);
    BOOST_CHECK_THROW(std::rethrow_exception(error), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(without_an_executor_it_takes_the_handlers_or_the_operations)
{
    completion plain;
    turnstile::event e(io);
    turnstile::async_with_timeout<manual_clock>(10s, e.async_wait(asio::deferred),
                                                plain.handler([] {}));
    bool timed_out = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            try {
                co_await turnstile::async_with_timeout<manual_clock>(10s,
                                                                     [&] { return wait_for(e); });
            } catch (const turnstile::system_error& x) {
                timed_out = x.code() == errc::timed_out;
            }
        },
        asio::detached);
    kit::poll_leaves_work(io);
    advance(10s);
    BOOST_TEST(plain.error() == errc::timed_out);
    BOOST_TEST(timed_out);
}

// As in Asio: there is no other executor.
BOOST_AUTO_TEST_CASE(where_neither_handler_nor_operation_has_an_executor_it_is_the_systems)
{
    const auto nowhere = [](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, int)>(
            [](auto handler) { handler(error_code(), 3); }, token);
    };
    const auto ran_on = std::make_shared<std::promise<std::thread::id>>();
    auto thread = ran_on->get_future();
    nowhere(after(nanoseconds::max(),
                  [ran_on](error_code, int) { ran_on->set_value(std::this_thread::get_id()); }));
    BOOST_TEST((thread.get() != std::this_thread::get_id()));
    turnstile::async_with_timeout<manual_clock>(io.get_executor(), 10s, nowhere,
                                                done.handler([&](int v) { value = v; }));
    BOOST_TEST(!done.done());
    kit::run(io);
    BOOST_TEST(value == 3);
}

BOOST_AUTO_TEST_CASE(what_the_initiation_throws_is_delivered)
{
    const auto throwing = [](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, int)>(
            [](auto) { throw turnstile::system_error(asio::error::access_denied); }, token);
    };
    throwing(after(10s, asio::bind_executor(io, done.handler([](int) {}))));
    BOOST_TEST(!done.done());
    kit::run(io);
    BOOST_TEST(done.error() == asio::error::access_denied);
}

BOOST_AUTO_TEST_CASE(an_operation_that_completes_inside_its_initiation_completes_later)
{
    const auto hasty = [](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, int)>(
            [](auto handler) { handler(error_code(), 3); }, token);
    };
    hasty(after(10s, asio::bind_executor(io, done.handler([&](int v) { value = v; }))));
    BOOST_TEST(!done.done());
    kit::run(io);
    BOOST_TEST(value == 3);
}

BOOST_AUTO_TEST_CASE(an_operation_that_completes_on_a_strange_thread_is_brought_home)
{
    auto strand = asio::make_strand(io);
    std::thread stranger;
    const auto foreign = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, int)>(
            [&](auto handler) {
                stranger = std::thread([h = std::move(handler)]() mutable { h(error_code(), 3); });
            },
            token);
    };
    bool at_home = false;
    foreign(after(10s, asio::bind_executor(strand, [&](error_code, int) {
                      at_home = strand.running_in_this_thread();
                  })));
    stranger.join();
    kit::run(io);
    BOOST_TEST(at_home);
}

// A coroutine must not be cancelled before its first step, which the initiating function has queued
// on the strand. Here the limit, or the cancellation, is queued there before it.
BOOST_AUTO_TEST_CASE(a_coroutine_that_is_cancelled_while_it_is_initiated_begins_first)
{
    auto strand = asio::make_strand(io);
    const auto aborted = make_error_code(asio::error::operation_aborted);
    for (const error_code expected : {make_error_code(errc::timed_out), aborted}) {
        bool begun = false;
        error_code result;
        const auto op = [&](auto token) {
            return asio::async_initiate<decltype(token), void(std::exception_ptr)>(
                [&](auto handler) {
                    if (expected == aborted) {
                        signal.emit(terminal);
                    } else {
                        manual_clock::shift(1s);
                        io.restart();
                        io.poll_one(); // the timer, which posts to the strand
                    }
                    const auto executor = asio::get_associated_executor(handler);
                    asio::co_spawn(
                        executor,
                        [&]() -> asio::awaitable<void> {
                            begun = true;
                            asio::steady_timer never(io, asio::steady_timer::time_point::max());
                            co_await never.async_wait(asio::use_awaitable);
                        },
                        std::move(handler));
                },
                token);
        };
        turnstile::async_with_timeout<manual_clock>(
            1s, op,
            asio::bind_cancellation_slot(
                signal.slot(), asio::bind_executor(strand, [&](std::exception_ptr thrown) {
                    try {
                        std::rethrow_exception(thrown);
                    } catch (const turnstile::system_error& e) {
                        result = e.code();
                    }
                })));
        kit::run(io);
        BOOST_TEST(begun);
        BOOST_TEST(result == expected);
    }
}

BOOST_AUTO_TEST_CASE(the_object_counts)
{
    turnstile::basic_timeout<asio::any_io_executor, manual_clock> limit(io.get_executor(), 10s);
    static_assert(turnstile::stage_for<decltype(limit), kit::scripted_operation>);
    completion late;
    limit.async_call(operation, done.handler([](int) {}));
    limit.async_call(operation, late.handler([](int) {}));
    kit::poll_leaves_work(io);
    operation.succeed(0, 1);
    kit::poll_leaves_work(io);
    advance(10s);
    BOOST_TEST(done.succeeded());
    BOOST_TEST(late.error() == errc::timed_out);
    BOOST_TEST(limit.stats().calls == 2U);
    BOOST_TEST(limit.stats().timed_out == 1U);
    BOOST_TEST((limit.limit() == 10s));
}

// --- Executor, memory and lifetime.

BOOST_AUTO_TEST_CASE(listeners_are_told_of_each_call_that_times_out)
{
    auto limit = std::make_unique<turnstile::basic_timeout<asio::any_io_executor, manual_clock>>(
        io.get_executor(), 10s);
    int told = 0;
    const turnstile::listener_id id = limit->add_listener([&](const turnstile::timeout_event& e) {
        BOOST_TEST((e.limit == 10s));
        told += static_cast<int>(limit->stats().timed_out);
    });
    const auto call = [&] { limit->async_call(operation, [](error_code, int) {}); };
    call();
    operation.succeed(0, 1);
    poll();
    BOOST_TEST(told == 0);
    call();
    advance(10s);
    BOOST_TEST(told == 1);
    BOOST_TEST(limit->remove_listener(id));
    call();
    advance(10s);
    BOOST_TEST(told == 1);
    limit->add_listener([&](const turnstile::timeout_event&) { ++told; });
    call();
    limit.reset(); // the call continues without listeners
    advance(10s);
    kit::run(io);
    BOOST_TEST(told == 1);
    BOOST_TEST(operation.running() == 0U);
}

BOOST_AUTO_TEST_CASE(the_handler_runs_on_its_executor)
{
    auto strand = asio::make_strand(io);
    bool in_strand = false;
    operation(after(10s, asio::bind_executor(strand, [&](error_code, int) {
                        in_strand = strand.running_in_this_thread();
                    })));
    kit::poll_leaves_work(io);
    operation.succeed(0, 1);
    kit::run(io);
    BOOST_TEST(in_strand);
}

BOOST_AUTO_TEST_CASE(all_memory_of_the_handler_is_free_when_it_is_called)
{
    kit::allocation_plan plan;
    std::optional<std::size_t> live;
    asio::steady_timer never(io, asio::steady_timer::time_point::max());
    never.async_wait(after(10s, asio::bind_allocator(kit::failing_allocator<char>(plan),
                                                     [&](error_code) { live = plan.live(); })));
    BOOST_TEST(plan.live() > 0U);
    kit::poll_leaves_work(io);
    advance(10s);
    BOOST_TEST((live == 0U));
}

BOOST_AUTO_TEST_CASE(without_memory_it_does_not_start)
{
    kit::allocation_plan plan;
    plan.fail = true;
    completion c(kit::dropping::is_expected);
    BOOST_CHECK_THROW(operation(after(10s, asio::bind_allocator(kit::failing_allocator<char>(plan),
                                                                c.handler([](int) {})))),
                      std::bad_alloc);
    BOOST_TEST(operation.started() == 0U);
    BOOST_TEST(c.dropped());
}

BOOST_AUTO_TEST_CASE(a_signal_may_be_emitted_late_or_be_gone)
{
    start();
    operation.succeed(0, 1);
    kit::run(io);
    signal.emit(terminal);
    kit::run(io);
    BOOST_TEST(done.succeeded());

    auto short_lived = std::make_unique<asio::cancellation_signal>();
    completion other;
    operation(
        after(10s, asio::bind_cancellation_slot(short_lived->slot(), other.handler([](int) {}))));
    short_lived.reset();
    operation.succeed(1, 1);
    kit::run(io);
    BOOST_TEST(other.succeeded());
}

BOOST_AUTO_TEST_CASE(a_context_that_is_destroyed_drops_the_handler)
{
    completion dropped(kit::dropping::is_expected);
    asio::cancellation_signal late;
    {
        asio::io_context other;
        turnstile::event never(other);
        never.async_wait(
            after(10s, asio::bind_cancellation_slot(late.slot(), dropped.handler([] {}))));
        other.poll();
    }
    BOOST_TEST(dropped.dropped());
    late.emit(terminal);
}

BOOST_AUTO_TEST_CASE(an_operation_that_drops_its_handler_leaves_no_timer_behind)
{
    completion dropped(kit::dropping::is_expected);
    {
        kit::scripted_operation gone(io.get_executor());
        gone(after(10s, dropped.handler([](int) {})));
        kit::poll_leaves_work(io);
        BOOST_TEST(!dropped.dropped());
    }
    kit::run(io); // without waiting for ten seconds
    BOOST_TEST(dropped.dropped());
}

BOOST_AUTO_TEST_CASE(a_handler_that_throws_breaks_nothing)
{
    operation(after(10s, [](error_code, int) { throw std::runtime_error("thrown"); }));
    kit::poll_leaves_work(io);
    operation.succeed(0, 1);
    BOOST_CHECK_THROW(kit::run(io), std::runtime_error);
    kit::run(io);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
