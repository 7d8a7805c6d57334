// SPDX-License-Identifier: BSL-1.0
// Operations that are timed out, retried, hedged and cancelled on several threads, without a
// strand.
#include "kit/threads.hpp"

#include <turnstile/resilience/hedge.hpp>
#include <turnstile/resilience/retry.hpp>
#include <turnstile/resilience/timeout.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::errc;
using turnstile::error_code;

constexpr int rounds = kit::rounds(400, 8);

BOOST_AUTO_TEST_SUITE(stress_timeout)

// The intermediate steps of a composed operation race with its deadline.
BOOST_AUTO_TEST_CASE(a_composed_read_on_several_threads_completes_once)
{
    asio::io_context io;
    struct connection {
        asio::readable_pipe in;
        asio::writable_pipe out;
        std::array<char, 8> buffer{};
    };
    std::atomic<int> completed = 0;
    std::atomic<int> wrong = 0;
    for (int i = 0; i != rounds; ++i) {
        auto c = std::make_shared<connection>(
            connection{asio::readable_pipe(io), asio::writable_pipe(io)});
        asio::connect_pipe(c->in, c->out);
        asio::async_read(c->in, asio::buffer(c->buffer),
                         turnstile::timeout_after(std::chrono::microseconds(i % 300),
                                                  [&, c](error_code ec, std::size_t n) {
                                                      ++completed;
                                                      if (ec ? ec != errc::timed_out : n != 8)
                                                          ++wrong;
                                                  }));
        for (int part = 0; part != 4; ++part)
            asio::post(io, [c] {
                error_code ignored;
                asio::write(c->out, asio::buffer("ab", 2), ignored);
            });
    }
    kit::run_on_threads(io);
    BOOST_TEST(completed == rounds);
    BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(an_operation_that_ends_inside_its_initiation_completes)
{
    asio::thread_pool pool(3);
    std::atomic<int> completed = 0;
    const auto count = [&](error_code) { ++completed; };
    const auto quick = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [&](auto handler) {
                asio::post(pool, [h = std::move(handler)]() mutable { h(error_code()); });
            },
            token);
    };
    const auto throwing = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [](auto) { throw turnstile::system_error(asio::error::no_memory); }, token);
    };
    const turnstile::retry_options once{.max_attempts = 1};
    for (int i = 0; i != 50 * rounds; ++i) {
        turnstile::async_with_timeout(pool.get_executor(), 1h, quick, count);
        turnstile::async_with_timeout(pool.get_executor(), 0s, quick, count);
        turnstile::async_retry(pool.get_executor(), once, throwing, count);
    }
    pool.join();
    BOOST_TEST(completed == 150 * rounds);
}

BOOST_AUTO_TEST_CASE(no_permit_is_lost_to_a_timeout_or_to_a_cancellation_on_another_thread)
{
    asio::io_context io;
    turnstile::semaphore s(io, 2, 2);
    std::atomic<int> completed = 0;
    std::vector<asio::cancellation_signal> signals(rounds);
    for (int i = 0; i != rounds; ++i) {
        auto& signal = signals[static_cast<std::size_t>(i)];
        asio::post(io, [&, i] {
            s.async_acquire(turnstile::timeout_after(
                std::chrono::microseconds(i % 100),
                asio::bind_cancellation_slot(
                    signal.slot(),
                    [&](error_code, turnstile::semaphore::permit_type) { ++completed; })));
            if (i % 3 == 0) // emitted on any thread of the context
                asio::post(io, [&] { signal.emit(asio::cancellation_type::terminal); });
        });
    }
    kit::run_on_threads(io);
    BOOST_TEST(completed == rounds);
    BOOST_TEST(s.available() == 2U);
}

BOOST_AUTO_TEST_CASE(retries_and_hedges_complete_once_and_await_all_attempts)
{
    asio::io_context io;
    std::atomic<int> running = 0;
    std::atomic<int> left_behind = 0;
    std::atomic<int> completed = 0;
    std::atomic<int> turn = 0;
    // Fails, succeeds at once, or takes longer than its timeout.
    const auto flaky = [&]() -> asio::awaitable<int> {
        struct scope {
            std::atomic<int>& n;
            explicit scope(std::atomic<int>& r) : n(r) { ++n; }
            ~scope() { --n; }
        } counted(running);
        const int mine = ++turn;
        asio::steady_timer timer(co_await asio::this_coro::executor);
        timer.expires_after(mine % 3 == 0 ? std::chrono::microseconds(0) : 1h);
        if (mine % 3 == 1)
            throw turnstile::system_error(asio::error::connection_refused);
        co_await timer.async_wait(asio::use_awaitable);
        co_return mine;
    };
    const turnstile::retry_options each{.max_attempts = turnstile::retry_options::unlimited,
                                        .backoff =
                                            turnstile::backoff::constant(10us).with_full_jitter(),
                                        .attempt_timeout = 200us};
    turnstile::retry retry(io.get_executor(), each);
    turnstile::hedge hedge(io.get_executor(), {.delay = 50us, .max_attempts = 4});
    const auto hedged = [&](auto token) { return hedge.async_call(flaky, std::move(token)); };
    for (int i = 0; i != rounds / 4; ++i)
        asio::post(io, [&] {
            retry.async_call(hedged, [&](std::exception_ptr e, int) { completed += e ? 0 : 1; });
        });
    kit::run_on_threads(io);
    left_behind = running.load();
    BOOST_TEST(completed == rounds / 4);
    BOOST_TEST(left_behind == 0);
    BOOST_TEST(retry.stats().succeeded == static_cast<std::uint64_t>(rounds / 4));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
