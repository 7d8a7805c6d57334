// SPDX-License-Identifier: BSL-1.0
// Timeouts, retries and hedges around a semaphore, disturbed at every step: no permit is lost,
// and every call completes once.
#include "kit/chaos_executor.hpp"
#include "kit/completion.hpp"
#include "kit/joining_thread.hpp"
#include "kit/seed.hpp"
#include "kit/wrapping_executor.hpp"

#include <turnstile/core/error.hpp>
#include <turnstile/resilience/hedge.hpp>
#include <turnstile/resilience/retry.hpp>
#include <turnstile/resilience/timeout.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <thread>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;
using turnstile::nanoseconds;
using turnstile::semaphore;

// One handler type for all calls.
using handler = decltype(asio::bind_cancellation_slot(
    std::declval<asio::cancellation_slot>(),
    std::declval<completion>().handler(std::function<void(semaphore::permit_type)>())));

struct scene {
    explicit scene(std::uint64_t seed) : context(seed), s(context.get_executor(), 0, 5) {}

    handler handler_of(std::size_t i)
    {
        return asio::bind_cancellation_slot(
            signals[i].slot(),
            done[i].handler(std::function<void(semaphore::permit_type)>([](auto) {})));
    }
    auto acquire()
    {
        return [this](auto token) { return s.async_acquire(std::move(token)); };
    }
    asio::any_io_executor executor() { return context.get_executor(); }

    kit::chaos_context context;
    semaphore s;
    std::array<asio::cancellation_signal, 2> signals;
    std::array<completion, 2> done;
};

// Two calls, two permits, and a cancellation of the first at step k, for every k.
template <class Start>
void sweep(Start start)
{
    kit::for_each_seed(200, [&](std::uint64_t seed) {
        for (int k = 0, steps = 1; k <= steps; ++k) {
            scene on(seed);
            steps = 0;
            start(on, 0);
            start(on, 1);
            BOOST_TEST(!on.done[0].done());
            const auto disturb = [&] {
                if (steps == k)
                    on.signals[0].emit(asio::cancellation_type::terminal);
                if (steps == 1)
                    on.s.release(2);
            };
            disturb();
            while (on.context.run_one()) {
                ++steps;
                disturb();
            }
            if (steps < 1) {
                on.s.release(2);
                on.context.run();
            }
            BOOST_TEST_REQUIRE(on.done[0].done());
            BOOST_TEST_REQUIRE(on.done[1].done());
            BOOST_TEST_REQUIRE((on.done[0].succeeded() || on.done[0].aborted() ||
                                on.done[0].error() == errc::timed_out));
            BOOST_TEST_REQUIRE(on.s.available() == 2U);
        }
    });
}

struct post_plan {
    bool overtaking = true; // what is posted runs on another thread before the post returns
    bool refuse = false;    // the next post throws; but what is due runs before
};

struct planned {
    post_plan* plan;

    template <class Inner, class F>
    void execute(const Inner& inner, F f) const
    {
        const auto poll_elsewhere = [&inner] {
            kit::joining_thread([&inner] { asio::query(inner, asio::execution::context).poll(); });
        };
        if (std::exchange(plan->refuse, false)) {
            poll_elsewhere();
            throw std::bad_alloc();
        }
        inner.execute(std::move(f));
        if (plan->overtaking && !inner.running_in_this_thread())
            poll_elsewhere();
    }
};

struct overtaken {
    post_plan plan;
    completion done;
    asio::io_context io;

    auto executor() { return kit::wrapping_executor{io.get_executor(), planned{&plan}}; }
    auto handler()
    {
        return asio::bind_executor(executor(), done.handler([] {}));
    }
    void expect(error_code error)
    {
        BOOST_TEST(!done.done());
        plan.overtaking = false;
        io.restart();
        io.run();
        BOOST_TEST(done.done());
        BOOST_TEST(done.error() == error);
    }
};

const auto throwing = [](auto token) {
    return asio::async_initiate<decltype(token), void(error_code)>(
        [](auto) { throw turnstile::system_error(asio::error::no_memory); }, token);
};

BOOST_AUTO_TEST_SUITE(resilience_supervision)

BOOST_AUTO_TEST_CASE(a_timeout_may_be_over_on_another_thread_before_its_initiation_ends)
{
    overtaken on;
    asio::steady_timer timer(on.io, asio::steady_timer::time_point::max());
    timer.async_wait(turnstile::timeout_after(0s, on.handler()));
    on.expect(errc::timed_out);
}

BOOST_AUTO_TEST_CASE(so_may_an_attempt_that_could_not_be_initiated)
{
    overtaken on;
    turnstile::async_retry(on.executor(), {.max_attempts = 1}, throwing, on.handler());
    on.expect(asio::error::no_memory);
}

BOOST_AUTO_TEST_CASE(without_memory_to_tell_of_a_failure_it_is_thrown_or_told_but_not_both)
{
    overtaken on;
    on.plan.refuse = true;
    on.done = completion(kit::dropping::is_expected);
    bool thrown = false;
    try {
        turnstile::async_with_timeout(on.executor(), 1ns, throwing, on.handler());
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    on.io.restart();
    on.io.run();
    BOOST_TEST(thrown);
    BOOST_TEST(on.done.dropped());
}

BOOST_AUTO_TEST_CASE(a_timeout_loses_nothing_whenever_it_is_cancelled)
{
    sweep([](scene& on, std::size_t i) {
        on.s.async_acquire(turnstile::timeout_after(nanoseconds::max(), on.handler_of(i)));
    });
}

BOOST_AUTO_TEST_CASE(a_timeout_that_is_over_at_once_loses_nothing)
{
    sweep([](scene& on, std::size_t i) {
        const nanoseconds limit = i == 0 ? 0s : nanoseconds::max();
        on.s.async_acquire(turnstile::timeout_after(limit, on.handler_of(i)));
    });
}

BOOST_AUTO_TEST_CASE(a_retry_loses_nothing_whenever_it_is_cancelled)
{
    sweep([](scene& on, std::size_t i) {
        turnstile::async_retry(on.executor(), {.attempt_timeout = nanoseconds::max()}, on.acquire(),
                               on.handler_of(i));
    });
}

BOOST_AUTO_TEST_CASE(a_hedge_loses_nothing_whenever_it_is_cancelled)
{
    sweep([](scene& on, std::size_t i) {
        turnstile::async_hedge(on.executor(), {.delay = nanoseconds::max()}, on.acquire(),
                               on.handler_of(i));
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
