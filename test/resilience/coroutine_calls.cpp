// SPDX-License-Identifier: BSL-1.0
// Calls of a coroutine that a coroutine awaits: breaker, bulkhead, rate limiters, retry and
// pipeline run it inside the coroutine of the caller.
#include "kit/manual_clock.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/keyed_rate_limiter.hpp>
#include <turnstile/resilience/pipeline.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::manual_clock;
using turnstile::errc;

asio::awaitable<int> seven()
{
    co_await asio::post(asio::use_awaitable);
    co_return 7;
}

asio::awaitable<void> fails()
{
    co_await asio::post(asio::use_awaitable);
    throw std::runtime_error("as asked");
}

struct fixture {
    fixture() { manual_clock::reset(); }

    // Runs a coroutine to its end.
    template <class F>
    void run(F f)
    {
        bool ended = false;
        asio::co_spawn(io, std::move(f), [&](std::exception_ptr e) {
            ended = true;
            if (e)
                std::rethrow_exception(e);
        });
        kit::run(io);
        BOOST_TEST(ended);
    }

    kit::drained_context io;
    turnstile::circuit_breaker breaker{io, {.window = turnstile::consecutive_failures{2}}};
    turnstile::bulkhead bulkhead{io, {.limit = 1, .max_waiters = 1}};
    turnstile::rate_limiter limiter{io, turnstile::per_second(1000, 2)};
    turnstile::keyed_rate_limiter<std::string> keys{io, turnstile::per_second(1000, 2)};
    turnstile::retry retry{io};
};

template <class Call>
void check_results(fixture& on, Call call)
{
    on.run([&]() -> asio::awaitable<void> {
        BOOST_TEST(co_await call(&seven) == 7);
        bool thrown = false;
        try {
            co_await call(&fails);
        } catch (const std::runtime_error&) {
            thrown = true;
        }
        BOOST_TEST(thrown);
    });
}

BOOST_FIXTURE_TEST_SUITE(resilience_coroutine_calls, fixture)

BOOST_AUTO_TEST_CASE(results_and_exceptions_pass_through_every_stage)
{
    const auto through = [](auto& stage) {
        return [&stage](auto op) { return stage.async_call(op, asio::use_awaitable); };
    };
    check_results(*this, through(breaker));
    check_results(*this, through(bulkhead));
    check_results(*this, through(limiter));
    auto key = keys.stage_for("a");
    check_results(*this, through(key));
    turnstile::retry once(io, {.max_attempts = 1});
    check_results(*this, through(once));
    auto all = turnstile::pipeline(io)
                   .timeout(1h)
                   .retry({.max_attempts = 1})
                   .circuit_breaker(breaker)
                   .bulkhead(bulkhead)
                   .stage(key)
                   .hedge({.delay = 1h})
                   .timeout(1h);
    check_results(*this, through(all));
    BOOST_TEST(breaker.stats().failures == 2U);
}

BOOST_AUTO_TEST_CASE(the_operation_runs_in_the_coroutine_of_the_caller)
{
    run([&]() -> asio::awaitable<void> {
        std::string order;
        const auto note = [&]() -> asio::awaitable<void> {
            order += 'b';
            co_return;
        };
        asio::post(io, [&] { order += 'c'; });
        order += 'a';
        co_await turnstile::pipeline(io).retry().circuit_breaker(breaker).async_call(
            note, asio::use_awaitable);
        co_await asio::post(asio::use_awaitable);
        BOOST_TEST(order == "abc");
    });
}

BOOST_AUTO_TEST_CASE(the_permit_is_free_when_the_caller_continues)
{
    run([&]() -> asio::awaitable<void> {
        co_await bulkhead.async_call(
            [&]() -> asio::awaitable<void> {
                BOOST_TEST(!bulkhead.try_acquire());
                co_await asio::post(asio::use_awaitable);
            },
            asio::use_awaitable);
        BOOST_TEST(static_cast<bool>(bulkhead.try_acquire()));
        try {
            co_await bulkhead.async_call(&fails, asio::use_awaitable);
        } catch (const std::runtime_error&) {
            BOOST_TEST(static_cast<bool>(bulkhead.try_acquire()));
        }
    });
}

BOOST_AUTO_TEST_CASE(a_classifier_receives_the_results)
{
    const auto seven_is_bad = [](const std::exception_ptr&, int value) {
        return value == 7 ? turnstile::call_outcome::failure : turnstile::call_outcome::success;
    };
    run([&]() -> asio::awaitable<void> {
        BOOST_TEST(co_await breaker.async_call(&seven, seven_is_bad, asio::use_awaitable) == 7);
        BOOST_TEST(co_await breaker.async_call(&seven, seven_is_bad, asio::use_awaitable) == 7);
    });
    BOOST_TEST((breaker.state() == turnstile::circuit_state::open));
}

BOOST_AUTO_TEST_CASE(a_refusal_is_a_rejection_and_starts_nothing)
{
    breaker.force_open();
    auto place = bulkhead.try_acquire();
    turnstile::bulkhead full(io, {.limit = 1, .max_waiters = 0});
    auto last = full.try_acquire();
    bool started = false;
    const auto op = [&]() -> asio::awaitable<void> {
        started = true;
        co_return;
    };
    const auto refusal_of = [&](auto& stage) -> asio::awaitable<turnstile::rejection> {
        try {
            co_await stage.async_call(op, asio::use_awaitable);
        } catch (const turnstile::rejection& r) {
            co_return r;
        }
        throw std::logic_error("not refused");
    };
    run([&]() -> asio::awaitable<void> {
        BOOST_TEST((co_await refusal_of(breaker)).code() == errc::circuit_open);
        const auto r = co_await refusal_of(full);
        BOOST_TEST(r.code() == errc::rejected);
        BOOST_TEST(std::string(r.what()).find("bulkhead") != std::string::npos);
    });
    BOOST_TEST(!started);
}

BOOST_AUTO_TEST_CASE(a_loop_of_refused_calls_lets_other_handlers_run)
{
    breaker.force_open();
    bool stop = false;
    run([&]() -> asio::awaitable<void> {
        asio::post(io, [&] { stop = true; });
        while (!stop) {
            try {
                co_await breaker.async_call(&seven, asio::use_awaitable);
            } catch (const turnstile::rejection&) {
            }
        }
    });
}

BOOST_AUTO_TEST_CASE(a_call_waits_for_its_permit)
{
    auto place = std::optional(bulkhead.try_acquire());
    asio::post(io, [&] { place.reset(); });
    run([&]() -> asio::awaitable<void> {
        BOOST_TEST(co_await bulkhead.async_call(&seven, asio::use_awaitable) == 7);
        for (int i = 0; i != 5; ++i)
            BOOST_TEST(co_await limiter.async_call(&seven, asio::use_awaitable) == 7);
    });
}

BOOST_AUTO_TEST_CASE(a_cancelled_caller_leaves_the_line_or_cancels_the_operation)
{
    const auto cancelled = [&](auto op) {
        asio::cancellation_signal signal;
        std::optional<turnstile::failure> failed;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                co_await bulkhead.async_call(op, asio::use_awaitable);
            },
            asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) { failed = e; }));
        kit::poll_leaves_work(io);
        signal.emit(asio::cancellation_type::terminal);
        kit::run(io);
        BOOST_TEST_REQUIRE(failed.has_value());
        BOOST_TEST(failed->is_cancelled());
    };
    const auto never = [&]() -> asio::awaitable<void> {
        asio::steady_timer timer(io, asio::steady_timer::time_point::max());
        co_await timer.async_wait(asio::use_awaitable);
    };
    cancelled(never);
    auto place = bulkhead.try_acquire();
    BOOST_TEST(static_cast<bool>(place));
    cancelled(never);
    BOOST_TEST(bulkhead.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(a_destroyed_coroutine_gives_its_permit_back)
{
    {
        asio::io_context short_lived;
        asio::steady_timer timer(short_lived, asio::steady_timer::time_point::max());
        asio::co_spawn(
            short_lived,
            [&]() -> asio::awaitable<void> {
                co_await bulkhead.async_call(
                    [&]() -> asio::awaitable<void> {
                        co_await timer.async_wait(asio::use_awaitable);
                    },
                    asio::use_awaitable);
            },
            asio::detached);
        short_lived.poll();
        BOOST_TEST(!bulkhead.try_acquire());
    }
    BOOST_TEST(static_cast<bool>(bulkhead.try_acquire()));
}

BOOST_AUTO_TEST_CASE(a_breaker_may_be_destroyed_before_the_coroutine_that_it_admitted)
{
    std::optional<turnstile::circuit_breaker> short_lived(std::in_place, io);
    const auto outlives = [&]() -> asio::awaitable<void> {
        short_lived.reset();
        co_await fails();
    };
    run([&]() -> asio::awaitable<void> {
        bool thrown = false;
        try {
            co_await short_lived->async_call(outlives, asio::use_awaitable);
        } catch (const std::runtime_error&) {
            thrown = true;
        }
        BOOST_TEST(thrown);

        // Its listener destroys it when the coroutine has failed.
        short_lived.emplace(
            io, turnstile::circuit_breaker_options{.window = turnstile::consecutive_failures{1}});
        short_lived->add_listener([&](const auto&) { short_lived.reset(); });
        thrown = false;
        try {
            co_await short_lived->async_call(&fails, asio::use_awaitable);
        } catch (const std::runtime_error&) {
            thrown = true;
        }
        BOOST_TEST(thrown);
        BOOST_TEST(!short_lived.has_value());
    });
}

BOOST_AUTO_TEST_CASE(a_retry_repeats_the_coroutine_after_its_delays)
{
    turnstile::basic_retry<asio::any_io_executor, manual_clock> patient(
        io.get_executor(), {.max_attempts = 3, .backoff = turnstile::backoff::constant(1s)});
    int attempts = 0;
    std::optional<int> result;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            result = co_await patient.async_call(
                [&]() -> asio::awaitable<int> {
                    if (++attempts < 3)
                        throw turnstile::system_error(asio::error::connection_refused);
                    co_return attempts;
                },
                asio::use_awaitable);
        },
        asio::detached);
    kit::poll_leaves_work(io);
    BOOST_TEST(attempts == 1);
    manual_clock::advance(io, 1s);
    BOOST_TEST(attempts == 2);
    manual_clock::advance(io, 1s);
    kit::run(io);
    BOOST_TEST((result == 3));
    BOOST_TEST(patient.stats().attempts == 3U);
    BOOST_TEST(patient.stats().succeeded == 1U);
}

BOOST_AUTO_TEST_CASE(a_cancellation_ends_the_delay_of_a_retry)
{
    auto budget = std::make_shared<turnstile::retry_budget>();
    turnstile::basic_retry<asio::any_io_executor, manual_clock> patient(
        io.get_executor(), {.backoff = turnstile::backoff::constant(1h), .budget = budget});
    asio::cancellation_signal signal;
    std::optional<turnstile::failure> failed;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            co_await patient.async_call(
                []() -> asio::awaitable<void> {
                    throw turnstile::system_error(asio::error::connection_refused);
                    co_return;
                },
                asio::use_awaitable);
        },
        asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) { failed = e; }));
    kit::poll_leaves_work(io);
    BOOST_TEST(!failed.has_value());
    signal.emit(asio::cancellation_type::terminal);
    kit::run(io);
    BOOST_TEST_REQUIRE(failed.has_value());
    BOOST_TEST(failed->is_cancelled());
    BOOST_TEST(patient.stats().cancelled == 1U);
    BOOST_TEST(budget->stats().withdrawals == 0U);
}

BOOST_AUTO_TEST_CASE(an_attempt_with_a_time_limit_is_cancelled_alone)
{
    turnstile::basic_retry<asio::any_io_executor, manual_clock> impatient(
        io.get_executor(),
        {.max_attempts = 2, .backoff = turnstile::backoff::constant(0s), .attempt_timeout = 1s});
    int attempts = 0;
    std::optional<int> result;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            result = co_await impatient.async_call(
                [&]() -> asio::awaitable<int> {
                    asio::steady_timer never(io, asio::steady_timer::time_point::max());
                    if (++attempts == 1)
                        co_await never.async_wait(asio::use_awaitable);
                    co_return attempts;
                },
                asio::use_awaitable);
        },
        asio::detached);
    kit::poll_leaves_work(io);
    manual_clock::advance(io, 1s);
    kit::run(io);
    BOOST_TEST((result == 2));
}

BOOST_AUTO_TEST_CASE(an_exception_of_on_retry_is_the_result)
{
    turnstile::retry curious(
        io, {.on_retry = [](const turnstile::retry_event&) { throw std::logic_error("why"); }});
    run([&]() -> asio::awaitable<void> {
        bool thrown = false;
        try {
            co_await curious.async_call(
                []() -> asio::awaitable<void> {
                    throw turnstile::system_error(asio::error::connection_refused);
                    co_return;
                },
                asio::use_awaitable);
        } catch (const std::logic_error&) {
            thrown = true;
        }
        BOOST_TEST(thrown);
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
