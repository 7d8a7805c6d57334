// SPDX-License-Identifier: BSL-1.0
// Allocation k fails while a timeout, a retry or a hedge is started: it starts wholly, or not
// at all. The handler has a strand already: making one does not survive a failure
// in Asio 1.81.
#include "alloc/heap.hpp"
#include "kit/completion.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/hedge.hpp>
#include <turnstile/resilience/retry.hpp>
#include <turnstile/resilience/timeout.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <new>
#include <tuple>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::completion;

template <class Start>
void sweep(Start start)
{
    std::ignore =
        asio::query(asio::system_executor(), asio::execution::context); // made once, and for good
    for (heap::failure how : {heap::failure::once, heap::failure::for_ever}) {
        bool met = true;
        for (std::size_t k = 0; met; ++k) {
            BOOST_TEST_REQUIRE(k < 100U);
            kit::drained_context io;
            turnstile::semaphore s(io, 0, 1);
            completion c(kit::dropping::is_expected);
            asio::cancellation_signal signal;
            const auto acquire = [&](auto token) { return s.async_acquire(std::move(token)); };
            auto handler = asio::bind_executor(
                asio::make_strand(io),
                asio::bind_cancellation_slot(signal.slot(), c.handler([](auto) {})));
            bool thrown = false;
            {
                heap::failing failing(k, how);
                try {
                    start(io.get_executor(), acquire, std::move(handler));
                } catch (const std::bad_alloc&) {
                    thrown = true;
                }
                failing.stop();
                met = failing.happened();
            }
            s.release();
            kit::run(io);
            BOOST_TEST(c.done() != c.dropped());
            BOOST_TEST(thrown == c.dropped());
            BOOST_TEST(s.available() == 1U);
        }
    }
}

BOOST_AUTO_TEST_SUITE(allocation_supervision)

BOOST_AUTO_TEST_CASE(a_timeout_starts_wholly_or_not_at_all)
{
    sweep([](const auto&, auto acquire, auto handler) {
        acquire(turnstile::timeout_after(1h, std::move(handler)));
    });
}

BOOST_AUTO_TEST_CASE(a_retry_starts_wholly_or_not_at_all)
{
    sweep([](const auto& executor, auto acquire, auto handler) {
        turnstile::async_retry(executor, {.max_attempts = 1, .attempt_timeout = 1h}, acquire,
                               std::move(handler));
    });
}

BOOST_AUTO_TEST_CASE(a_hedge_starts_wholly_or_not_at_all)
{
    sweep([](const auto& executor, auto acquire, auto handler) {
        turnstile::async_hedge(executor, {.delay = 1h}, acquire, std::move(handler));
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
