// SPDX-License-Identifier: BSL-1.0
// select and all on several threads, without a strand: nothing is lost, and each call completes
// once.
#include "kit/threads.hpp"

#include <turnstile/channel/queue.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/work/all.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>
#include <variant>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;

BOOST_AUTO_TEST_SUITE(stress_select)

BOOST_AUTO_TEST_CASE(of_two_ready_queues_exactly_one_item_is_taken)
{
    constexpr int workers = 4;
    constexpr int rounds_of_each = kit::rounds(25'000, 500);
    constexpr int rounds = workers * rounds_of_each;
    asio::io_context io;
    ts::queue<int> a(io, ts::unbounded);
    ts::queue<int> b(io, ts::unbounded);
    std::atomic<int> taken = 0;
    const auto work = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != rounds_of_each; ++i) {
            static_cast<void>(a.try_push(i));
            static_cast<void>(b.try_push(i));
            co_await ts::async_select(a.async_pop(asio::deferred), b.async_pop(asio::deferred));
            ++taken;
        }
    };
    for (int i = 0; i != workers; ++i)
        asio::co_spawn(io, work, asio::detached);
    kit::run_on_threads(io);
    BOOST_TEST(taken == rounds);
    BOOST_TEST(a.size() + b.size() == static_cast<std::size_t>(rounds));
}

BOOST_AUTO_TEST_CASE(a_call_that_is_cancelled_while_it_ends_completes_once)
{
    constexpr int rounds = kit::rounds(5'000, 300);
    asio::io_context io;
    std::atomic<int> completed = 0;
    struct call {
        explicit call(asio::io_context& context)
            : strand(asio::make_strand(context)), q(context, 1), timer(context)
        {
        }
        asio::strand<asio::io_context::executor_type> strand;
        asio::cancellation_signal signal;
        ts::queue<int> q;
        asio::steady_timer timer;
    };
    for (int i = 0; i != rounds; ++i) {
        const auto c = std::make_shared<call>(io);
        c->timer.expires_after(std::chrono::microseconds(i % 50));
        asio::post(c->strand, [&, c] {
            ts::async_select(
                c->q.async_pop(asio::deferred), c->timer.async_wait(asio::deferred),
                asio::bind_executor(
                    c->strand,
                    asio::bind_cancellation_slot(
                        c->signal.slot(),
                        [&completed, c](std::exception_ptr, std::variant<int, std::monostate> r) {
                            ++completed;
                            if (r.index() == 1 && c->q.size() > 1)
                                BOOST_ERROR("too many items");
                        })));
        });
        asio::post(io, [c, i] { static_cast<void>(c->q.try_push(i)); });
        asio::post(c->strand, [c] { c->signal.emit(asio::cancellation_type::terminal); });
    }
    kit::run_on_threads(io);
    BOOST_TEST(completed == rounds);
}

BOOST_AUTO_TEST_CASE(all_of_several_coroutines_on_a_pool)
{
    constexpr int rounds = kit::rounds(5'000, 300);
    asio::thread_pool pool(2);
    std::atomic<int> sum = 0;
    const auto one = []() -> asio::awaitable<int> {
        co_await asio::post(asio::use_awaitable);
        co_return 1;
    };
    const auto work = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != rounds; ++i) {
            const auto [x, y, z] = co_await ts::async_all(one, one, one);
            sum += x + y + z;
        }
    };
    asio::co_spawn(pool, work, asio::detached);
    asio::co_spawn(pool, work, asio::detached);
    pool.join();
    BOOST_TEST(sum == 6 * rounds);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
