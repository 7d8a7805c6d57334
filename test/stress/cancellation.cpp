// SPDX-License-Identifier: BSL-1.0
// Cancellation slots that are cleared or destroyed while their operations complete on another
// thread. The thread sanitizer reports a data race.
#include "kit/threads.hpp"

#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <thread>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

// Grants one wait at a time, and calls `end` before it is delivered.
template <class End>
void race_with_completions(asio::io_context& io, const asio::any_io_executor& executor, End end)
{
    constexpr int rounds = kit::rounds(10000);
    turnstile::semaphore s(io, 0);
    std::atomic<int> completed = 0;
    kit::context_thread runner(io);
    const auto handler = [&](error_code ec, auto permit) {
        (void)permit.detach();
        completed += ec ? 0 : 1;
    };
    for (int i = 0; i != rounds; ++i) {
        auto signal = std::make_unique<asio::cancellation_signal>();
        s.async_acquire(
            asio::bind_cancellation_slot(signal->slot(), asio::bind_executor(executor, handler)));
        s.release();
        end(signal);
        while (completed != i + 1)
            std::this_thread::yield();
    }
    runner.finish();
    BOOST_TEST(completed == rounds);
}

// On the executor of the semaphore, and on another executor, to which a completion is posted
// without a lock.
template <class End>
void race_everywhere(End end)
{
    asio::io_context io;
    race_with_completions(io, io.get_executor(), end);
    io.restart();
    race_with_completions(io, asio::make_strand(io), end);
}

BOOST_AUTO_TEST_SUITE(stress_cancellation)

BOOST_AUTO_TEST_CASE(a_signal_may_be_destroyed_while_its_operation_completes)
{
    race_everywhere([](auto& signal) { signal.reset(); });
}

BOOST_AUTO_TEST_CASE(a_slot_may_be_cleared_while_its_operation_completes)
{
    race_everywhere([](auto& signal) { signal->slot().clear(); });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
