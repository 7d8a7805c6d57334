// SPDX-License-Identifier: BSL-1.0
// Cancellation slots that come to their end as their operations do, on another thread. Whether
// that is a race is for the thread sanitizer to say.
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

// Lets one wait at a time go, and calls `end` while it is on its way.
template <class End>
void race_with_completions(asio::io_context& io, const asio::any_io_executor& executor, End end)
{
    constexpr int rounds = kit::rounds(10000);
    turnstile::semaphore s(io, 0);
    std::atomic<int> completed = 0;
    auto work = asio::make_work_guard(io);
    std::thread runner([&] { io.run(); });
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
    work.reset();
    runner.join();
    BOOST_TEST(completed == rounds);
}

// Where the semaphore is, and elsewhere: there a completion comes by without a lock.
template <class End>
void race_everywhere(End end)
{
    asio::io_context io;
    race_with_completions(io, io.get_executor(), end);
    io.restart();
    race_with_completions(io, asio::make_strand(io), end);
}

BOOST_AUTO_TEST_SUITE(stress_cancellation)

BOOST_AUTO_TEST_CASE(a_signal_may_die_as_its_operation_completes)
{
    race_everywhere([](auto& signal) { signal.reset(); });
}

BOOST_AUTO_TEST_CASE(a_slot_may_be_cleared_as_its_operation_completes)
{
    race_everywhere([](auto& signal) { signal->slot().clear(); });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
