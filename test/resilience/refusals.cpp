// SPDX-License-Identifier: BSL-1.0
// How other stages treat refusals by Turnstile's own stages, and programming errors.
#include "kit/call_fixture.hpp"

#include <turnstile/resilience/pipeline.hpp>
#include <turnstile/resilience/rejection.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <any>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <variant>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::completion;
using kit::manual_clock;
using turnstile::circuit_state;
using turnstile::errc;
using turnstile::error_code;
using turnstile::failure;
using turnstile::nanoseconds;
using turnstile::rejection;
using any = asio::any_io_executor;
using breaker_type = turnstile::basic_circuit_breaker<any, turnstile::thread_safe, manual_clock>;
using bulkhead_type = turnstile::basic_bulkhead<any, turnstile::thread_safe, manual_clock>;
using retry_type = turnstile::basic_retry<any, manual_clock>;

template <class E>
failure thrown(E e)
{
    return std::make_exception_ptr(std::move(e));
}

template <class F>
failure thrown_by(F f)
{
    try {
        f();
    } catch (...) {
        return std::current_exception();
    }
    return {};
}

// How often a retry with the usual policy makes a call that fails like this.
std::uint64_t attempts_at(const failure& f, const turnstile::retry_options& options = {})
{
    manual_clock::reset();
    kit::drained_context io;
    retry_type retry(io, options);
    bool over = false;
    const auto operation = [&]() -> asio::awaitable<void> {
        if (f.exception())
            std::rethrow_exception(f.exception());
        throw turnstile::system_error(f.code());
        co_return;
    };
    retry.async_call(operation, [&](std::exception_ptr) { over = true; });
    while (!over)
        manual_clock::advance(io, 1min);
    return retry.stats().attempts;
}

BOOST_FIXTURE_TEST_SUITE(resilience_refusals, kit::call_fixture)

BOOST_AUTO_TEST_CASE(a_refusal_is_recognised_in_either_form)
{
    for (const errc code : {errc::circuit_open, errc::rejected, errc::rate_limited}) {
        BOOST_TEST(turnstile::is_refusal(error_code(code)));
        BOOST_TEST(turnstile::is_refusal(thrown(turnstile::system_error(code))));
        BOOST_TEST(turnstile::is_refusal(thrown(rejection(code, 1s))));
    }
    BOOST_TEST(turnstile::is_refusal(thrown(rejection(errc::timed_out, nanoseconds::max()))));
    BOOST_TEST(!turnstile::is_refusal(error_code(errc::timed_out)));
    BOOST_TEST(!turnstile::is_refusal(thrown(turnstile::system_error(errc::timed_out))));
    BOOST_TEST(!turnstile::is_refusal(error_code(asio::error::connection_refused)));
    BOOST_TEST(!turnstile::is_refusal(error_code(asio::error::try_again)));
    BOOST_TEST(!turnstile::is_refusal(failure()));
}

BOOST_AUTO_TEST_CASE(is_retryable_is_the_default_rule_of_a_retry)
{
    for (const failure& f :
         {failure(errc::timed_out), failure(errc::invalid_argument), failure(errc::circuit_open),
          failure(asio::error::connection_refused), thrown(std::runtime_error("")),
          thrown(std::logic_error("")), thrown(rejection(errc::circuit_open, 1s)),
          thrown(rejection(errc::circuit_open, nanoseconds::max())),
          thrown(rejection(errc::timed_out, nanoseconds::max()))}) {
        BOOST_TEST_INFO(f.code().message());
        BOOST_TEST(turnstile::is_retryable(f) == (attempts_at(f) > 1));
        BOOST_TEST(attempts_at(f, {.retry_if = turnstile::is_retryable}) == attempts_at(f));
    }
    BOOST_TEST(!turnstile::is_retryable(failure()));
    BOOST_TEST(turnstile::is_retryable(error_code(errc::timed_out)));
}

BOOST_AUTO_TEST_CASE(a_breaker_that_is_twice_on_one_path_recovers)
{
    breaker_type breaker(io, {.window = turnstile::consecutive_failures{1}, .open_for = 1s});
    const auto twice =
        turnstile::pipeline<manual_clock>(io).circuit_breaker(breaker).circuit_breaker(breaker);
    bool fails = true;
    const auto service = [&]() -> asio::awaitable<void> {
        if (fails)
            throw std::runtime_error("as asked");
        co_return;
    };
    twice.async_call(service, [](std::exception_ptr e) { BOOST_TEST(!!e); });
    kit::run(io);
    BOOST_TEST((breaker.state() == circuit_state::open));

    fails = false;
    // The outer call is the probe; the inner one is refused, because a probe is under way.
    manual_clock::advance(io, 1s);
    twice.async_call(service, [](std::exception_ptr e) { BOOST_TEST(turnstile::is_refusal(e)); });
    kit::run(io);
    BOOST_TEST((breaker.state() == circuit_state::half_open));
    breaker.async_call(service, [](std::exception_ptr e) { BOOST_TEST(!e); });
    kit::run(io);
    BOOST_TEST((breaker.state() == circuit_state::closed));
}

BOOST_AUTO_TEST_CASE(two_breakers_on_one_path_open_and_close_one_by_one)
{
    breaker_type outer(io, {.window = turnstile::consecutive_failures{2}, .open_for = 1s});
    breaker_type inner(io, {.window = turnstile::consecutive_failures{1}, .open_for = 10s});
    const auto path =
        turnstile::pipeline<manual_clock>(io).circuit_breaker(outer).circuit_breaker(inner);
    const auto call = [&](bool fails) {
        failure result;
        const auto service = [fails]() -> asio::awaitable<void> {
            if (fails)
                throw std::runtime_error("as asked");
            co_return;
        };
        path.async_call(service, [&](std::exception_ptr e) { result = e; });
        kit::run(io);
        return result.code();
    };
    BOOST_TEST(call(true) == errc::operation_failed);
    for (int i = 0; i != 10; ++i)
        BOOST_TEST(call(true) == errc::circuit_open);
    BOOST_TEST((outer.state() == circuit_state::closed));
    BOOST_TEST(outer.stats().ignored == 10U);
    manual_clock::advance(io, 10s);
    BOOST_TEST(!call(false));
    BOOST_TEST((inner.state() == circuit_state::closed));
}

BOOST_AUTO_TEST_CASE(a_breaker_around_a_full_bulkhead_does_not_open)
{
    for (const nanoseconds max_wait : {nanoseconds::max(), nanoseconds(1s)}) {
        breaker_type breaker(io, {.window = turnstile::consecutive_failures{2}});
        bulkhead_type bulkhead(io, {.limit = 1, .max_waiters = 1, .max_wait = max_wait});
        const auto path =
            turnstile::pipeline<manual_clock>(io).circuit_breaker(breaker).bulkhead(bulkhead);
        auto permit = bulkhead.try_acquire();
        int refused = 0;
        const auto service = []() -> asio::awaitable<void> { co_return; };
        for (int i = 0; i != 10; ++i)
            path.async_call(service, [&](std::exception_ptr e) { refused += e ? 1 : 0; });
        io.poll();
        manual_clock::advance(io, 1s);
        permit.release();
        kit::run(io);
        BOOST_TEST(refused == (max_wait == 1s ? 10 : 9));
        BOOST_TEST((breaker.state() == circuit_state::closed));
        BOOST_TEST(breaker.stats().failures == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_refusal_as_an_error_code_is_ignored_too)
{
    breaker_type breaker(io, {.window = turnstile::consecutive_failures{1}});
    for (const errc code : {errc::circuit_open, errc::rejected, errc::rate_limited}) {
        const std::size_t run = operation.started();
        breaker.async_call(operation, [](error_code, int) {});
        operation.fail(run, code);
        kit::run(io);
        BOOST_TEST((breaker.state() == circuit_state::closed));
    }
    breaker.async_call(operation, [](error_code, int) {});
    operation.fail(3, errc::timed_out);
    kit::run(io);
    BOOST_TEST((breaker.state() == circuit_state::open));
}

BOOST_AUTO_TEST_CASE(an_adaptive_limit_learns_nothing_from_a_refusal)
{
    bulkhead_type bulkhead(io, {.limit = 10, .adaptive = turnstile::aimd_options{}});
    bulkhead.async_call(operation, [](error_code, int) {});
    operation.fail(0, errc::circuit_open);
    kit::run(io);
    BOOST_TEST(bulkhead.limit() == 10U);
    BOOST_TEST(bulkhead.stats().failures == 0U);
}

BOOST_AUTO_TEST_CASE(a_user_defined_classifier_decides_about_refusals)
{
    breaker_type breaker(
        io, {.window = turnstile::consecutive_failures{1},
             .classify = [](const failure&) { return turnstile::call_outcome::failure; }});
    breaker.async_call(operation, [](error_code, int) {});
    operation.fail(0, errc::rate_limited);
    kit::run(io);
    BOOST_TEST((breaker.state() == circuit_state::open));
}

BOOST_AUTO_TEST_CASE(a_retry_does_not_repeat_programming_errors)
{
    for (const errc code :
         {errc::invalid_argument, errc::too_large, errc::not_locked, errc::over_release,
          errc::negative_count, errc::over_count, errc::context_mismatch})
        BOOST_TEST(attempts_at(error_code(code)) == 1U, turnstile::to_string(code));
    BOOST_TEST(attempts_at(thrown(std::logic_error(""))) == 1U);
    BOOST_TEST(attempts_at(thrown(std::out_of_range(""))) == 1U);
    BOOST_TEST(attempts_at(thrown_by([] { std::function<void()>()(); })) == 1U);
    BOOST_TEST(attempts_at(thrown_by([] { std::optional<int>().value(); })) == 1U);
    BOOST_TEST(attempts_at(thrown_by([] { std::get<int>(std::variant<char, int>()); })) == 1U);
    BOOST_TEST(attempts_at(thrown_by([] { std::any_cast<int>(std::any()); })) == 1U);
}

BOOST_AUTO_TEST_CASE(a_retry_repeats_other_failures)
{
    BOOST_TEST(attempts_at(error_code(asio::error::connection_reset)) == 3U);
    BOOST_TEST(attempts_at(error_code(errc::timed_out)) == 3U);
    // The same number in another category is another error.
    BOOST_TEST(attempts_at(error_code(static_cast<int>(errc::too_large),
                                      boost::system::generic_category())) == 3U);
    BOOST_TEST(attempts_at(thrown(std::runtime_error(""))) == 3U);
    BOOST_TEST(attempts_at(thrown(7)) == 3U);
}

BOOST_AUTO_TEST_CASE(a_retry_repeats_a_refusal_only_with_a_hint)
{
    for (const errc code : {errc::circuit_open, errc::rejected, errc::rate_limited}) {
        BOOST_TEST(attempts_at(error_code(code)) == 1U);
        BOOST_TEST(attempts_at(thrown(rejection(code, nanoseconds::max()))) == 1U);
        BOOST_TEST(attempts_at(thrown(rejection(code, 1s))) == 3U);
    }
    const turnstile::retry_options hinted{.retry_after = [](const failure&) { return 1s; }};
    BOOST_TEST(attempts_at(error_code(errc::circuit_open), hinted) == 3U);
    const turnstile::retry_options every{.retry_if = [](const failure&) { return true; }};
    BOOST_TEST(attempts_at(error_code(errc::circuit_open), every) == 3U);
    BOOST_TEST(attempts_at(thrown(std::logic_error("")), every) == 3U);
}

BOOST_AUTO_TEST_CASE(the_queue_of_a_bulkhead_is_bounded_by_default)
{
    turnstile::bulkhead_options usual;
    bulkhead_type bulkhead(io, {.limit = 1});
    auto permit = bulkhead.try_acquire();
    std::uint64_t rejected = 0;
    for (std::uint64_t i = 0; i != usual.max_waiters + 5; ++i)
        bulkhead.async_acquire([&](error_code ec, auto) { rejected += ec == errc::rejected; });
    io.poll();
    BOOST_TEST(rejected == 5U);
    permit.release();
    kit::run(io);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
