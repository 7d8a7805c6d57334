// SPDX-License-Identifier: BSL-1.0
// An operation that is granted may destroy the object at once, on another thread: the call that
// grants it must not use the object any more. The address sanitizer detects violations.
#include "kit/thread_executor.hpp"

#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>
#include <turnstile/resilience/rate_limiter.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::error_code;

template <class Object>
struct fixture {
    template <class Options>
    explicit fixture(const Options& options) : object(std::make_unique<Object>(io, options))
    {
    }
    ~fixture()
    {
        BOOST_TEST(!object);
        io.run();
    }

    // A handler that destroys the object.
    auto ending()
    {
        return asio::bind_executor(asio::any_io_executor(kit::thread_executor(io)),
                                   [this](error_code ec, auto&&... permit) {
                                       if (ec)
                                           return;
                                       (permit.release(), ...);
                                       object.reset();
                                       io.poll(); // a timer may keep the state
                                   });
    }
    void listen()
    {
        object->add_listener([](const auto&) {});
    }

    asio::io_context io;
    std::unique_ptr<Object> object;
};

BOOST_AUTO_TEST_SUITE(last_use)

BOOST_AUTO_TEST_CASE(a_permit_of_a_bulkhead_is_given_back)
{
    for (const auto max_wait : {turnstile::nanoseconds::max(), turnstile::nanoseconds(1h)}) {
        fixture<turnstile::bulkhead> f(
            turnstile::bulkhead_options{.limit = 1, .max_wait = max_wait});
        auto permit = f.object->try_acquire();
        f.object->async_acquire(f.ending());
        permit.release();
    }
}

BOOST_AUTO_TEST_CASE(a_permit_changes_an_adaptive_limit)
{
    fixture<turnstile::bulkhead> f(
        turnstile::bulkhead_options{.limit = 1, .adaptive = turnstile::aimd_options{}});
    f.listen();
    auto permit = f.object->try_acquire();
    f.object->async_acquire(f.ending());
    permit.success();
}

BOOST_AUTO_TEST_CASE(a_probe_closes_a_circuit)
{
    for (const bool has_generator : {false, true}) {
        turnstile::circuit_breaker_options options{.window = turnstile::consecutive_failures{1},
                                                   .open_for = 0ns};
        if (has_generator)
            options.break_duration = [](const auto&) { return turnstile::nanoseconds(0); };
        fixture<turnstile::circuit_breaker> f(options);
        f.object->try_acquire().failure();
        auto probe = f.object->try_acquire();
        BOOST_TEST(probe.is_probe());
        f.listen();
        f.object->async_wait_state(turnstile::circuit_state::closed, f.ending());
        probe.success();
    }
}

BOOST_AUTO_TEST_CASE(a_failure_opens_a_circuit)
{
    fixture<turnstile::circuit_breaker> f(turnstile::circuit_breaker_options{
        .window = turnstile::consecutive_failures{1}, .break_duration = [](const auto&) {
            BOOST_ERROR("asked after its end");
            return turnstile::nanoseconds(0);
        }});
    f.object->async_wait_state(turnstile::circuit_state::open, f.ending());
    f.object->try_acquire().failure();
}

BOOST_AUTO_TEST_CASE(a_reservation_is_released)
{
    fixture<turnstile::rate_limiter> f(turnstile::bandwidth{1, 1h, 2});
    BOOST_TEST(f.object->try_acquire());
    auto place = f.object->reserve(2);
    f.object->async_acquire(f.ending());
    f.listen();
    place.release();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
