// SPDX-License-Identifier: BSL-1.0
// The end of a worker_pool: drained and discarded, with a deadline, and destroyed.
#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/run.hpp"

#include <turnstile/sync/event.hpp>
#include <turnstile/work/worker_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using namespace std::chrono_literals;
using kit::manual_clock;
using ts::error_code;
using ts::shutdown_mode;
using numbers = std::vector<int>;

using policies = std::tuple<ts::thread_safe, ts::strand_confined>;

// A pool whose jobs wait for the gate. Its jobs are move-only, and say whether they were moved.
template <class Threading>
struct fixture {
    using job = std::unique_ptr<int>;
    using pool_type =
        ts::basic_worker_pool<job, void, asio::any_io_executor, Threading, manual_clock>;

    explicit fixture(ts::worker_pool_options<job> o = {.workers = 2}) : gate(io)
    {
        manual_clock::reset();
        o.on_error = [this](job& j, std::exception_ptr e) {
            failed.push_back(*j);
            last_error = ts::failure(std::move(e)).code();
        };
        o.on_discard = [this](job&& j) {
            const job taken = std::move(j);
            discarded.push_back(*taken);
        };
        pool.emplace(io, std::move(o), [this](job& j) -> asio::awaitable<void> {
            co_await gate.async_wait();
            done.push_back(*j);
        });
    }
    void submit(int from, int to)
    {
        for (int i = from; i != to; ++i)
            BOOST_TEST(pool->try_submit(std::make_unique<int>(i)));
        kit::poll_leaves_work(io);
    }

    kit::drained_context io;
    ts::event gate;
    numbers done;
    numbers failed;
    numbers discarded;
    error_code last_error;
    std::optional<pool_type> pool;
};

BOOST_AUTO_TEST_SUITE(worker_pool_shutdown)

BOOST_AUTO_TEST_CASE_TEMPLATE(drained_jobs_all_run, Threading, policies)
{
    fixture<Threading> f;
    f.submit(0, 6);
    f.pool->pause();
    kit::completion ended;
    f.pool->async_shutdown(ended.handler([&] { BOOST_TEST(f.done.size() == 6U); }));
    kit::poll_leaves_work(f.io);
    BOOST_TEST(!ended.done());
    BOOST_TEST(f.pool->is_closed());
    f.gate.set();
    kit::run(f.io);
    BOOST_TEST(ended.succeeded());
    BOOST_TEST(f.discarded.empty());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(discarded_jobs_reach_on_discard_once, Threading, policies)
{
    fixture<Threading> f;
    f.submit(0, 6);
    kit::completion ended;
    kit::completion again;
    f.pool->async_shutdown(shutdown_mode::discard, ended.handler([] {}));
    f.pool->async_shutdown(shutdown_mode::discard, again.handler([] {}));
    kit::poll_leaves_work(f.io);
    BOOST_TEST(f.discarded == (numbers{2, 3, 4, 5}), boost::test_tools::per_element());
    BOOST_TEST(!ended.done());
    f.gate.set();
    kit::run(f.io);
    BOOST_TEST(ended.succeeded());
    BOOST_TEST(again.succeeded());
    BOOST_TEST(f.done.size() == 2U);
    BOOST_TEST(f.pool->stats().discarded == 4U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(after_the_deadline_jobs_are_cut_off_and_awaited, Threading, policies)
{
    fixture<Threading> f;
    f.submit(0, 4);
    kit::completion ended;
    f.pool->async_shutdown(shutdown_mode::drain, 10ms, ended.handler([] {}));
    manual_clock::advance(f.io, 9ms);
    BOOST_TEST(!ended.done());
    BOOST_TEST(f.failed.empty());
    manual_clock::advance(f.io, 1ms);
    kit::run(f.io);
    BOOST_TEST((ended.error() == ts::errc::timed_out));
    BOOST_TEST(f.failed == (numbers{0, 1}), boost::test_tools::per_element());
    BOOST_TEST((f.last_error == asio::error::operation_aborted));
    BOOST_TEST(f.discarded == (numbers{2, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_shutdown_in_time_leaves_no_timer, Threading, policies)
{
    fixture<Threading> f;
    f.submit(0, 2);
    kit::completion ended;
    f.pool->async_shutdown(shutdown_mode::discard, 10ms, ended.handler([] {}));
    f.gate.set();
    kit::run(f.io); // returns without the clock being moved
    BOOST_TEST(ended.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_deadline_of_zero_cancels_at_once, Threading, policies)
{
    fixture<Threading> f;
    f.submit(0, 3);
    kit::completion ended;
    f.pool->async_shutdown(shutdown_mode::discard, 0ms, ended.handler([] {}));
    kit::run(f.io);
    BOOST_TEST((ended.error() == ts::errc::timed_out));
    BOOST_TEST(f.failed.size() == 2U);
    BOOST_TEST(f.discarded.size() == 1U);
    kit::completion late; // nothing is left
    f.pool->async_idle(late.handler([] {}));
    kit::run(f.io);
    BOOST_TEST(late.succeeded());
}

// Its worker has yet to leave when the handler of async_run is called.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_deadline_behind_the_last_job_cuts_nothing_off, Threading, policies)
{
    kit::drained_context io;
    ts::basic_worker_pool<int, void, asio::any_io_executor, Threading> pool(
        io, {}, [](int&) -> asio::awaitable<void> { co_return; });
    kit::completion ran;
    kit::completion ended;
    pool.async_run(1, ran.handler([&] {
        pool.async_shutdown(shutdown_mode::drain, 0ns, ended.handler([] {}));
    }));
    kit::run(io);
    BOOST_TEST(ran.succeeded());
    BOOST_TEST(ended.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_second_call_makes_a_shutdown_stricter, Threading, policies)
{
    fixture<Threading> f;
    f.submit(0, 4);
    kit::completion patient;
    kit::completion strict;
    f.pool->async_shutdown(patient.handler([] {}));
    kit::poll_leaves_work(f.io);
    f.pool->async_shutdown(shutdown_mode::discard, 5ms, strict.handler([] {}));
    f.pool->async_shutdown(shutdown_mode::drain, 1h, [](error_code) {}); // changes nothing
    manual_clock::advance(f.io, 5ms);
    kit::run(f.io);
    BOOST_TEST((patient.error() == ts::errc::timed_out));
    BOOST_TEST((strict.error() == ts::errc::timed_out));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(after_a_shutdown_a_job_is_refused_and_not_moved_from, Threading,
                              policies)
{
    fixture<Threading> f;
    f.pool->async_shutdown([](error_code) {});
    kit::run(f.io);
    auto job = std::make_unique<int>(1);
    error_code ec;
    BOOST_TEST(!f.pool->try_submit(std::move(job), ec));
    BOOST_TEST((ec == ts::errc::closed));
    kit::completion submitted;
    kit::completion ran;
    f.pool->async_submit(std::move(job), submitted.handler([] {}));
    f.pool->async_run(std::move(job), ran.handler([] {}));
    kit::run(f.io);
    BOOST_TEST((submitted.error() == ts::errc::closed));
    BOOST_TEST((ran.error() == ts::errc::closed));
    BOOST_TEST(job != nullptr);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_shutdown_refuses_the_operations_that_wait_for_a_place, Threading,
                              policies)
{
    fixture<Threading> f({.workers = 1, .capacity = 2});
    f.submit(0, 1);
    kit::completion queued; // async_run, whose job is queued
    kit::completion submit;
    kit::completion run;
    f.pool->async_run(std::make_unique<int>(1), queued.handler([] {}));
    f.submit(2, 3);
    f.pool->async_submit(std::make_unique<int>(3), submit.handler([] {}));
    f.pool->async_run(std::make_unique<int>(4), run.handler([] {}));
    kit::poll_leaves_work(f.io);
    f.pool->async_shutdown(shutdown_mode::discard, [](error_code) {});
    f.gate.set();
    kit::run(f.io);
    BOOST_TEST((queued.error() == ts::errc::closed));
    BOOST_TEST((submit.error() == ts::errc::closed));
    BOOST_TEST((run.error() == ts::errc::closed));
    BOOST_TEST(f.discarded == (numbers{2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_granted_submit_is_refused_by_a_discarding_shutdown, Threading,
                              policies)
{
    fixture<Threading> f({.workers = 1, .capacity = 1});
    f.pool->pause();
    f.submit(0, 1);
    kit::completion submit;
    kit::completion ended;
    f.pool->async_submit(std::make_unique<int>(1), submit.handler([] {}));
    f.pool->resume();
    f.io.restart();
    f.io.run_one(); // the worker takes the job; the waiter is granted
    f.pool->async_shutdown(shutdown_mode::discard, ended.handler([] {}));
    f.gate.set();
    kit::run(f.io);
    BOOST_TEST(submit.done());
    BOOST_TEST(ended.succeeded());
    BOOST_TEST(f.done.size() + f.discarded.size() == (submit.succeeded() ? 2U : 1U));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(on_discard_may_throw_and_use_the_pool, Threading, policies)
{
    manual_clock::reset();
    kit::drained_context io;
    using pool_type = ts::basic_worker_pool<int, void, asio::any_io_executor, Threading>;
    std::unique_ptr<pool_type> pool;
    int discarded = 0;
    pool = std::make_unique<pool_type>(
        io,
        ts::worker_pool_options<int>{.on_discard =
                                         [&](int&& job) {
                                             ++discarded;
                                             BOOST_TEST(!pool->try_submit(job));
                                             throw std::runtime_error("ignored");
                                         }},
        [](int&) {});
    pool->pause();
    BOOST_TEST(pool->try_submit(1));
    BOOST_TEST(pool->try_submit(2));
    kit::completion ended;
    pool->async_shutdown(shutdown_mode::discard,
                         ended.handler([&] { BOOST_TEST(discarded == 2); }));
    kit::run(io);
    BOOST_TEST(ended.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_shutdown_continues_without_its_waiter, Threading,
                              policies)
{
    fixture<Threading> f;
    f.submit(0, 3);
    asio::cancellation_signal stop;
    kit::completion ended;
    f.pool->async_shutdown(asio::bind_cancellation_slot(stop.slot(), ended.handler([] {})));
    kit::poll_leaves_work(f.io);
    stop.emit(asio::cancellation_type::total);
    kit::poll_leaves_work(f.io);
    BOOST_TEST(ended.aborted());
    BOOST_TEST(f.pool->is_closed());
    f.gate.set();
    kit::run(f.io);
    BOOST_TEST(f.done.size() == 3U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destroying_a_pool_aborts_its_waiters, Threading, policies)
{
    fixture<Threading> f({.workers = 1, .capacity = 1});
    f.submit(0, 1);
    kit::completion ran;
    kit::completion waits;
    kit::completion idle;
    kit::completion shut_down;
    f.pool->async_run(std::make_unique<int>(1), ran.handler([] {}));
    f.pool->async_run(std::make_unique<int>(2), waits.handler([] {}));
    f.pool->async_idle(idle.handler([] {}));
    f.pool->async_shutdown(shutdown_mode::drain, 0ms, shut_down.handler([] {})); // cuts jobs off
    f.pool.reset();
    kit::run(f.io);
    BOOST_TEST(idle.aborted());
    BOOST_TEST(shut_down.aborted());
    BOOST_TEST(ran.done());
    BOOST_TEST(waits.done());
    BOOST_TEST(f.done.empty());
}

// Running jobs end after the pool, and need its handler.
BOOST_AUTO_TEST_CASE_TEMPLATE(running_jobs_keep_what_they_need_of_a_destroyed_pool, Threading,
                              policies)
{
    kit::drained_context io;
    ts::event gate(io);
    using pool_type = ts::basic_worker_pool<int, void, asio::any_io_executor, Threading>;
    int reported = 0;
    const auto owned = std::make_shared<int>(0);
    std::optional<pool_type> pool(
        std::in_place, io,
        ts::worker_pool_options<int>{.workers = 2,
                                     .on_error = [&](int&, std::exception_ptr) { ++reported; }},
        [&gate, owned](int& job) -> asio::awaitable<void> {
            error_code ec;
            co_await gate.async_wait(asio::redirect_error(asio::use_awaitable, ec));
            co_await asio::this_coro::reset_cancellation_state();
            co_await asio::post(asio::use_awaitable);
            *owned += job;
            throw std::runtime_error("not reported");
        });
    BOOST_TEST(pool->try_submit(1));
    BOOST_TEST(pool->try_submit(2));
    kit::poll_leaves_work(io);
    pool->async_shutdown(shutdown_mode::discard, 0ms, [](error_code) {});
    pool.reset();
    BOOST_TEST(owned.use_count() == 2);
    kit::run(io);
    BOOST_TEST(*owned == 3);
    BOOST_TEST(owned.use_count() == 1);
    BOOST_TEST(reported == 0);
}

// No job can end before the pool is destroyed, so the destructor must not assert that.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_pool_may_be_destroyed_with_jobs_if_its_context_has_stopped,
                              Threading, policies)
{
    asio::io_context io;
    ts::event gate(io);
    std::vector<int> discarded;
    {
        ts::basic_worker_pool<int, void, asio::any_io_executor, Threading> pool(
            io, {.on_discard = [&](int&& job) { discarded.push_back(job); }},
            [&](int&) { return gate.async_wait(asio::deferred); });
        BOOST_TEST(pool.try_submit(1));
        BOOST_TEST(pool.try_submit(2));
        io.poll(); // the first runs
        io.stop();
    }
    BOOST_TEST(discarded == std::vector<int>{2}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_destroyed_context_destroys_jobs_and_workers, Threading, policies)
{
    using pool_type =
        ts::basic_worker_pool<std::shared_ptr<int>, void, asio::any_io_executor, Threading>;
    const auto job = std::make_shared<int>(1);
    for (const int steps : {0, 1, 2, 5}) {
        int discarded = 0;
        std::optional<asio::io_context> context(std::in_place);
        std::optional<asio::steady_timer> timer(std::in_place, *context,
                                                asio::steady_timer::time_point::max());
        pool_type pool(*context,
                       {.workers = 2, .on_discard = [&](std::shared_ptr<int>&&) { ++discarded; }},
                       [&](std::shared_ptr<int>&) { return timer->async_wait(asio::deferred); });
        for (int i = 0; i != 4; ++i)
            BOOST_TEST(pool.try_submit(job));
        pool.async_run(job, [](error_code) {});
        for (int i = 0; i != steps; ++i)
            context->poll_one();
        timer.reset(); // ends the jobs that run
        context.reset();
        BOOST_TEST(job.use_count() == 1);
        BOOST_TEST(discarded == 0);
        BOOST_TEST(!pool.try_submit(job));
    }
}

BOOST_AUTO_TEST_CASE(a_handler_may_own_its_pool)
{
    asio::io_context io;
    using pool_type = ts::worker_pool<int>;
    auto pool = std::make_shared<pool_type>(io, ts::worker_pool_options<int>{}, [](int&) {});
    BOOST_TEST(pool->try_submit(1));
    pool->async_shutdown([pool](error_code ec) { BOOST_TEST(!ec); });
    const std::weak_ptr<pool_type> watched = std::exchange(pool, nullptr);
    io.run();
    BOOST_TEST(watched.expired());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
