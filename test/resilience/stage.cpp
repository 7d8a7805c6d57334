// SPDX-License-Identifier: BSL-1.0
// A stage written by a user, with public names alone.
#include "kit/call_fixture.hpp"

#include <turnstile/core/error.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/resilience/pipeline.hpp>
#include <turnstile/resilience/stage.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <tuple>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::errc;
using turnstile::error_code;
using turnstile::failure;

// Refuses calls while it is switched off, and counts the failures of the others.
class user_stage {
public:
    explicit user_stage(const asio::any_io_executor& executor) : executor_(executor) {}

    template <turnstile::operation Op, turnstile::operation_token_for<Op> Token>
    auto async_call(Op&& op, Token&& token)
    {
        return asio::async_initiate<Token, turnstile::operation_signature_t<Op>>(
            [this](auto handler, auto inner) {
                using op_type = decltype(inner);
                if (is_off)
                    return turnstile::post_failure<op_type>(std::move(handler), executor_,
                                                            error_code(errc::rejected));
                auto counting = turnstile::observe_completion<op_type>(
                    std::move(handler), [this](const failure& f) { failures += f ? 1 : 0; });
                turnstile::start_operation(std::move(inner), executor_, std::move(counting));
            },
            token, std::forward<Op>(op));
    }

    bool is_off = false;
    int failures = 0;

private:
    asio::any_io_executor executor_;
};

static_assert(turnstile::stage_for<user_stage, kit::scripted_operation>);

struct fixture : kit::call_fixture {
    user_stage stage{io.get_executor()};
};

BOOST_FIXTURE_TEST_SUITE(resilience_stage, fixture)

BOOST_AUTO_TEST_CASE(a_stage_of_the_user_sees_each_attempt_of_a_retry)
{
    const auto p = turnstile::pipeline<kit::manual_clock>(io)
                       .retry({.backoff = turnstile::backoff::constant(1s)})
                       .stage(stage);
    p.async_call(operation, done.handler([this](int v) { value = v; }));
    poll();
    operation.fail(0, asio::error::connection_refused);
    poll();
    advance(1s);
    operation.succeed(1, 7);
    kit::run(io);
    BOOST_TEST(value == 7);
    BOOST_TEST(stage.failures == 1);
}

BOOST_AUTO_TEST_CASE(a_refused_call_completes_with_the_failure_and_is_not_started)
{
    stage.is_off = true;
    stage.async_call(operation, done.handler([](int) {}));
    BOOST_TEST(!done.done()); // posted
    kit::run(io);
    BOOST_TEST(done.error() == errc::rejected);
    BOOST_TEST(operation.started() == 0U);
}

BOOST_AUTO_TEST_CASE(a_coroutine_is_an_operation_for_a_stage)
{
    int result = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const auto work = []() -> asio::awaitable<int> { co_return 7; };
            result = co_await stage.async_call(work, asio::use_awaitable);
            const auto fails = []() -> asio::awaitable<int> {
                throw std::runtime_error("fails");
                co_return 0;
            };
            BOOST_CHECK_THROW(co_await stage.async_call(fails, asio::use_awaitable),
                              std::runtime_error);
            stage.is_off = true;
            try {
                co_await stage.async_call(work, asio::use_awaitable);
            } catch (const turnstile::system_error& e) {
                BOOST_TEST(e.code() == errc::rejected);
                ++result;
            }
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(result == 8);
    BOOST_TEST(stage.failures == 1);
}

BOOST_AUTO_TEST_CASE(what_the_initiation_throws_is_delivered)
{
    const auto throwing = [](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, int)>(
            [](auto) { throw std::runtime_error("cannot start"); }, token);
    };
    stage.async_call(throwing, done.handler([](int) {}));
    kit::run(io);
    BOOST_TEST(done.error() == errc::operation_failed);
    BOOST_TEST(stage.failures == 1);
}

BOOST_AUTO_TEST_CASE(an_observer_may_see_all_results)
{
    int seen = 0;
    auto handler = turnstile::observe_completion<kit::scripted_operation>(
        done.handler([](int) {}),
        [&](const std::tuple<error_code, int>& results) { seen = std::get<1>(results); });
    turnstile::start_operation(operation, io.get_executor(), std::move(handler));
    operation.succeed(0, 5);
    kit::run(io);
    BOOST_TEST(seen == 5);
    BOOST_TEST(done.succeeded());
}

BOOST_AUTO_TEST_CASE(the_handler_is_called_even_if_the_observer_throws)
{
    auto handler = turnstile::observe_completion<kit::scripted_operation>(
        done.handler([this](int v) { value = v; }),
        [](const failure&) { throw std::runtime_error("observer"); });
    turnstile::start_operation(operation, io.get_executor(), std::move(handler));
    operation.succeed(0, 5);
    BOOST_CHECK_NO_THROW(kit::run(io));
    BOOST_TEST(done.succeeded());
    BOOST_TEST(value == 5);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
