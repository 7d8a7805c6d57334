// SPDX-License-Identifier: BSL-1.0
// An async_run that is cancelled at each step of its job: while it waits for a place, while its job
// is queued, runs, and has ended.
#include "kit/completion.hpp"
#include "kit/run.hpp"

#include <turnstile/work/worker_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using ts::error_code;

using pools = std::tuple<ts::worker_pool<int, int>, ts::local::worker_pool<int, int>>;

// Returns false if the jobs have ended before step k.
template <class Pool, class MakeHandler>
bool cancel_at_step(std::size_t k, MakeHandler make_handler)
{
    kit::drained_context io;
    std::array<int, 4> starts{};
    Pool pool(io, {.workers = 1, .capacity = 1}, make_handler(io, starts));
    BOOST_TEST(pool.try_submit(0));
    kit::completion before;
    kit::completion cancelled;
    kit::completion after;
    asio::cancellation_signal stop;
    pool.async_submit(1, before.handler([] {}));
    pool.async_run(2, asio::bind_cancellation_slot(
                          stop.slot(), cancelled.handler([](int n) { BOOST_TEST(n == 2); })));
    pool.async_submit(3, after.handler([] {}));
    std::size_t steps = 0;
    while (steps != k && io.run_one() != 0)
        ++steps;
    stop.emit(asio::cancellation_type::terminal);
    kit::run(io);
    BOOST_TEST(before.succeeded());
    BOOST_TEST(after.succeeded());
    BOOST_TEST(cancelled.done());
    BOOST_TEST((cancelled.succeeded() || cancelled.aborted()));
    for (const int job : {0, 1, 3})
        BOOST_TEST(starts[static_cast<std::size_t>(job)] == 1);
    BOOST_TEST(starts[2] <= 1);
    BOOST_TEST((starts[2] == 1 || !cancelled.succeeded()));
    const auto stats = pool.stats();
    BOOST_TEST(stats.done + stats.failed == static_cast<std::size_t>(3 + starts[2]));
    BOOST_TEST(stats.queued + stats.running + stats.waiting == 0U);
    kit::completion idle;
    pool.async_idle(idle.handler([] {}));
    kit::run(io);
    BOOST_TEST(idle.succeeded());
    return steps == k;
}

template <class Pool, class MakeHandler>
void cancel_at_each_step(MakeHandler make_handler)
{
    std::size_t k = 0;
    while (cancel_at_step<Pool>(k, make_handler))
        ++k;
    BOOST_TEST(k > 4U);
}

BOOST_AUTO_TEST_SUITE(worker_pool_cancellation)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_run_is_cancelled_at_each_step, Pool, pools)
{
    cancel_at_each_step<Pool>([](asio::io_context&, auto& starts) {
        return [&starts](int& job) -> asio::awaitable<int> {
            ++starts[static_cast<std::size_t>(job)];
            co_await asio::post(asio::use_awaitable);
            co_await asio::post(asio::use_awaitable);
            co_return job;
        };
    });
    cancel_at_each_step<Pool>([](asio::io_context& io, auto& starts) {
        return [&](int& job) {
            ++starts[static_cast<std::size_t>(job)];
            return [&io, job](auto token) {
                return asio::async_initiate<decltype(token), void(error_code, int)>(
                    [&io, job](auto h) {
                        asio::post(io, [h = std::move(h), job]() mutable {
                            std::move(h)(error_code(), job);
                        });
                    },
                    token);
            };
        };
    });
    cancel_at_each_step<Pool>([](asio::io_context&, auto& starts) {
        return [&](int& job) {
            ++starts[static_cast<std::size_t>(job)];
            return job;
        };
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
