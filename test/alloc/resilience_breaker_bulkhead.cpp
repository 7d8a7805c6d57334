// SPDX-License-Identifier: BSL-1.0
// What calls through circuit breakers and bulkheads take from the heap: nothing; and what is left
// of a call that fails for want of memory: nothing, either.
#include "alloc/heap.hpp"
#include "alloc/sweep.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>
#include <turnstile/resilience/keyed_circuit_breaker.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <functional>
#include <new>
#include <tuple>
#include <vector>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

using breakers = std::tuple<turnstile::circuit_breaker, turnstile::local::circuit_breaker>;
using bulkheads = std::tuple<turnstile::bulkhead, turnstile::local::bulkhead>;

// The allocations of body(), which is called once before.
template <class Body>
std::size_t allocations_of(Body body)
{
    body();
    const std::size_t before = heap::allocations();
    for (int i = 0; i != 100; ++i)
        body();
    return heap::allocations() - before;
}

BOOST_AUTO_TEST_SUITE(resilience_allocations)

BOOST_AUTO_TEST_CASE_TEMPLATE(permits_of_a_breaker_do_not_allocate_in_any_state, B, breakers)
{
    asio::io_context io;
    for (const turnstile::circuit_breaker_options& options :
         {turnstile::circuit_breaker_options{},
          turnstile::circuit_breaker_options{.window = turnstile::count_window{}},
          turnstile::circuit_breaker_options{.window = turnstile::time_window{}}}) {
        B breaker(io, options);
        BOOST_TEST(allocations_of([&] { breaker.try_acquire().success(); }) == 0U);
        BOOST_TEST(allocations_of([&] {
                       breaker.try_acquire().failure(); // until it is open
                   }) == 0U);
        BOOST_TEST(allocations_of([&] {
                       breaker.reset();
                       breaker.force_open();
                   }) == 0U);
    }
}

using keyed_breakers =
    std::tuple<turnstile::keyed_circuit_breaker<int>, turnstile::local::keyed_circuit_breaker<int>>;

BOOST_AUTO_TEST_CASE_TEMPLATE(permits_of_a_known_key_do_not_allocate, B, keyed_breakers)
{
    asio::io_context io;
    B breaker(io);
    BOOST_TEST(allocations_of([&] { breaker.try_acquire(1).success(); }) == 0U);
    BOOST_TEST(allocations_of([&] {
                   breaker.try_acquire(1).failure(); // until it is open
               }) == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(permits_of_a_bulkhead_do_not_allocate, B, bulkheads)
{
    asio::io_context io;
    B fixed(io);
    BOOST_TEST(allocations_of([&] { auto permit = fixed.try_acquire(); }) == 0U);
    B adaptive(io, {.adaptive = turnstile::gradient_options{}});
    BOOST_TEST(allocations_of([&] { auto permit = adaptive.try_acquire(); }) == 0U);
    BOOST_TEST(allocations_of([&] { adaptive.try_acquire().failure(); }) == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_place_in_a_bulkhead_is_awaited_without_allocating, B, bulkheads)
{
    asio::io_context io;
    B bulkhead(io);
    std::size_t before = 0;
    std::size_t after = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != 400; ++i) {
                if (i == 300)
                    before = heap::allocations();
                auto permit = co_await bulkhead.async_acquire();
            }
            after = heap::allocations();
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(after == before);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_call_that_cannot_start_for_want_of_memory_keeps_no_place, B,
                              bulkheads)
{
    for (heap::failure how : {heap::failure::once, heap::failure::for_ever}) {
        for (std::size_t k = 0;; ++k) {
            BOOST_TEST_REQUIRE(k < 100U);
            kit::drained_context io;
            B bulkhead(io, {.limit = 1});
            turnstile::circuit_breaker breaker(io);
            asio::steady_timer timer(io, asio::steady_timer::time_point::min());
            int completed = 0;
            heap::failing failing(k, how);
            try {
                bulkhead.async_call(timer.async_wait(asio::deferred),
                                    [&](error_code) { ++completed; });
            } catch (const std::bad_alloc&) {
                ++completed;
            }
            try {
                breaker.async_call(timer.async_wait(asio::deferred),
                                   [&](error_code) { ++completed; });
            } catch (const std::bad_alloc&) {
                ++completed;
            }
            failing.stop();
            kit::run(io);
            BOOST_TEST(completed == 2);
            BOOST_TEST(bulkhead.stats().in_flight == 0U);
            if (!failing.happened())
                break;
        }
    }
}

// All keys are in one shard.
struct same_shard {
    std::size_t operator()(int) const noexcept { return 1; }
};

BOOST_AUTO_TEST_CASE_TEMPLATE(a_call_for_a_new_key_that_fails_for_want_of_memory_leaves_nothing, P,
                              kit::policies)
{
    using breaker_type = turnstile::basic_keyed_circuit_breaker<int, same_shard, std::equal_to<int>,
                                                                asio::any_io_executor, P>;
    heap::sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        breaker_type breaker(io, {.classify = [](const turnstile::failure&) {
                                 return turnstile::call_outcome::ignored;
                             }});
        std::vector<typename breaker_type::permit_type> others;
        for (int key = 10; key != 17; ++key) // the table is full
            others.push_back(breaker.try_acquire(key));
        asio::steady_timer timer(io, asio::steady_timer::time_point::min());
        int completed = 0;
        bool happened = false;
        {
            heap::failing failing(k, how);
            try {
                breaker.async_call(1, timer.async_wait(asio::deferred),
                                   [&](error_code) { ++completed; });
            } catch (const std::bad_alloc&) {
                ++completed;
            }
            happened = failing.happened();
        }
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                heap::failing failing(k, how);
                try {
                    co_await breaker.async_call(
                        2, []() -> asio::awaitable<void> { co_return; }, asio::use_awaitable);
                } catch (const std::bad_alloc&) {
                }
                happened = happened || failing.happened();
                ++completed;
            },
            asio::detached);
        kit::run(io);
        BOOST_TEST(completed == 2);
        breaker.purge();
        BOOST_TEST(breaker.size() == others.size());
        return happened;
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
