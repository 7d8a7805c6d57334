// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/circuit_breaker.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::completion;
using kit::manual_clock;
using turnstile::call_outcome;
using turnstile::circuit_breaker_event;
using turnstile::circuit_breaker_options;
using turnstile::circuit_state;
using turnstile::errc;
using turnstile::error_code;

template <class Threading>
using breaker_of = turnstile::basic_circuit_breaker<asio::any_io_executor, Threading, manual_clock>;

static_assert(!std::is_move_constructible_v<turnstile::circuit_breaker>);
static_assert(std::is_nothrow_move_constructible_v<turnstile::circuit_breaker::permit_type>);
static_assert(!std::is_copy_constructible_v<turnstile::circuit_breaker::permit_type>);

circuit_breaker_options three_in_a_row()
{
    return {.window = turnstile::consecutive_failures{3}, .open_for = 50ms};
}

constexpr char letter(circuit_state state) { return "coh"[static_cast<int>(state)]; }

// An operation that the test completes, with an error and a number.
class service {
public:
    auto call()
    {
        return asio::async_initiate<const asio::deferred_t, void(error_code, int)>(
            [this](auto handler) {
                ++started;
                if (throws)
                    throw std::runtime_error("cannot start");
                using handler_type = decltype(handler);
                pending_.push_back([h = std::make_shared<handler_type>(std::move(handler))](
                                       error_code ec, int n) { (*h)(ec, n); });
            },
            asio::deferred);
    }
    void end(error_code ec = {}, int n = 0)
    {
        auto next = std::move(pending_.front());
        pending_.erase(pending_.begin());
        next(ec, n);
    }
    void drop() { pending_.clear(); }

    int started = 0;
    bool throws = false;

private:
    std::vector<std::function<void(error_code, int)>> pending_;
};

template <class Threading>
struct fixture {
    explicit fixture(const circuit_breaker_options& options = three_in_a_row())
        : breaker(io, options)
    {
        breaker.add_listener([this](const circuit_breaker_event& c) {
            log += letter(c.from);
            log += letter(c.to);
            log += ' ';
        });
    }

    // Calls the service, which answers at once, and returns the result.
    error_code call(error_code ec = {}, int n = 0)
    {
        error_code result;
        const int before = backend.started;
        breaker.async_call(backend.call(), [&](error_code e, int) { result = e; });
        if (backend.started != before)
            backend.end(ec, n);
        io.restart();
        io.poll();
        return result;
    }
    void fail(int times)
    {
        for (int i = 0; i != times; ++i)
            BOOST_TEST((call(asio::error::connection_reset) == asio::error::connection_reset));
    }
    void pass(manual_clock::duration by) { manual_clock::shift(by); }

    kit::drained_context io;
    breaker_of<Threading> breaker;
    service backend;
    std::string log;
};

BOOST_AUTO_TEST_SUITE(circuit_breaker)

BOOST_AUTO_TEST_CASE_TEMPLATE(bad_options_are_refused, P, kit::policies)
{
    asio::io_context io;
    BOOST_CHECK_THROW(breaker_of<P>(io, {.window = turnstile::count_window{0}}),
                      turnstile::system_error);
    BOOST_CHECK_THROW(breaker_of<P>(io, {.failure_rate = 1.5}), turnstile::system_error);
    BOOST_TEST((breaker_of<P>(io).state() == circuit_state::closed));
}

// ------------------------------------------------------------------------- permits ----

BOOST_AUTO_TEST_CASE_TEMPLATE(permits_report_once_and_open_it_at_the_threshold, P, kit::policies)
{
    fixture<P> f;
    for (int i = 0; i != 3; ++i) {
        BOOST_TEST((f.breaker.state() == circuit_state::closed));
        auto permit = f.breaker.try_acquire();
        BOOST_TEST(bool(permit));
        BOOST_TEST(!permit.is_probe());
        permit.failure();
        BOOST_TEST(!permit);
        permit.failure();
        permit.success();
    }
    BOOST_TEST((f.breaker.state() == circuit_state::open));
    auto rejected = f.breaker.try_acquire();
    BOOST_TEST(!rejected);
    BOOST_TEST((rejected.retry_after() == 50ms));
    BOOST_TEST((f.breaker.retry_after() == 50ms));
    rejected.failure();
    BOOST_TEST(f.log == "co ");

    const auto stats = f.breaker.stats();
    BOOST_TEST(stats.failures == 3U);
    BOOST_TEST(stats.rejected == 1U);
    BOOST_TEST(stats.opened == 1U);
    BOOST_TEST((stats.state == circuit_state::open));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_success_ends_a_row_also_on_the_short_way, P, kit::policies)
{
    fixture<P> f;
    for (int i = 0; i != 10; ++i) {
        f.breaker.try_acquire().success();
        f.breaker.try_acquire().failure();
        f.breaker.try_acquire().failure();
        f.breaker.try_acquire().success();
    }
    BOOST_TEST((f.breaker.state() == circuit_state::closed));
    BOOST_TEST(f.breaker.stats().successes == 20U);
    BOOST_TEST(f.breaker.stats().failures == 20U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_dropped_probe_makes_room_for_another, P, kit::policies)
{
    fixture<P> f;
    f.fail(3);
    f.pass(50ms);
    for (int i = 0; i != 5; ++i) {
        auto probe = f.breaker.try_acquire();
        BOOST_TEST(probe.is_probe());
        BOOST_TEST(!f.breaker.try_acquire());
        auto moved = std::move(probe);
        BOOST_TEST(!probe);
        BOOST_TEST(moved.is_probe());
    }
    auto probe = f.breaker.try_acquire();
    probe = {}; // assignment drops it, too
    BOOST_TEST((f.breaker.state() == circuit_state::half_open));
    f.breaker.try_acquire().success();
    BOOST_TEST((f.breaker.state() == circuit_state::closed));
    BOOST_TEST(f.log == "co oh hc ");
    BOOST_TEST(f.breaker.stats().ignored == 6U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(late_results_change_nothing, P, kit::policies)
{
    fixture<P> f;
    auto early = f.breaker.try_acquire();
    auto other = f.breaker.try_acquire();
    f.fail(3);
    f.pass(50ms);
    auto probe = f.breaker.try_acquire();
    early.failure();
    other.success();
    BOOST_TEST((f.breaker.state() == circuit_state::half_open));
    BOOST_TEST(f.breaker.stats().late == 2U);
    BOOST_TEST(f.breaker.stats().probes_out == 1U);
    probe.success();
    BOOST_TEST((f.breaker.state() == circuit_state::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_hung_probe_does_not_keep_it_half_open, P, kit::policies)
{
    auto options = three_in_a_row();
    options.probe_deadline = 1s;
    fixture<P> f(options);
    f.fail(3);
    f.pass(50ms);
    auto hung = f.breaker.try_acquire();
    f.pass(1s);
    BOOST_TEST(!f.breaker.try_acquire());
    BOOST_TEST((f.breaker.state() == circuit_state::open));
    f.pass(50ms);
    auto next = f.breaker.try_acquire();
    BOOST_TEST(next.is_probe());
    hung.failure();
    next.success();
    BOOST_TEST((f.breaker.state() == circuit_state::closed));
    BOOST_TEST(f.log == "co oh ho oh hc ");
}

BOOST_AUTO_TEST_CASE(a_hundred_threads_at_the_end_of_the_open_time_get_exactly_the_probes)
{
    auto options = three_in_a_row();
    options.probes = 7;
    asio::io_context io;
    breaker_of<turnstile::thread_safe> breaker(io, options);
    for (int round = 0; round != 5; ++round) {
        breaker.reset();
        for (int i = 0; i != 3; ++i)
            breaker.try_acquire().failure();
        manual_clock::shift(50ms);
        std::atomic<int> admitted = 0;
        std::atomic<int> arrived = 0;
        std::vector<std::thread> callers;
        for (int i = 0; i != 100; ++i)
            callers.emplace_back([&] {
                auto permit = breaker.try_acquire();
                admitted += permit ? 1 : 0;
                ++arrived;
                while (arrived != 100) // keeps its permit until every thread has tried
                    std::this_thread::yield();
            });
        for (auto& t : callers)
            t.join();
        BOOST_TEST(admitted == 7);
    }
}

// --------------------------------------------------------------------------- calls ----

BOOST_AUTO_TEST_CASE_TEMPLATE(results_pass_through_unchanged, P, kit::policies)
{
    fixture<P> f;
    std::optional<int> result;
    f.breaker.async_call(f.backend.call(), [&](error_code ec, int n) {
        BOOST_TEST(!ec);
        result = n;
    });
    f.backend.end({}, 42);
    BOOST_TEST(result.value() == 42);
    f.breaker.async_call(f.backend.call(), [&](error_code ec, int n) {
        BOOST_TEST((ec == asio::error::eof));
        result = n;
    });
    f.backend.end(asio::error::eof, 43); // a value that came with an error passes, too
    BOOST_TEST(result.value() == 43);
    BOOST_TEST(f.breaker.stats().successes == 1U);
    BOOST_TEST(f.breaker.stats().failures == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_open_circuit_rejects_without_calling, P, kit::policies)
{
    fixture<P> f;
    f.fail(3);
    BOOST_TEST(f.backend.started == 3);
    completion rejected;
    f.breaker.async_call(f.backend.call(), rejected.handler([](int) {}));
    BOOST_TEST(!rejected.done()); // never inside the initiating function
    kit::run(f.io);
    BOOST_TEST((rejected.error() == errc::circuit_open));
    BOOST_TEST(f.backend.started == 3);
    f.pass(50ms);
    BOOST_TEST(!f.call());
    BOOST_TEST((f.breaker.state() == circuit_state::closed));
    BOOST_TEST(f.log == "co oh hc ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(coroutines_are_called_and_their_exceptions_count, P, kit::policies)
{
    fixture<P> f;
    int calls = 0;
    const auto flaky = [&]() -> asio::awaitable<std::string> {
        if (++calls <= 3)
            throw std::runtime_error("service down");
        co_return "ok";
    };
    asio::co_spawn(
        f.io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != 3; ++i) {
                try {
                    co_await f.breaker.async_call(flaky);
                    BOOST_ERROR("no exception");
                } catch (const std::runtime_error& e) {
                    BOOST_TEST(e.what() == "service down");
                }
            }
            try {
                co_await f.breaker.async_call(flaky);
                BOOST_ERROR("no exception");
            } catch (const turnstile::rejection& e) {
                BOOST_TEST((e.code() == errc::circuit_open));
                BOOST_TEST((e.retry_after() == 50ms));
            }
            f.pass(50ms);
            BOOST_TEST(co_await f.breaker.async_call(flaky) == "ok");
        },
        asio::detached);
    kit::run(f.io);
    BOOST_TEST(calls == 4);
    BOOST_TEST(f.log == "co oh hc ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_exception_while_starting_is_a_failure, P, kit::policies)
{
    fixture<P> f;
    f.backend.throws = true;
    for (int i = 0; i != 3; ++i) {
        completion c;
        f.breaker.async_call(f.backend.call(), c.handler([](int) {}));
        kit::run(f.io);
        BOOST_TEST((c.error() == errc::operation_failed));
    }
    BOOST_TEST((f.breaker.state() == circuit_state::open));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_call_is_ignored, P, kit::policies)
{
    fixture<P> f;
    f.fail(2);
    for (int i = 0; i != 5; ++i)
        f.call(asio::error::operation_aborted);
    BOOST_TEST((f.breaker.state() == circuit_state::closed));
    f.fail(1);
    f.pass(50ms);
    f.call(asio::error::operation_aborted); // as a probe
    BOOST_TEST((f.breaker.state() == circuit_state::half_open));
    BOOST_TEST(!f.call());
    BOOST_TEST((f.breaker.state() == circuit_state::closed));
    BOOST_TEST(f.breaker.stats().ignored == 6U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_dropped_call_is_ignored, P, kit::policies)
{
    fixture<P> f;
    f.fail(3);
    f.pass(50ms);
    completion dropped(kit::dropping::is_expected);
    f.breaker.async_call(f.backend.call(), dropped.handler([](int) {}));
    BOOST_TEST(f.breaker.stats().probes_out == 1U);
    f.backend.drop();
    BOOST_TEST(dropped.dropped());
    BOOST_TEST(f.breaker.stats().probes_out == 0U);
    BOOST_TEST(!f.call());
    BOOST_TEST((f.breaker.state() == circuit_state::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_callers_cancellation_reaches_the_operation, P, kit::policies)
{
    fixture<P> f;
    asio::steady_timer never(f.io, asio::steady_timer::time_point::max());
    asio::cancellation_signal signal;
    completion c;
    f.breaker.async_call(never.async_wait(asio::deferred),
                         asio::bind_cancellation_slot(signal.slot(), c.handler([] {})));
    BOOST_TEST(kit::poll_leaves_work(f.io));
    signal.emit(asio::cancellation_type::total);
    kit::run(f.io);
    BOOST_TEST(c.aborted());
    BOOST_TEST(f.breaker.stats().ignored == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(errors_are_classified_as_the_options_say, P, kit::policies)
{
    auto options = three_in_a_row();
    options.classify = [](const turnstile::failure& e) {
        return e.code() == asio::error::eof ? call_outcome::success : call_outcome::failure;
    };
    fixture<P> f(options);
    for (int i = 0; i != 5; ++i)
        BOOST_TEST((f.call(asio::error::eof) == asio::error::eof));
    BOOST_TEST((f.breaker.state() == circuit_state::closed));
    for (int i = 0; i != 3; ++i)
        f.call(asio::error::operation_aborted);
    BOOST_TEST((f.breaker.state() == circuit_state::open));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(results_are_classified_by_a_rule_of_their_own, P, kit::policies)
{
    fixture<P> f;
    const auto by_status = [](error_code ec, int status) {
        if (ec || status >= 500)
            return call_outcome::failure;
        return status >= 400 ? call_outcome::ignored : call_outcome::success;
    };
    const auto call = [&](int status) {
        int result = 0;
        f.breaker.async_call(f.backend.call(), by_status, [&](error_code, int n) { result = n; });
        f.backend.end({}, status);
        BOOST_TEST(result == status);
    };
    call(200);
    call(503);
    call(503);
    call(404);
    BOOST_TEST((f.breaker.state() == circuit_state::closed));
    call(500);
    BOOST_TEST((f.breaker.state() == circuit_state::open));
}

// A classifier is not mistaken for a handler.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_rule_needs_no_token, P, kit::policies)
{
    fixture<P> f;
    int result = 0;
    const auto calls = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != 3; ++i)
            result += co_await f.breaker.async_call(
                [](auto token) {
                    return asio::async_initiate<decltype(token), void(error_code, int)>(
                        [](auto handler) { handler(error_code(), 1); }, token);
                },
                [](const error_code&, int) { return call_outcome::failure; });
    };
    asio::co_spawn(f.io, calls, asio::detached);
    kit::run(f.io);
    BOOST_TEST(result == 3);
    BOOST_TEST((f.breaker.state() == circuit_state::open));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_rule_that_throws_means_failure, P, kit::policies)
{
    auto options = three_in_a_row();
    options.classify = [](const turnstile::failure&) -> call_outcome { throw 1; };
    fixture<P> f(options);
    f.fail(3);
    BOOST_TEST((f.breaker.state() == circuit_state::open));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(slow_calls_are_timed, P, kit::policies)
{
    auto options = three_in_a_row();
    options.slow_after = 10ms;
    fixture<P> f(options);
    for (int i = 0; i != 3; ++i) {
        BOOST_TEST((f.breaker.state() == circuit_state::closed));
        auto permit = f.breaker.try_acquire();
        f.pass(10ms);
        permit.success();
    }
    BOOST_TEST((f.breaker.state() == circuit_state::open));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(calls_outlive_the_breaker, P, kit::policies)
{
    asio::io_context io;
    service backend;
    auto breaker = std::make_unique<breaker_of<P>>(
        io, circuit_breaker_options{.window = {turnstile::consecutive_failures{1}}});
    bool told = false;
    breaker->add_listener([&](const circuit_breaker_event&) { told = true; });
    completion c;
    breaker->async_call(backend.call(), c.handler([](int) {}));
    breaker.reset();
    backend.end(asio::error::connection_reset);
    BOOST_TEST((c.error() == asio::error::connection_reset));
    BOOST_TEST(!told);
}

BOOST_AUTO_TEST_CASE(a_breaker_is_a_stage)
{
    using op = decltype(std::declval<service&>().call());
    static_assert(turnstile::stage_for<turnstile::circuit_breaker, op>);
    static_assert(turnstile::stage_for<turnstile::local::circuit_breaker, op>);
    const auto coroutine = []() -> asio::awaitable<int> { co_return 1; };
    static_assert(turnstile::stage_for<turnstile::circuit_breaker, decltype(coroutine)>);
    BOOST_TEST(true);
}

// ------------------------------------------------------------------- waiting for states ----

BOOST_AUTO_TEST_CASE_TEMPLATE(with_a_waiter_it_becomes_half_open_by_itself, P, kit::policies)
{
    fixture<P> f;
    f.fail(3);
    completion c;
    f.breaker.async_wait_state(circuit_state::half_open, c.handler([] {}));
    manual_clock::advance(f.io, 50ms - 1ns);
    BOOST_TEST(!c.done());
    manual_clock::advance(f.io, 1ns);
    BOOST_TEST(c.succeeded());
    BOOST_TEST(f.log == "co oh ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(with_a_waiter_a_hung_probe_opens_it_by_itself, P, kit::policies)
{
    auto options = three_in_a_row();
    options.probe_deadline = 1s;
    options.break_duration = [](const turnstile::break_info& info) {
        return info.attempt * turnstile::nanoseconds(10ms);
    };
    fixture<P> f(options);
    f.fail(3);
    f.pass(10ms);
    auto hung = f.breaker.try_acquire();
    BOOST_TEST(hung.is_probe());
    completion open;
    completion half_open;
    completion closed;
    f.breaker.async_wait_state(circuit_state::open, open.handler([] {}));
    f.breaker.async_wait_state(circuit_state::closed, closed.handler([] {}));
    manual_clock::advance(f.io, 1s);
    BOOST_TEST(open.succeeded());
    f.breaker.async_wait_state(circuit_state::half_open, half_open.handler([] {}));
    manual_clock::advance(f.io, 20ms - 1ns);
    BOOST_TEST(!half_open.done());
    manual_clock::advance(f.io, 1ns);
    BOOST_TEST(half_open.succeeded());
    BOOST_TEST(!closed.done());
    f.breaker.try_acquire().success();
    kit::run(f.io);
    BOOST_TEST(closed.succeeded());
    BOOST_TEST(f.log == "co oh ho oh hc ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(it_says_how_many_wait, P, kit::policies)
{
    kit::drained_context io;
    breaker_of<P> breaker(io);
    BOOST_TEST(breaker.waiting() == 0U);
    completion open;
    completion half_open;
    breaker.async_wait_state(circuit_state::open, open.handler([] {}));
    BOOST_TEST(breaker.waiting() == 1U);
    asio::cancellation_signal signal;
    breaker.async_wait_state(circuit_state::half_open,
                             asio::bind_cancellation_slot(signal.slot(), half_open.handler([] {})));
    BOOST_TEST(breaker.waiting() == 2U);
    breaker.force_open();
    BOOST_TEST(breaker.waiting() == 1U);
    kit::poll_leaves_work(io);
    signal.emit(asio::cancellation_type::terminal);
    kit::run(io);
    BOOST_TEST(breaker.waiting() == 0U);
    BOOST_TEST(open.succeeded());
    BOOST_TEST(half_open.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failed_try_says_why, P, kit::policies)
{
    kit::drained_context io;
    breaker_of<P> breaker(io);
    error_code ec = errc::closed;
    auto permit = breaker.try_acquire(ec);
    BOOST_TEST(static_cast<bool>(permit));
    BOOST_TEST(!ec);
    permit.release();
    BOOST_TEST(!permit);
    BOOST_TEST(breaker.stats().ignored == 1U);
    breaker.force_open();
    BOOST_TEST(!breaker.try_acquire(ec));
    BOOST_TEST(ec == errc::circuit_open);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_state_that_does_not_last_still_counts, P, kit::policies)
{
    fixture<P> f;
    completion c;
    f.breaker.async_wait_state(circuit_state::open, c.handler([] {}));
    f.breaker.force_open();
    f.breaker.reset();
    kit::run(f.io);
    BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_timer_is_no_work_without_waiters, P, kit::policies)
{
    fixture<P> f;
    f.fail(3);
    asio::cancellation_signal signal;
    completion c;
    f.breaker.async_wait_state(circuit_state::half_open,
                               asio::bind_cancellation_slot(signal.slot(), c.handler([] {})));
    BOOST_TEST(kit::poll_leaves_work(f.io));
    signal.emit(asio::cancellation_type::total);
    kit::run(f.io); // would hang on the timer
    BOOST_TEST(c.aborted());
    BOOST_TEST((f.breaker.state() == circuit_state::open));
}

// ------------------------------------------------------------------- by hand, listeners ----

BOOST_AUTO_TEST_CASE_TEMPLATE(it_can_be_forced_either_way, P, kit::policies)
{
    fixture<P> f;
    f.breaker.force_open();
    f.pass(1000h);
    BOOST_TEST(!f.breaker.try_acquire());
    BOOST_TEST((f.breaker.retry_after() == turnstile::nanoseconds::max()));
    BOOST_TEST(f.breaker.stats().forced);
    f.breaker.force_closed();
    f.fail(10);
    BOOST_TEST((f.breaker.state() == circuit_state::closed));
    f.breaker.reset();
    BOOST_TEST(!f.breaker.stats().forced);
    f.fail(3);
    BOOST_TEST((f.breaker.state() == circuit_state::open));
    BOOST_TEST(f.log == "co oc co ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(listeners_may_call_the_breaker, P, kit::policies)
{
    fixture<P> f;
    std::optional<turnstile::listener_id> id;
    id = f.breaker.add_listener([&](const circuit_breaker_event& c) {
        f.log += "(";
        if (c.to == circuit_state::open)
            f.breaker.reset(); // dispatched after this listener has returned
        else
            BOOST_TEST(f.breaker.remove_listener(*id));
        f.log += ")";
    });
    f.fail(3);
    BOOST_TEST(f.log == "co ()oc ()");
    f.breaker.force_open();
    BOOST_TEST(f.log == "co ()oc ()co ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_may_end_the_breaker, P, kit::policies)
{
    asio::io_context io;
    auto breaker = std::make_unique<breaker_of<P>>(io, three_in_a_row());
    completion c;
    breaker->async_wait_state(circuit_state::half_open, c.handler([] {}));
    breaker->add_listener([&](const circuit_breaker_event&) { breaker.reset(); });
    breaker->force_open();
    BOOST_TEST(!breaker);
    kit::run(io);
    BOOST_TEST(c.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_call_that_outlives_the_breaker_calls_no_classifier, P,
                              kit::policies)
{
    asio::io_context io;
    auto options = three_in_a_row();
    options.window = turnstile::consecutive_failures{1};
    bool gone = false;
    options.classify = [&](const turnstile::failure&) {
        BOOST_TEST(!gone);
        return call_outcome::failure;
    };
    options.break_duration = [&](const turnstile::break_info&) {
        BOOST_TEST(!gone);
        return turnstile::nanoseconds(1ms);
    };
    const auto classify = [&](error_code, int) {
        BOOST_TEST(!gone);
        return call_outcome::failure;
    };
    auto breaker = std::make_unique<breaker_of<P>>(io, options);
    service s;
    std::vector<error_code> ended;
    const auto handler = [&](error_code ec, int) { ended.push_back(ec); };
    breaker->async_call(s.call(), handler);
    breaker->async_call(s.call(), classify, handler);
    breaker.reset();
    gone = true;
    s.end(asio::error::connection_refused);
    s.end(asio::error::connection_refused);
    kit::run(io);
    BOOST_TEST(ended.size() == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_generator_that_throws_leaves_the_proposed_duration, P,
                              kit::policies)
{
    auto options = three_in_a_row();
    options.break_duration = [](const turnstile::break_info&) -> turnstile::nanoseconds {
        throw std::runtime_error("generator");
    };
    fixture<P> f(options);
    f.fail(3);
    BOOST_TEST((f.breaker.retry_after() == 50ms));
    f.pass(50ms);
    BOOST_TEST((f.breaker.state() == circuit_state::half_open));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_generator_may_call_the_breaker, P, kit::policies)
{
    std::function<void()> inside;
    auto options = three_in_a_row();
    options.break_duration = [&](const turnstile::break_info& info) {
        BOOST_TEST(info.calls.failures == 3U);
        inside();
        return turnstile::nanoseconds(7ms);
    };
    fixture<P> f(options);
    inside = [&] { BOOST_TEST(!f.breaker.try_acquire()); };
    f.fail(3);
    BOOST_TEST((f.breaker.retry_after() == 7ms));
    BOOST_TEST(f.breaker.stats().rejected == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
