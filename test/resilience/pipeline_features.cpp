// SPDX-License-Identifier: BSL-1.0
// Numbers of attempts, budgets of hedges, weights of rate limiters, and stages that a pipeline
// owns.
#include "kit/call_fixture.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/pipeline.hpp>
#include <turnstile/resilience/retry_budget.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::completion;
using kit::manual_clock;
using turnstile::errc;
using turnstile::error_code;

const error_code refused = asio::error::connection_refused;

struct fixture : kit::call_fixture {
    // Fails, and notes the number of the attempt.
    auto failing_operation()
    {
        return [this](std::uint32_t attempt, auto token) {
            attempts.push_back(attempt);
            return operation(std::move(token));
        };
    }
    auto failing_coroutine()
    {
        return [this](std::uint32_t attempt) -> asio::awaitable<int> {
            attempts.push_back(attempt);
            co_await asio::post(asio::use_awaitable);
            throw turnstile::system_error(refused);
        };
    }
    template <class Call>
    void run(Call call)
    {
        bool failed = false;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                try {
                    co_await call();
                } catch (const turnstile::system_error& e) {
                    failed = e.code() == refused;
                }
            },
            asio::detached);
        kit::run(io);
        BOOST_TEST(failed);
    }

    std::vector<std::uint32_t> attempts;
    const std::vector<std::uint32_t> three{1, 2, 3};
    turnstile::retry_options options{.max_attempts = 3,
                                     .backoff = turnstile::backoff::constant(0s)};
};

BOOST_FIXTURE_TEST_SUITE(resilience_pipeline_features, fixture)

BOOST_AUTO_TEST_CASE(a_retried_operation_may_take_the_number_of_its_attempt)
{
    turnstile::basic_retry<asio::any_io_executor, manual_clock> retry(io.get_executor(), options);
    retry.async_call(failing_operation(), done.handler([](int) {}));
    for (std::size_t i = 0; i != 3; ++i) {
        poll();
        operation.fail(i, refused);
    }
    kit::run(io);
    BOOST_TEST(done.error() == refused);
    BOOST_TEST(attempts == three);
}

BOOST_AUTO_TEST_CASE(so_may_a_coroutine)
{
    turnstile::retry retry(io, options);
    run([&] { return retry.async_call(failing_coroutine(), asio::use_awaitable); });
    BOOST_TEST(attempts == three);

    attempts.clear();
    run([&] { return turnstile::async_retry(options, failing_coroutine(), asio::use_awaitable); });
    BOOST_TEST(attempts == three);

    attempts.clear();
    retry.async_call(failing_coroutine(), [](std::exception_ptr, int) {});
    kit::run(io);
    BOOST_TEST(attempts == three);
}

BOOST_AUTO_TEST_CASE(the_number_passes_through_the_stages_of_a_pipeline)
{
    turnstile::bulkhead bulkhead(io, {.limit = 1});
    const auto calls = turnstile::pipeline(io).retry(options).bulkhead(bulkhead).timeout(1h);
    run([&] { return calls.async_call(failing_coroutine(), asio::use_awaitable); });
    BOOST_TEST(attempts == three);

    attempts.clear();
    calls.async_call(failing_coroutine(), [](std::exception_ptr, int) {});
    kit::run(io);
    BOOST_TEST(attempts == three);

    attempts.clear();
    const auto once = turnstile::pipeline(io).bulkhead(bulkhead);
    run([&] { return once.async_call(failing_coroutine(), asio::use_awaitable); });
    BOOST_TEST(attempts == std::vector<std::uint32_t>{1});
}

BOOST_AUTO_TEST_CASE(a_hedged_operation_may_take_the_number_of_its_attempt)
{
    turnstile::hedge hedge(io, {.delay = 1h, .max_attempts = 3});
    run([&] { return hedge.async_call(failing_coroutine(), asio::use_awaitable); });
    BOOST_TEST(attempts == three);
}

BOOST_AUTO_TEST_CASE(a_hedge_draws_on_the_budget_of_retries)
{
    const auto budget = std::make_shared<turnstile::retry_budget>(
        turnstile::retry_budget_options{.per_call = 0, .per_second = 0, .capacity = 1});
    turnstile::hedge hedge(io, {.delay = 1h, .max_attempts = 3, .budget = budget});
    run([&] { return hedge.async_call(failing_coroutine(), asio::use_awaitable); });
    BOOST_TEST((attempts == std::vector<std::uint32_t>{1, 2})); // the third found no token
    BOOST_TEST(budget->stats().withdrawals == 1U);
    BOOST_TEST(budget->stats().refusals == 1U);
    BOOST_TEST(budget->stats().deposits == 1U);
}

BOOST_AUTO_TEST_CASE(without_a_token_a_slow_attempt_is_awaited_alone)
{
    const auto budget = std::make_shared<turnstile::retry_budget>(
        turnstile::retry_budget_options{.per_call = 0, .per_second = 0, .capacity = 1});
    BOOST_TEST(budget->withdraw(0ns));
    turnstile::async_hedge<manual_clock>(io.get_executor(), {.delay = 1s, .budget = budget},
                                         operation, done.handler([this](int v) { value = v; }));
    poll();
    advance(1s);
    BOOST_TEST(operation.started() == 1U);
    operation.succeed(0, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
}

BOOST_AUTO_TEST_CASE(a_stage_of_a_rate_limiter_has_a_weight_and_a_longest_wait)
{
    turnstile::basic_rate_limiter<asio::any_io_executor, turnstile::thread_safe, manual_clock>
        limiter(io.get_executor(), turnstile::per_second(1, 10));
    const auto heavy = turnstile::pipeline(io).stage(limiter.stage_for(4, 1s));
    completion calls[3];
    for (const completion& c : calls)
        heavy.async_call(operation, c.handler([](int) {}));
    poll();
    BOOST_TEST(operation.started() == 2U); // 8 of 10 permits
    BOOST_TEST(calls[2].error() == errc::rate_limited);
    operation.succeed(0, 1);
    operation.succeed(1, 1);
    kit::run(io);

    completion waits;
    turnstile::pipeline(io)
        .stage(limiter.stage_for(4))
        .async_call(operation, waits.handler([](int) {}));
    poll();
    BOOST_TEST(operation.started() == 2U);
    advance(2s);
    BOOST_TEST(operation.started() == 3U);
    operation.succeed(2, 1);
    kit::run(io);
    BOOST_TEST(waits.succeeded());
}

// A stage that notes its destruction.
struct watched_stage {
    template <turnstile::operation Op, turnstile::operation_token_for<Op> Token>
    auto async_call(Op&& op, Token&& token)
    {
        return inner.async_call(std::forward<Op>(op), std::forward<Token>(token));
    }

    explicit watched_stage(const asio::any_io_executor& executor, bool& d)
        : inner(executor), destroyed(&d)
    {
    }
    watched_stage(const watched_stage&) = delete;
    watched_stage& operator=(const watched_stage&) = delete;
    ~watched_stage() { *destroyed = true; }

    turnstile::circuit_breaker inner;
    bool* destroyed;
};

BOOST_AUTO_TEST_CASE(a_pipeline_owns_a_stage_until_its_last_call_completes)
{
    bool destroyed = false;
    {
        const auto calls = turnstile::pipeline(io).stage(
            std::make_shared<watched_stage>(io.get_executor(), destroyed));
        BOOST_TEST(calls.get<0>().destroyed == &destroyed);
        calls.async_call(operation, done.handler([&](int) { BOOST_TEST(destroyed); }));
    }
    poll();
    BOOST_TEST(!destroyed);
    operation.succeed(0, 1);
    kit::run(io);
    BOOST_TEST(done.succeeded());
    BOOST_TEST(destroyed);
}

BOOST_AUTO_TEST_CASE(so_it_does_for_a_coroutine)
{
    bool destroyed = false;
    run([&]() -> asio::awaitable<int> {
        auto call = [&] {
            return turnstile::pipeline(io)
                .stage(std::make_shared<watched_stage>(io.get_executor(), destroyed))
                .async_call(failing_coroutine(), asio::use_awaitable);
        }();
        BOOST_TEST(!destroyed);
        std::exception_ptr thrown;
        try {
            co_await std::move(call);
        } catch (...) {
            thrown = std::current_exception();
        }
        std::rethrow_exception(thrown);
    });
    BOOST_TEST(destroyed);
}

BOOST_AUTO_TEST_CASE(shared_stages_of_the_library_are_owned)
{
    const auto breaker = std::make_shared<turnstile::circuit_breaker>(io);
    const auto calls =
        turnstile::pipeline(io)
            .circuit_breaker(breaker)
            .bulkhead(
                std::make_shared<turnstile::bulkhead>(io, turnstile::bulkhead_options{.limit = 1}))
            .rate_limiter(
                std::make_shared<turnstile::rate_limiter>(io, turnstile::per_second(100, 10)));
    run([&] { return calls.async_call(failing_coroutine(), asio::use_awaitable); });
    BOOST_TEST(breaker->stats().failures == 1U);
    BOOST_TEST(calls.get<1>().limit() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
