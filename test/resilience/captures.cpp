// SPDX-License-Identifier: BSL-1.0
// The values that an operation has captured are destroyed before the caller of the stage continues.
#include "kit/run.hpp"

#include <turnstile/resilience/pipeline.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

enum class end { at_once, later, by_exception };

asio::awaitable<int> finish(end how)
{
    if (how == end::later)
        co_await asio::post(asio::use_awaitable);
    if (how == end::by_exception)
        throw std::runtime_error("as asked");
    co_return 7;
}

// Calls an operation that owns a value, and checks right after the call whether it still exists.
template <class Call, class Make>
void check_captures(const std::string& name, Call call, Make make)
{
    BOOST_TEST_CONTEXT(name)
    {
        kit::drained_context io;
        bool went_on = false;
        const auto caller = [&]() -> asio::awaitable<void> {
            auto value = std::make_shared<int>(1);
            const std::weak_ptr<int> observer = value;
            try {
                auto operation = make(std::move(value));
                co_await call(std::move(operation));
            } catch (const std::runtime_error&) {
            }
            BOOST_TEST(observer.expired());
            went_on = true;
        };
        asio::co_spawn(io, caller, asio::detached);
        kit::run(io);
        BOOST_TEST(went_on);
    }
}

template <class Call>
void check_all_captures(const char* name, Call call)
{
    for (const end how : {end::at_once, end::later, end::by_exception}) {
        check_captures(name, call, [how](std::shared_ptr<int> value) {
            return [value = std::move(value), how]() -> asio::awaitable<int> {
                const int result = co_await finish(how);
                co_return result + *value;
            };
        });
    }
    check_captures(name, call, [](std::shared_ptr<int> value) {
        return [value = std::move(value)](auto token) {
            return asio::async_initiate<decltype(token), void(turnstile::error_code)>(
                [](auto handler) {
                    const auto executor = asio::get_associated_executor(handler);
                    asio::post(executor, [h = std::move(handler)]() mutable {
                        std::move(h)(turnstile::error_code());
                    });
                },
                token);
        };
    });
}

BOOST_AUTO_TEST_SUITE(resilience_captures)

BOOST_AUTO_TEST_CASE(every_stage_destroys_the_operation_before_the_caller_goes_on)
{
    asio::io_context other;
    turnstile::circuit_breaker breaker(other, {.window = turnstile::consecutive_failures{100}});
    turnstile::bulkhead bulkhead(other);
    turnstile::rate_limiter limiter(other, turnstile::per_second(1000, 1000));
    turnstile::timeout timeout(other, 1h);
    turnstile::hedge hedge(other, {.delay = 1h, .max_attempts = 1});
    turnstile::retry retry(other, {.max_attempts = 1});
    const auto pipeline =
        turnstile::pipeline(other).circuit_breaker(breaker).bulkhead(bulkhead).retry(
            {.max_attempts = 1});
    const auto empty = turnstile::pipeline(other);
    const auto with = [](const char* name, auto& stage) {
        check_all_captures(name, [&](auto op) { return stage.async_call(std::move(op)); });
    };
    with("circuit_breaker", breaker);
    with("bulkhead", bulkhead);
    with("rate_limiter", limiter);
    with("timeout", timeout);
    with("hedge", hedge);
    with("retry", retry);
    with("pipeline", pipeline);
    with("empty pipeline", empty);
}

BOOST_AUTO_TEST_CASE(a_bulkhead_does_so_after_a_wait)
{
    asio::io_context io;
    turnstile::bulkhead bulkhead(io, {.limit = 1});
    check_all_captures("a bulkhead, after a wait", [&](auto op) {
        return [](auto& b, auto o) -> asio::awaitable<void> {
            auto permit = b.try_acquire();
            const auto executor = co_await asio::this_coro::executor;
            asio::post(executor, [p = std::move(permit)] {});
            co_await b.async_call(std::move(o));
        }(bulkhead, std::move(op));
    });
}

BOOST_AUTO_TEST_CASE(a_refused_call_does_so_too)
{
    kit::drained_context io;
    turnstile::bulkhead bulkhead(io, {.limit = 1, .max_waiters = 0});
    const auto permit = bulkhead.try_acquire();
    bool refused = false;
    const auto caller = [&]() -> asio::awaitable<void> {
        auto value = std::make_shared<int>(1);
        const std::weak_ptr<int> observer = value;
        auto operation = [v = std::move(value)]() -> asio::awaitable<int> { co_return *v; };
        try {
            co_await bulkhead.async_call(std::move(operation));
        } catch (const turnstile::system_error&) {
            refused = true;
            BOOST_TEST(observer.expired());
        }
    };
    asio::co_spawn(io, caller, asio::detached);
    kit::run(io);
    BOOST_TEST(refused);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
