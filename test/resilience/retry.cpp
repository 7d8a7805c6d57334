// SPDX-License-Identifier: BSL-1.0
#include "kit/call_fixture.hpp"
#include "kit/failing_allocator.hpp"
#include "kit/mindful.hpp"

#include <turnstile/core/error.hpp>
#include <turnstile/resilience/retry.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::completion;
using kit::manual_clock;
using turnstile::backoff;
using turnstile::errc;
using turnstile::error_code;
using turnstile::nanoseconds;
using turnstile::retry_event;
using turnstile::retry_options;

const error_code refused = asio::error::connection_refused;

struct fixture : kit::call_fixture {
    // Fails the outstanding attempt, and advances the clock by the delay.
    void fail(error_code ec = refused, nanoseconds delay = 1s)
    {
        operation.fail(operation.started() - 1, ec);
        poll();
        advance(delay);
    }

    template <class Options>
    void start(const Options& how)
    {
        start_with([&](auto op, auto handler) {
            turnstile::async_retry<manual_clock>(io.get_executor(), how, op, std::move(handler));
        });
    }

    retry_options options{.backoff = backoff::constant(1s)};
};

BOOST_FIXTURE_TEST_SUITE(resilience_retry, fixture)

BOOST_AUTO_TEST_CASE(a_success_passes_through_at_once)
{
    start(options);
    operation.succeed(0, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
    BOOST_TEST(operation.started() == 1U);
}

BOOST_AUTO_TEST_CASE(a_failure_is_followed_by_another_attempt_after_the_delay)
{
    start(options);
    operation.fail(0, refused);
    poll();
    advance(1s - 1ns);
    BOOST_TEST(operation.started() == 1U);
    advance(1ns);
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
}

BOOST_AUTO_TEST_CASE(the_last_failure_is_delivered_as_it_is)
{
    options.max_attempts = 3;
    start(options);
    fail(refused);
    fail(refused);
    BOOST_TEST(!done.done());
    operation.fail(2, asio::error::host_unreachable);
    kit::run(io);
    BOOST_TEST(done.error() == asio::error::host_unreachable);
    BOOST_TEST(operation.started() == 3U);
}

BOOST_AUTO_TEST_CASE(a_predicate_decides_what_is_worth_it)
{
    options.retry_if = [](const turnstile::failure& f) { return f.code() == refused; };
    start(options);
    fail(refused);
    operation.fail(1, asio::error::access_denied);
    kit::run(io);
    BOOST_TEST(done.error() == asio::error::access_denied);
    BOOST_TEST(operation.started() == 2U);
}

BOOST_AUTO_TEST_CASE(a_predicate_may_look_at_the_whole_result)
{
    start(turnstile::retry_on_results(
        options, [](error_code ec, int status) { return ec || status >= 500; }));
    operation.succeed(0, 503);
    poll();
    advance(1s);
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 200);
    kit::run(io);
    BOOST_TEST(value == 200);
}

BOOST_AUTO_TEST_CASE(a_rule_on_failures_is_not_called_for_a_success)
{
    options.retry_if = [](const turnstile::failure&) { return true; };
    start(options);
    operation.succeed(0, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
    BOOST_TEST(operation.started() == 1U);
}

BOOST_AUTO_TEST_CASE(a_rule_on_results_leaves_the_other_rule_to_the_options)
{
    options.retry_after = [](const turnstile::failure&) { return 30s; };
    start(turnstile::retry_on_results(options, [](error_code ec, int) { return ec.failed(); }));
    fail(refused, 30s - 1ns);
    BOOST_TEST(operation.started() == 1U);
    advance(1ns);
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
}

BOOST_AUTO_TEST_CASE(a_result_that_stays_bad_is_delivered_in_the_end)
{
    options.max_attempts = 2;
    start(
        turnstile::retry_on_results(options, [](error_code, int status) { return status >= 500; }));
    operation.succeed(0, 503);
    poll();
    advance(1s);
    operation.succeed(1, 504);
    kit::run(io);
    BOOST_TEST(value == 504);
}

BOOST_AUTO_TEST_CASE(the_server_may_say_when_to_come_back)
{
    start(turnstile::retry_on_results(
        options, [](error_code, int status) { return status == 429; },
        [](error_code, int) { return std::optional(30s); }));
    operation.succeed(0, 429);
    poll();
    advance(30s - 1ns);
    BOOST_TEST(operation.started() == 1U);
    advance(1ns);
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 200);
    kit::run(io);
}

BOOST_AUTO_TEST_CASE(an_attempt_that_takes_too_long_is_cancelled_and_retried)
{
    options.attempt_timeout = 5s;
    start(options);
    advance(5s);
    BOOST_TEST(operation.was_cancelled(0));
    advance(1s);
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
}

BOOST_AUTO_TEST_CASE(when_the_total_time_is_up_the_attempt_under_way_is_cancelled)
{
    options.max_attempts = retry_options::unlimited;
    options.total_timeout = 5s;
    start(options);
    fail();
    advance(4s);
    BOOST_TEST(operation.was_cancelled(1));
    BOOST_TEST(done.error() == errc::timed_out);
}

BOOST_AUTO_TEST_CASE(an_attempt_that_would_begin_too_late_is_not_waited_for)
{
    options.max_attempts = retry_options::unlimited;
    options.total_timeout = 1s;
    start(options);
    operation.fail(0, refused);
    kit::run(io); // without waiting
    BOOST_TEST(done.error() == refused);
}

BOOST_AUTO_TEST_CASE(a_cancelled_attempt_is_not_retried)
{
    start(options);
    signal.emit(asio::cancellation_type::total);
    kit::run(io);
    BOOST_TEST(done.aborted());
    BOOST_TEST((operation.cancelled(0) == asio::cancellation_type::total));
    BOOST_TEST(operation.started() == 1U);
}

BOOST_AUTO_TEST_CASE(an_attempt_that_ignores_the_cancellation_is_the_last_one)
{
    operation.ignore_cancellation();
    start(options);
    signal.emit(asio::cancellation_type::terminal);
    poll();
    operation.fail(0, refused);
    kit::run(io);
    BOOST_TEST(done.error() == refused);
}

BOOST_AUTO_TEST_CASE(a_delay_ends_at_once_when_cancelled)
{
    start(options);
    operation.fail(0, refused);
    poll();
    signal.emit(asio::cancellation_type::partial);
    kit::run(io); // the clock does not advance
    BOOST_TEST(done.aborted());
    BOOST_TEST(operation.started() == 1U);
}

BOOST_AUTO_TEST_CASE(an_abort_is_not_retried_whatever_the_predicate_says)
{
    options.retry_if = [](const turnstile::failure&) { return true; };
    start(options);
    operation.fail(0, asio::error::operation_aborted);
    kit::run(io);
    BOOST_TEST(done.aborted());
}

BOOST_AUTO_TEST_CASE(a_listener_hears_of_each_retry)
{
    std::vector<retry_event> heard;
    options.max_attempts = 3;
    options.on_retry = [&](const retry_event& e) { heard.push_back(e); };
    start(options);
    fail(refused);
    fail(asio::error::host_unreachable);
    operation.fail(2, refused);
    kit::run(io);
    BOOST_TEST_REQUIRE(heard.size() == 2U);
    BOOST_TEST(heard[0].attempt == 1U);
    BOOST_TEST((heard[0].delay == 1s));
    BOOST_TEST(heard[0].error.code() == refused);
    BOOST_TEST(heard[1].attempt == 2U);
    BOOST_TEST(heard[1].error.code() == asio::error::host_unreachable);
}

BOOST_AUTO_TEST_CASE(listeners_of_the_object_hear_of_the_retries_of_all_calls)
{
    auto retry = std::make_unique<turnstile::basic_retry<asio::any_io_executor, manual_clock>>(
        io.get_executor(), options);
    std::vector<retry_event> told;
    retry->add_listener([&](const retry_event& e) {
        told.push_back(e);
        throw std::runtime_error("dropped");
    });
    for (int i = 0; i != 2; ++i)
        retry->async_call(operation, [](error_code, int) {});
    operation.fail(0, refused);
    operation.fail(1, refused);
    poll();
    BOOST_TEST_REQUIRE(told.size() == 2U);
    BOOST_TEST(told[1].attempt == 1U);
    BOOST_TEST((told[1].delay == 1s));
    BOOST_TEST(told[1].error.code() == refused);
    advance(1s);
    retry.reset(); // the calls continue without listeners
    operation.fail(2, refused);
    operation.succeed(3, 1);
    poll();
    advance(1s);
    operation.succeed(4, 1);
    kit::run(io);
    BOOST_TEST(told.size() == 2U);
}

BOOST_AUTO_TEST_CASE(an_exception_of_the_options_functions_is_delivered)
{
    options.on_retry = [](const retry_event&) { throw std::runtime_error("listener"); };
    start(options);
    operation.fail(0, refused);
    kit::run(io);
    BOOST_TEST(done.error() == errc::operation_failed);
}

BOOST_AUTO_TEST_CASE(without_a_delay_the_next_attempt_begins_at_once)
{
    options.backoff = backoff::constant(0s);
    start(options);
    operation.fail(0, refused);
    poll();
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
}

BOOST_AUTO_TEST_CASE(an_operation_that_fails_to_start_is_retried)
{
    int attempts = 0;
    const auto throwing = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, int)>(
            [&](auto) {
                ++attempts;
                throw turnstile::system_error(refused);
            },
            token);
    };
    options.backoff = backoff::constant(0s);
    options.max_attempts = 1000;
    turnstile::async_retry<manual_clock>(io.get_executor(), options, throwing,
                                         done.handler([](int) {}));
    kit::run(io);
    BOOST_TEST(done.error() == refused);
    BOOST_TEST(attempts == 1000);
}

// No handler of another operation runs inside such an attempt.
BOOST_AUTO_TEST_CASE(attempts_that_fail_to_start_can_be_cancelled)
{
    int attempts = 0;
    const auto throwing = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, int)>(
            [&](auto) {
                if (++attempts == 10'000)
                    throw turnstile::system_error(asio::error::operation_aborted); // enough
                throw turnstile::system_error(refused);
            },
            token);
    };
    options.backoff = backoff::constant(0s);
    options.max_attempts = retry_options::unlimited;
    turnstile::async_retry<manual_clock>(
        io.get_executor(), options, throwing,
        asio::bind_cancellation_slot(signal.slot(), done.handler([](int) {})));
    asio::post(io, [&] { asio::post(io, [&] { signal.emit(asio::cancellation_type::total); }); });
    kit::run(io);
    BOOST_TEST(done.aborted());
    BOOST_TEST(attempts < 100);
}

BOOST_AUTO_TEST_CASE(a_coroutine_is_run_again_from_its_beginning)
{
    int attempts = 0;
    bool succeeded = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const int result = co_await turnstile::async_retry<manual_clock>(
                options, [&]() -> asio::awaitable<int> {
                    if (++attempts < 3)
                        throw std::runtime_error("not yet");
                    co_return attempts;
                });
            succeeded = result == 3;
        },
        asio::detached);
    for (int i = 0; i != 2; ++i) {
        poll();
        advance(1s);
    }
    kit::run(io);
    BOOST_TEST(succeeded);
}

// Throws at the copy or move after the allowed number of them.
struct stubborn {
    explicit stubborn(int moves) : left(std::make_shared<int>(moves)) {}
    stubborn(const stubborn& other) : left(other.left)
    {
        if ((*left)-- == 0)
            throw std::runtime_error("stays where it is");
    }
    template <class Token>
    auto operator()(Token token) const
    {
        return asio::async_initiate<Token, void(error_code)>(
            [](auto handler) {
                const auto executor = asio::get_associated_executor(handler);
                asio::post(executor, [h = std::move(handler)]() mutable { h(error_code()); });
            },
            token);
    }
    std::shared_ptr<int> left;
};

asio::awaitable<int> plain_function() { co_return 7; }

BOOST_AUTO_TEST_CASE(a_handler_that_owns_the_context_is_the_last_to_go)
{
    // Also if the initiation throws at any point.
    options.max_attempts = 1;
    bool made = false;
    for (int k = 0; !made; ++k) {
        BOOST_TEST_REQUIRE(k < 100);
        bool over = false;
        auto context = std::make_shared<asio::io_context>();
        const std::weak_ptr<asio::io_context> weak = context;
        const auto executor = context->get_executor();
        try {
            turnstile::async_retry<manual_clock>(
                executor, options, stubborn(k),
                [&made, context = std::move(context),
                 last = kit::last_breath(over)](error_code ec) { made = !ec; });
            const auto keep = weak.lock(); // a context must not be destroyed while it runs
            BOOST_TEST_REQUIRE(keep);
            keep->run();
        } catch (const std::runtime_error&) {
        }
        BOOST_TEST(over);
    }
}

BOOST_AUTO_TEST_CASE(a_plain_function_is_an_operation)
{
    int result = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            result = co_await turnstile::async_retry<manual_clock>(options, plain_function);
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(result == 7);
}

BOOST_AUTO_TEST_CASE(the_object_counts_how_calls_ended)
{
    auto budget = std::make_shared<turnstile::retry_budget>(
        turnstile::retry_budget_options{.per_call = 0, .per_second = 0, .capacity = 1});
    turnstile::basic_retry<asio::any_io_executor, manual_clock> retry(
        io.get_executor(), {.max_attempts = 2, .backoff = backoff::constant(0s), .budget = budget});
    static_assert(turnstile::stage_for<decltype(retry), kit::scripted_operation>);
    const auto call = [&](std::vector<error_code> results) {
        completion c;
        retry.async_call(operation, c.handler([](int) {}));
        for (error_code ec : results) {
            poll();
            if (ec)
                operation.fail(operation.started() - 1, ec);
            else
                operation.succeed(operation.started() - 1, 1);
        }
        kit::run(io);
        return c;
    };
    BOOST_TEST(call({error_code()}).succeeded());
    BOOST_TEST(call({refused, refused}).error() == refused); // two attempts
    BOOST_TEST(call({refused}).error() == refused);          // no budget
    BOOST_TEST(call({asio::error::operation_aborted}).aborted());
    const auto s = retry.stats();
    BOOST_TEST(s.calls == 4U);
    BOOST_TEST(s.attempts == 5U);
    BOOST_TEST(s.succeeded == 1U);
    BOOST_TEST(s.exhausted == 1U);
    BOOST_TEST(s.over_budget == 1U);
    BOOST_TEST(s.cancelled == 1U);
    BOOST_TEST(s.not_retryable + s.out_of_time + s.by_exception == 0U);
}

BOOST_AUTO_TEST_CASE(a_call_that_a_function_of_the_options_ends_is_counted_and_costs_no_token)
{
    auto budget = std::make_shared<turnstile::retry_budget>(
        turnstile::retry_budget_options{.per_call = 0, .per_second = 0, .capacity = 1});
    const auto throws = [](const auto&) -> bool { throw std::runtime_error("by the user"); };
    const auto end_of_call = [&](const auto& how) {
        using options_type = std::decay_t<decltype(how)>;
        turnstile::basic_retry<asio::any_io_executor, manual_clock, options_type> retry(
            io.get_executor(), how);
        completion c;
        retry.async_call(operation, c.handler([](int) {}));
        operation.fail(operation.started() - 1, refused);
        kit::run(io);
        BOOST_TEST(c.error() == errc::operation_failed);
        BOOST_TEST(retry.stats().calls == 1U);
        BOOST_TEST(retry.stats().by_exception == 1U);
        BOOST_TEST(budget->stats().balance == 1.0);
    };
    const auto throws_for_results = [&](error_code ec, int) -> std::optional<nanoseconds> {
        throws(ec);
        return std::nullopt;
    };
    end_of_call(retry_options{.retry_if = throws, .budget = budget});
    end_of_call(retry_options{
        .retry_after = [&](const turnstile::failure& f) { return throws_for_results(f.code(), 0); },
        .budget = budget});
    end_of_call(retry_options{.budget = budget, .on_retry = throws});
    end_of_call(turnstile::retry_on_results({.budget = budget}, throws_for_results));
    end_of_call(turnstile::retry_on_results(
        {.budget = budget}, [](error_code ec, int) { return ec.failed(); }, throws_for_results));
}

BOOST_AUTO_TEST_CASE(a_retry_that_is_cancelled_before_it_begins_costs_no_token)
{
    auto budget = std::make_shared<turnstile::retry_budget>(
        turnstile::retry_budget_options{.per_call = 0, .per_second = 0, .capacity = 1});
    options.budget = budget;
    start(options);
    operation.fail(0, refused);
    poll();
    BOOST_TEST(budget->stats().balance == 0.0);
    signal.emit(asio::cancellation_type::terminal);
    kit::run(io);
    BOOST_TEST(done.aborted());
    BOOST_TEST(budget->stats().balance == 1.0);
}

BOOST_AUTO_TEST_CASE(jitter_is_repeatable_with_a_seed)
{
    const auto delays = [&](std::uint64_t seed) {
        std::vector<nanoseconds> d;
        kit::scripted_operation op(io.get_executor());
        completion c;
        turnstile::async_retry<manual_clock>(
            io.get_executor(),
            {.max_attempts = 4,
             .backoff = backoff::exponential(1s).with_full_jitter(),
             .on_retry = [&](const retry_event& e) { d.push_back(e.delay); },
             .seed = seed},
            op, c.handler([](int) {}));
        for (std::size_t i = 0; i != 4; ++i) {
            op.fail(i, refused);
            poll();
            advance(8s);
        }
        return d;
    };
    BOOST_TEST((delays(1) == delays(1)));
    BOOST_TEST((delays(1) != delays(2)));
    BOOST_TEST(delays(3).size() == 3U);
}

BOOST_AUTO_TEST_CASE(all_memory_of_the_handler_is_free_when_it_is_called)
{
    kit::allocation_plan plan;
    std::optional<std::size_t> live;
    options.attempt_timeout = 5s;
    turnstile::async_retry<manual_clock>(
        io.get_executor(), options, operation,
        asio::bind_allocator(kit::failing_allocator<char>(plan),
                             [&](error_code, int) { live = plan.live(); }));
    poll();
    fail();
    operation.succeed(1, 1);
    kit::run(io);
    BOOST_TEST((live == 0U));
    BOOST_TEST(plan.allocated > 0U);
}

BOOST_AUTO_TEST_CASE(the_delay_needs_no_memory)
{
    kit::allocation_plan plan;
    turnstile::async_retry<manual_clock>(
        io.get_executor(), options, operation,
        asio::bind_allocator(kit::failing_allocator<char>(plan),
                             done.handler([this](int v) { value = v; })));
    poll();
    plan.fail = true;
    operation.fail(0, refused);
    poll();
    plan.fail = false;
    advance(1h);
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
    BOOST_TEST(plan.live() == 0U);
}

BOOST_AUTO_TEST_CASE(an_attempt_that_throws_after_it_has_begun_is_under_way)
{
    const auto begins_and_throws = [this](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, int)>(
            [this](auto handler) {
                operation(std::move(handler));
                throw std::bad_alloc();
            },
            token);
    };
    turnstile::async_retry<manual_clock>(io.get_executor(), options, begins_and_throws,
                                         done.handler([this](int v) { value = v; }));
    poll();
    advance(1s);
    BOOST_TEST(operation.started() == 1U);
    fail();
    BOOST_TEST(operation.started() == 2U);
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
}

BOOST_AUTO_TEST_CASE(a_context_that_is_destroyed_drops_the_handler)
{
    completion running(kit::dropping::is_expected);
    completion sleeping(kit::dropping::is_expected);
    {
        asio::io_context other;
        asio::steady_timer never(other, asio::steady_timer::time_point::max());
        const auto wait = [&](auto token) { return never.async_wait(std::move(token)); };
        turnstile::async_retry<manual_clock>(other.get_executor(), options, wait,
                                             running.handler([] {}));
        const auto fails = [&](auto token) {
            return asio::async_initiate<decltype(token), void(error_code)>(
                [](auto) { throw turnstile::system_error(refused); }, token);
        };
        turnstile::async_retry<manual_clock>(other.get_executor(), options, fails,
                                             sleeping.handler([] {}));
        other.poll();
    }
    BOOST_TEST(running.dropped());
    BOOST_TEST(sleeping.dropped());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
