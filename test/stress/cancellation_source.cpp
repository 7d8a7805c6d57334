// SPDX-License-Identifier: BSL-1.0
// Sources that are cancelled while other threads bind, complete and destroy.
#include "kit/threads.hpp"

#include <turnstile/sync/event.hpp>
#include <turnstile/work/cancellation_source.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using ts::error_code;

BOOST_AUTO_TEST_SUITE(stress_cancellation_source)

BOOST_AUTO_TEST_CASE(binding_completing_and_cancelling_at_the_same_time)
{
    constexpr int rounds = kit::rounds(2'000, 100);
    asio::io_context io;
    std::atomic<int> completed = 0;
    struct round {
        explicit round(asio::io_context& context) : event(context), stop(std::in_place, context) {}
        ts::event event;
        std::optional<ts::cancellation_source> stop;
        std::atomic<int> left = 3;
    };
    for (int i = 0; i != rounds; ++i) {
        const auto r = std::make_shared<round>(io);
        const auto count = [&completed, r](error_code) { ++completed; };
        for (int j = 0; j != 4; ++j)
            r->event.async_wait(r->stop->bind(asio::bind_executor(asio::make_strand(io), count)));
        const auto leave = [r] {
            if (--r->left == 0)
                r->stop.reset(); // the last one destroys the source
        };
        asio::post(io, [r, leave] {
            r->stop->cancel();
            leave();
        });
        asio::post(io, [r, leave] {
            r->event.set();
            leave();
        });
        asio::post(io, [r, leave, count, &io] {
            const ts::cancellation_source child = r->stop->child();
            r->event.async_wait(child.bind(asio::bind_executor(asio::make_strand(io), count)));
            leave();
        });
    }
    kit::run_on_threads(io);
    BOOST_TEST(completed == rounds * 5);
}

BOOST_AUTO_TEST_CASE(a_coroutine_on_a_strand_is_cancelled_from_another_thread)
{
    constexpr int rounds = kit::rounds(2'000, 100);
    asio::io_context io;
    std::atomic<int> ended = 0;
    for (int i = 0; i != rounds; ++i) {
        const auto stop = std::make_shared<ts::cancellation_source>(io);
        const auto work = [stop]() -> asio::awaitable<void> {
            asio::steady_timer timer(co_await asio::this_coro::executor,
                                     std::chrono::steady_clock::time_point::max());
            co_await asio::post(asio::use_awaitable);
            co_await timer.async_wait(asio::use_awaitable);
        };
        asio::co_spawn(asio::make_strand(io), work,
                       stop->bind([&ended](std::exception_ptr) { ++ended; }));
        asio::post(io, [stop] { stop->cancel(); });
    }
    kit::run_on_threads(io);
    BOOST_TEST(ended == rounds);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
