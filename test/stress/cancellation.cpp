// Cancellation slots that come to their end as their operations do, on another thread. Whether
// that is a race is for the thread sanitizer to say.
#include "kit/threads.hpp"

#include <turnstile/sync/event.hpp>
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
void race_with_completions(End end)
{
    constexpr int rounds = kit::rounds(20000);
    asio::io_context io;
    turnstile::semaphore s(io, 0);
    std::atomic<int> completed = 0;
    auto work = asio::make_work_guard(io);
    std::thread runner([&] { io.run(); });
    for (int i = 0; i != rounds; ++i) {
        auto signal = std::make_unique<asio::cancellation_signal>();
        s.async_acquire(
            asio::bind_cancellation_slot(signal->slot(), [&](error_code ec, auto permit) {
                (void)permit.detach();
                completed += ec ? 0 : 1;
            }));
        s.release();
        end(signal);
        while (completed != i + 1)
            std::this_thread::yield();
    }
    work.reset();
    runner.join();
    BOOST_TEST(completed == rounds);
}

BOOST_AUTO_TEST_SUITE(stress_cancellation)

BOOST_AUTO_TEST_CASE(a_signal_may_die_as_its_operation_completes)
{
    race_with_completions([](auto& signal) { signal.reset(); });
}

BOOST_AUTO_TEST_CASE(a_slot_may_be_cleared_as_its_operation_completes)
{
    race_with_completions([](auto& signal) { signal->slot().clear(); });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
