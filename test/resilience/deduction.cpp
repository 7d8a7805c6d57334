// SPDX-License-Identifier: BSL-1.0
// Objects made from an executor, without naming its type, can be awaited in an ordinary coroutine.
#include "kit/run.hpp"

#include <turnstile/turnstile.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <concepts>
#include <tuple>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using any = asio::any_io_executor;
using turnstile::circuit_state;

template <class T>
void is_ordinary(const T&)
{
    static_assert(std::same_as<typename T::executor_type, any>);
}

asio::awaitable<int> answer() { co_return 42; }

template <class Executor>
asio::awaitable<void> use_everything(Executor executor, bool& done)
{
    turnstile::basic_mutex mutex(executor);
    turnstile::basic_shared_mutex shared(executor);
    turnstile::basic_semaphore semaphore(executor, 1);
    turnstile::basic_event event(executor, true);
    turnstile::basic_auto_reset_event auto_reset(executor, true);
    turnstile::basic_condition condition(executor);
    turnstile::basic_latch latch(executor, 0);
    turnstile::basic_counter counter(executor);
    turnstile::basic_barrier barrier(executor, 1);
    turnstile::basic_rate_limiter limiter(executor, turnstile::per_second(1000, 1000));
    turnstile::basic_circuit_breaker breaker(executor);
    turnstile::basic_bulkhead bulkhead(executor);
    turnstile::basic_timeout timeout(executor, 1h);
    turnstile::basic_retry retry(executor);
    turnstile::basic_hedge hedge(executor, turnstile::hedge_options{.delay = 1h});
    const auto pipeline = turnstile::pipeline(executor).timeout(1h).circuit_breaker(breaker);
    is_ordinary(mutex);
    is_ordinary(condition);
    is_ordinary(pipeline);
    is_ordinary(breaker);

    std::ignore = co_await mutex.async_lock();
    std::ignore = co_await shared.async_lock_shared();
    std::ignore = co_await semaphore.async_acquire();
    co_await event.async_wait();
    co_await auto_reset.async_wait();
    co_await latch.async_wait();
    co_await counter.async_wait_zero();
    co_await barrier.async_arrive_and_wait();
    co_await limiter.async_acquire();
    std::ignore = co_await bulkhead.async_acquire();
    co_await breaker.async_wait_state(circuit_state::closed);
    BOOST_TEST(co_await limiter.async_call(&answer) == 42);
    BOOST_TEST(co_await breaker.async_call(&answer) == 42);
    BOOST_TEST(co_await bulkhead.async_call(&answer) == 42);
    BOOST_TEST(co_await timeout.async_call(&answer) == 42);
    BOOST_TEST(co_await retry.async_call(&answer) == 42);
    BOOST_TEST(co_await hedge.async_call(&answer) == 42);
    BOOST_TEST(co_await pipeline.async_call(&answer) == 42);
    BOOST_TEST(co_await turnstile::pipeline(executor).async_call(&answer) == 42);
    BOOST_TEST(co_await turnstile::async_with_timeout(executor, 1h, &answer) == 42);
    const turnstile::retry_options retrying;
    const turnstile::hedge_options hedging{.delay = 1h};
    BOOST_TEST(co_await turnstile::async_retry(executor, retrying, &answer) == 42);
    BOOST_TEST(co_await turnstile::async_hedge(executor, hedging, &answer) == 42);
    done = true;
}

BOOST_AUTO_TEST_SUITE(deduction)

BOOST_AUTO_TEST_CASE(an_ordinary_coroutine_awaits_all_that_is_made_from_an_executor)
{
    kit::drained_context io;
    bool done = false;
    asio::co_spawn(io, use_everything(io.get_executor(), done), asio::detached);
    kit::run(io);
    BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE(and_all_that_is_made_from_a_strand)
{
    kit::drained_context io;
    bool done = false;
    const auto strand = asio::make_strand(io);
    asio::co_spawn(strand, use_everything(strand, done), asio::detached);
    kit::run(io);
    BOOST_TEST(done);
}

// A type that is named stays.
BOOST_AUTO_TEST_CASE(an_executor_type_that_is_named_is_kept)
{
    using executor = asio::io_context::executor_type;
    kit::drained_context io;
    turnstile::basic_mutex<executor> mutex(io.get_executor());
    turnstile::basic_pipeline<executor, turnstile::default_clock> pipeline(io.get_executor());
    static_assert(std::same_as<decltype(mutex)::executor_type, executor>);
    static_assert(std::same_as<decltype(pipeline)::executor_type, executor>);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
