// SPDX-License-Identifier: BSL-1.0
// Calls of breakers, bulkheads and limiters that fail around the operation.
#include "kit/completion.hpp"
#include "kit/failing_allocator.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"
#include "resilience/limiters.hpp"

#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <new>
#include <optional>

namespace {

using namespace limiters;
using turnstile::error_code;

template <class Threading>
using bulkhead_of = turnstile::basic_bulkhead<asio::any_io_executor, Threading>;
template <class Threading>
using breaker_of =
    turnstile::basic_circuit_breaker<asio::any_io_executor, Threading, kit::manual_clock>;

const error_code no_memory = make_error_code(boost::system::errc::not_enough_memory);

// Succeeds, unless there is no memory to copy it.
struct large_operation {
    large_operation() = default;
    large_operation(large_operation&&) = default;
    large_operation(const large_operation&) { throw std::bad_alloc(); }

    template <class Token>
    auto operator()(Token&& token)
    {
        return asio::async_initiate<Token, void(error_code)>(
            [](auto handler) {
                auto executor = asio::get_associated_executor(handler, asio::system_executor());
                asio::post(executor,
                           [h = std::move(handler)]() mutable { std::move(h)(error_code()); });
            },
            token);
    }
};

template <class Stage>
void call_throws(Stage& stage)
{
    const large_operation operation;
    completion c(kit::dropping::is_expected);
    BOOST_CHECK_THROW(stage.async_call(operation, c.handler([] {})), std::bad_alloc);
    BOOST_TEST(c.dropped());
}

// A call that is granted while memory is exhausted.
template <class Stage, class LetIn>
void call_without_memory(asio::io_context& io, Stage& stage, LetIn let_in)
{
    kit::allocation_plan plan;
    completion c;
    stage.async_call(large_operation(),
                     asio::bind_allocator(kit::failing_allocator<void>(plan), c.handler([] {})));
    kit::poll_leaves_work(io);
    BOOST_TEST(!c.done());
    plan.fail = true;
    let_in();
    kit::run(io);
    BOOST_TEST(c.error() == no_memory);
    BOOST_TEST(plan.live() == 0U);
}

BOOST_AUTO_TEST_SUITE(resilience_calls)

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_that_cannot_be_copied_takes_no_place, P, kit::policies)
{
    kit::drained_context io;
    bulkhead_of<P> bulkhead(io, {.limit = 1});
    call_throws(bulkhead);
    BOOST_TEST(bulkhead.stats().in_flight == 0U);
    BOOST_TEST(bool(bulkhead.try_acquire()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nor_is_it_a_probe, P, kit::policies)
{
    kit::drained_context io;
    breaker_of<P> breaker(io, {.window = turnstile::consecutive_failures{1}, .open_for = 0ns});
    breaker.try_acquire().failure();
    call_throws(breaker);
    BOOST_TEST(breaker.stats().probes_out == 0U);
    BOOST_TEST(bool(breaker.try_acquire()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nor_does_it_use_a_rate_permit, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> limiter(io, per_second(1, 1));
    call_throws(limiter);
    BOOST_TEST(limiter.available() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_call_that_is_let_in_without_memory_fails_and_leaves, P,
                              kit::policies)
{
    kit::drained_context io;
    bulkhead_of<P> bulkhead(io, {.limit = 1});
    auto held = bulkhead.try_acquire();
    call_without_memory(io, bulkhead, [&] { held.release(); });
    BOOST_TEST(bulkhead.stats().in_flight == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(so_does_one_that_has_waited_for_a_rate_permit, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> limiter(io, per_second(1, 1));
    BOOST_TEST(limiter.try_acquire());
    call_without_memory(io, limiter, [] { kit::manual_clock::shift(1s); });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
