// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/run.hpp"
#include "kit/thrown_text.hpp"

#include <turnstile/sync/event.hpp>
#include <turnstile/work/worker_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <exception>
#include <functional>
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

using policies = std::tuple<ts::thread_safe, ts::strand_confined>;

template <class Threading, class Job = int, class Result = void>
using pool_of = ts::basic_worker_pool<Job, Result, asio::any_io_executor, Threading, manual_clock>;
using options = ts::worker_pool_options<int>;

// Jobs that wait until the test opens the gate.
template <class Threading>
struct gated {
    explicit gated(asio::io_context& io) : gate(io) {}
    asio::awaitable<void> operator()(int& job)
    {
        started.push_back(job);
        co_await gate.async_wait();
        ended.push_back(job);
    }
    ts::event gate;
    std::vector<int> started;
    std::vector<int> ended;
};

template <class Threading>
struct gated_pool {
    explicit gated_pool(options o) : jobs(io), pool(io, std::move(o), std::ref(jobs)) {}
    void submit(int job) { BOOST_TEST(pool.try_submit(job)); }
    kit::drained_context io;
    gated<Threading> jobs;
    pool_of<Threading> pool;
};

BOOST_AUTO_TEST_SUITE(worker_pool)

BOOST_AUTO_TEST_CASE_TEMPLATE(jobs_run_on_as_many_workers_as_there_are, Threading, policies)
{
    gated_pool<Threading> f({.workers = 3});
    for (int i = 0; i != 10; ++i)
        f.submit(i);
    BOOST_TEST(kit::poll_leaves_work(f.io));
    BOOST_TEST(f.jobs.started == (std::vector<int>{0, 1, 2}), boost::test_tools::per_element());
    BOOST_TEST(f.pool.stats().running == 3U);
    BOOST_TEST(f.pool.stats().queued == 7U);
    f.jobs.gate.set();
    kit::run(f.io);
    BOOST_TEST(f.jobs.ended.size() == 10U);
    BOOST_TEST(f.pool.stats().done == 10U);
    BOOST_TEST(f.pool.stats().running == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_pool_without_jobs_is_no_outstanding_work, Threading, policies)
{
    kit::drained_context io;
    pool_of<Threading> pool(io, {.workers = 2, .job_timeout = 1s}, [](int&) {});
    BOOST_TEST(!kit::poll_leaves_work(io));
    BOOST_TEST(pool.try_submit(1));
    kit::run(io); // returns
    BOOST_TEST(pool.stats().done == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(handlers_are_functions_coroutines_and_operations, Threading, policies)
{
    kit::drained_context io;
    int calls = 0;
    const auto run_three = [&](auto handler) {
        pool_of<Threading> pool(io, {.workers = 2}, std::move(handler));
        for (int i = 0; i != 3; ++i)
            BOOST_TEST(pool.try_submit(i));
        kit::run(io);
        BOOST_TEST(pool.stats().done == 3U);
    };
    run_three([&](int&) { ++calls; });
    run_three([&](int&) -> asio::awaitable<void> {
        ++calls;
        co_await asio::post(asio::use_awaitable);
    });
    run_three([&](int&) -> asio::awaitable<int> { co_return ++calls; });
    run_three([&](int&) {
        ++calls;
        return asio::post(io, asio::deferred);
    });
    run_three([&](int&) {
        ++calls;
        return [&](auto token) { return asio::post(io, std::move(token)); };
    });
    run_three([&](int&) { // an operation that completes inside its initiating function
        return [&](auto token) {
            return asio::async_initiate<decltype(token), void(error_code)>(
                [&](auto h) {
                    ++calls;
                    std::move(h)(error_code());
                },
                token);
        };
    });
    BOOST_TEST(calls == 18);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(submit_waits_for_a_place_in_order, Threading, policies)
{
    gated_pool<Threading> f({.workers = 1, .capacity = 2});
    f.submit(0);
    kit::poll_leaves_work(f.io); // it runs
    f.submit(1);
    f.submit(2);
    error_code ec;
    BOOST_TEST(!f.pool.try_submit(9, ec));
    BOOST_TEST((ec == ts::errc::rejected));
    kit::completion third;
    kit::completion fourth;
    f.pool.async_submit(3, third.handler([] {}));
    f.pool.async_submit(4, fourth.handler([] {}));
    kit::poll_leaves_work(f.io);
    BOOST_TEST(!third.done());
    BOOST_TEST(f.pool.waiting() == 2U);
    BOOST_TEST(f.pool.stats().waiting == 2U);
    f.jobs.gate.set();
    kit::run(f.io);
    BOOST_TEST(third.succeeded());
    BOOST_TEST(fourth.succeeded());
    BOOST_TEST(f.jobs.ended == (std::vector<int>{0, 1, 2, 3, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_submit_submits_nothing, Threading, policies)
{
    gated_pool<Threading> f({.workers = 1, .capacity = 1});
    f.pool.pause();
    f.submit(0);
    asio::cancellation_signal waiting;
    asio::cancellation_signal granted;
    kit::completion first;
    kit::completion second;
    kit::completion third;
    f.pool.async_submit(1, asio::bind_cancellation_slot(granted.slot(), first.handler([] {})));
    f.pool.async_submit(2, asio::bind_cancellation_slot(waiting.slot(), second.handler([] {})));
    f.pool.async_submit(3, third.handler([] {}));
    waiting.emit(asio::cancellation_type::terminal);
    f.pool.resume();
    f.io.restart();
    f.io.run_one(); // the worker takes job 0, and the first waiter is granted
    granted.emit(asio::cancellation_type::terminal);
    f.jobs.gate.set();
    kit::run(f.io);
    BOOST_TEST(second.aborted());
    BOOST_TEST(third.succeeded());
    const int first_runs = first.succeeded() ? 1 : 0;
    BOOST_TEST(f.jobs.ended.size() == 2U + static_cast<unsigned>(first_runs));
    BOOST_TEST(f.jobs.ended.back() == 3);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failing_job_reaches_on_error_and_stops_no_worker, Threading,
                              policies)
{
    kit::drained_context io;
    std::vector<std::string> errors;
    const auto on_error = [&](int& job, std::exception_ptr why) {
        try {
            std::rethrow_exception(why);
        } catch (const std::exception& e) {
            errors.push_back(std::to_string(job) + " " + e.what());
        }
    };
    const auto check = [&](auto handler) {
        errors.clear();
        pool_of<Threading> pool(io, {.workers = 2, .on_error = on_error}, std::move(handler));
        for (int i = 0; i != 5; ++i)
            BOOST_TEST(pool.try_submit(i));
        kit::run(io);
        BOOST_TEST(pool.stats().done == 4U);
        BOOST_TEST(pool.stats().failed == 1U);
        BOOST_TEST_REQUIRE(errors.size() == 1U);
        BOOST_TEST(errors[0] == "2 two");
    };
    check([](int& job) {
        if (job == 2)
            throw std::runtime_error("two");
    });
    check([](int& job) -> asio::awaitable<void> {
        co_await asio::post(asio::use_awaitable);
        if (job == 2)
            throw std::runtime_error("two");
    });
    check([&](int& job) {
        return [&io, job](auto token) { // the initiating function throws
            if (job == 2)
                throw std::runtime_error("two");
            return asio::post(io, std::move(token));
        };
    });
    check([&](int& job) { // the handler throws before there is an operation
        if (job == 2)
            throw std::runtime_error("two");
        return asio::post(io, asio::deferred);
    });
    check([](int& job) {
        return [job](auto token) {
            return asio::async_initiate<decltype(token), void(std::exception_ptr)>(
                [job](auto h) {
                    std::move(h)(job == 2 ? std::make_exception_ptr(std::runtime_error("two"))
                                          : nullptr);
                },
                token);
        };
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_on_error_that_throws_is_ignored, Threading, policies)
{
    kit::drained_context io;
    pool_of<Threading> pool(
        io, {.on_error = [](int&, std::exception_ptr) { throw std::runtime_error("error"); }},
        [](int&) { throw std::runtime_error("job"); });
    BOOST_TEST(pool.try_submit(1));
    BOOST_TEST(pool.try_submit(2));
    kit::run(io);
    BOOST_TEST(pool.stats().failed == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(run_delivers_the_result_or_the_exception, Threading, policies)
{
    kit::drained_context io;
    int reported = 0;
    const auto on_error = [&](int&, std::exception_ptr) { ++reported; };
    const auto check = [&](auto handler) {
        pool_of<Threading, int, std::string> pool(io, {.workers = 2, .on_error = on_error},
                                                  std::move(handler));
        std::string result;
        std::string thrown;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                result = co_await pool.async_run(7);
                try {
                    co_await pool.async_run(13);
                } catch (const std::exception& e) {
                    thrown = e.what();
                }
            },
            asio::detached);
        kit::run(io);
        BOOST_TEST(result == "7");
        BOOST_TEST(thrown == "unlucky");
        kit::completion failed;
        pool.async_run(13, failed.handler([](std::string) {}));
        kit::run(io);
        BOOST_TEST((failed.error() == ts::errc::operation_failed));
        BOOST_TEST(pool.stats().failed == 2U);
    };
    const auto text = [](int job) {
        return job == 13 ? throw std::runtime_error("unlucky") : std::to_string(job);
    };
    check([&](int& job) { return text(job); });
    check([&](int& job) -> asio::awaitable<std::string> { co_return text(job); });
    check([&](int& job) {
        return [&text, job](auto token) {
            return asio::async_initiate<decltype(token), void(std::exception_ptr, std::string)>(
                [&text, job](auto h) {
                    try {
                        std::move(h)(nullptr, text(job));
                    } catch (...) {
                        std::move(h)(std::current_exception(), std::string());
                    }
                },
                token);
        };
    });
    BOOST_TEST(reported == 0);
}

// Cannot be copied or default constructed.
struct sealed {
    explicit sealed(int n) : number(std::make_unique<int>(n)) {}
    std::unique_ptr<int> number;
};

BOOST_AUTO_TEST_CASE_TEMPLATE(jobs_and_results_need_only_be_movable, Threading, policies)
{
    kit::drained_context io;
    pool_of<Threading, sealed, sealed> pool(
        io, {}, [](sealed& job) -> asio::awaitable<sealed> { co_return sealed(*job.number * 2); });
    int result = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            std::optional<sealed> doubled = co_await pool.async_run(sealed(21));
            result = *doubled.value().number;
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(result == 42);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_run_withdraws_or_cancels_its_job, Threading, policies)
{
    gated_pool<Threading> f({.workers = 1, .capacity = 1});
    asio::cancellation_signal stops[3];
    kit::completion ends[3];
    for (int i = 0; i != 3; ++i) {
        f.pool.async_run(i, asio::bind_cancellation_slot(stops[i].slot(), ends[i].handler([] {})));
        kit::poll_leaves_work(f.io); // the first runs, the second is queued, the third waits
    }
    BOOST_TEST(f.pool.stats().running == 1U);
    BOOST_TEST(f.pool.stats().queued == 1U);
    stops[1].emit(asio::cancellation_type::partial);
    kit::poll_leaves_work(f.io);
    BOOST_TEST(ends[1].aborted());
    BOOST_TEST(f.pool.stats().queued == 1U); // the third
    stops[0].emit(asio::cancellation_type::total);
    kit::poll_leaves_work(f.io);
    BOOST_TEST(ends[0].aborted());
    BOOST_TEST(f.pool.stats().failed == 1U);
    BOOST_TEST(f.jobs.started == (std::vector<int>{0, 2}), boost::test_tools::per_element());
    f.jobs.gate.set();
    kit::run(f.io);
    BOOST_TEST(ends[2].succeeded());
    BOOST_TEST(f.pool.stats().discarded == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_job_without_its_caller_that_fails_is_reported, Threading, policies)
{
    kit::drained_context io;
    ts::event gate(io);
    std::string reported;
    pool_of<Threading> pool(io,
                            {.on_error =
                                 [&](int&, std::exception_ptr e) {
                                     try {
                                         std::rethrow_exception(e);
                                     } catch (const std::exception& thrown) {
                                         reported = thrown.what();
                                     }
                                 }},
                            [&](int&) -> asio::awaitable<void> {
                                error_code ec;
                                co_await gate.async_wait(
                                    asio::redirect_error(asio::use_awaitable, ec));
                                throw std::runtime_error("late");
                            });
    asio::cancellation_signal stop;
    kit::completion end;
    pool.async_run(1, asio::bind_cancellation_slot(stop.slot(), end.handler([] {})));
    kit::poll_leaves_work(io);
    stop.emit(asio::cancellation_type::terminal);
    kit::run(io);
    BOOST_TEST(end.aborted());
    BOOST_TEST(reported == "late");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_job_that_runs_too_long_is_cancelled, Threading, policies)
{
    manual_clock::reset();
    std::vector<error_code> errors;
    gated_pool<Threading> f(
        {.workers = 2, .job_timeout = 10ms, .on_error = [&](int&, std::exception_ptr e) {
             errors.push_back(ts::failure(std::move(e)).code());
         }});
    for (int i = 0; i != 3; ++i)
        f.submit(i);
    kit::poll_leaves_work(f.io);
    manual_clock::advance(f.io, 9ms);
    BOOST_TEST(errors.empty());
    manual_clock::advance(f.io, 1ms);
    BOOST_TEST(errors.size() == 2U);
    BOOST_TEST(f.pool.stats().running == 1U); // the third
    manual_clock::advance(f.io, 5ms);
    f.jobs.gate.set();
    kit::run(f.io); // returns, because no timer is left
    BOOST_TEST(errors.size() == 2U);
    for (const error_code& ec : errors)
        BOOST_TEST((ec == ts::errc::timed_out));
    const auto stats = f.pool.stats();
    BOOST_TEST(stats.timed_out == 2U);
    BOOST_TEST(stats.failed == 2U);
    BOOST_TEST(stats.done == 1U);
    BOOST_TEST((stats.run_time == 25ms));
    BOOST_TEST((stats.wait_time == 10ms));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_timeout_reaches_operations_and_the_next_job_is_not_cancelled,
                              Threading, policies)
{
    manual_clock::reset();
    kit::drained_context io;
    ts::event gate(io);
    int timed_out = 0;
    pool_of<Threading> pool(
        io,
        {.job_timeout = 10ms,
         .on_error =
             [&](int&, std::exception_ptr e) {
                 timed_out += ts::failure(std::move(e)).code() == ts::errc::timed_out ? 1 : 0;
             }},
        [&](int&) { return gate.async_wait(asio::deferred); });
    for (int i = 0; i != 3; ++i)
        BOOST_TEST(pool.try_submit(i));
    kit::poll_leaves_work(io);
    manual_clock::advance(io, 10ms);
    BOOST_TEST(timed_out == 1);
    manual_clock::advance(io, 9ms);
    BOOST_TEST(timed_out == 1);
    manual_clock::advance(io, 1ms);
    BOOST_TEST(timed_out == 2);
    gate.set();
    kit::run(io);
    BOOST_TEST(pool.stats().done == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_job_that_ignores_its_timeout_succeeds, Threading, policies)
{
    manual_clock::reset();
    kit::drained_context io;
    pool_of<Threading> pool(io, {.job_timeout = 10ms}, [&](int&) -> asio::awaitable<void> {
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        kit::manual_timer timer(co_await asio::this_coro::executor, 15ms);
        co_await timer.async_wait(asio::use_awaitable);
    });
    BOOST_TEST(pool.try_submit(1));
    BOOST_TEST(pool.try_submit(2));
    kit::poll_leaves_work(io);
    for (const auto step : {10ms, 5ms, 10ms, 5ms})
        manual_clock::advance(io, step);
    kit::run(io);
    BOOST_TEST(pool.stats().done == 2U);
    BOOST_TEST(pool.stats().timed_out == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(jobs_run_by_priority_and_then_in_order, Threading, policies)
{
    kit::drained_context io;
    std::vector<int> order;
    pool_of<Threading> pool(io, {.priority = [](const int& job) { return job / 10; }},
                            [&](int& job) { order.push_back(job); });
    pool.pause();
    for (const int job : {31, 12, 33, 11, 20})
        BOOST_TEST(pool.try_submit(job));
    pool.resume();
    kit::run(io);
    BOOST_TEST(order == (std::vector<int>{12, 11, 20, 31, 33}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_paused_pool_starts_no_job, Threading, policies)
{
    gated_pool<Threading> f({.workers = 1});
    f.submit(0);
    f.submit(1);
    kit::poll_leaves_work(f.io);
    f.pool.pause();
    BOOST_TEST(f.pool.is_paused());
    f.jobs.gate.set();
    kit::run(f.io);
    BOOST_TEST(f.pool.stats().done == 1U);
    BOOST_TEST(f.pool.stats().queued == 1U);
    kit::completion idle;
    f.pool.async_idle(idle.handler([] {}));
    BOOST_TEST(kit::poll_leaves_work(f.io));
    BOOST_TEST(!idle.done());
    f.pool.resume();
    kit::run(f.io);
    BOOST_TEST(idle.succeeded());
    BOOST_TEST(f.pool.stats().done == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_number_of_workers_can_change, Threading, policies)
{
    gated_pool<Threading> f({.workers = 1});
    for (int i = 0; i != 8; ++i)
        f.submit(i);
    kit::poll_leaves_work(f.io);
    BOOST_TEST(f.pool.stats().running == 1U);
    f.pool.resize(4);
    kit::poll_leaves_work(f.io);
    BOOST_TEST(f.pool.stats().running == 4U);
    f.pool.resize(2);
    BOOST_TEST(f.pool.stats().running == 4U);
    BOOST_TEST(f.pool.stats().workers == 2U);
    f.jobs.gate.set();
    kit::run(f.io);
    BOOST_TEST(f.pool.stats().done == 8U);
    f.jobs.gate.clear();
    for (int i = 0; i != 4; ++i)
        f.submit(i);
    kit::poll_leaves_work(f.io);
    BOOST_TEST(f.pool.stats().running == 2U);
    f.jobs.gate.set();
    kit::run(f.io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(idle_completes_when_the_last_job_has_ended, Threading, policies)
{
    gated_pool<Threading> f({.workers = 2});
    kit::completion at_once;
    f.pool.async_idle(at_once.handler([] {}));
    kit::poll_leaves_work(f.io);
    BOOST_TEST(at_once.succeeded());
    f.submit(1);
    f.submit(2);
    kit::completion first;
    kit::completion second;
    f.pool.async_idle(first.handler([&] { BOOST_TEST(f.jobs.ended.size() == 2U); }));
    f.pool.async_idle(second.handler([&] { BOOST_TEST(f.jobs.ended.size() == 2U); }));
    kit::poll_leaves_work(f.io);
    BOOST_TEST(!first.done());
    f.jobs.gate.set();
    kit::run(f.io);
    BOOST_TEST(first.succeeded());
    BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_submits_to_its_own_pool, Threading, policies)
{
    kit::drained_context io;
    pool_of<Threading>* self = nullptr;
    pool_of<Threading> pool(io, {.workers = 2}, [&](int& job) -> asio::awaitable<void> {
        if (job != 0)
            co_await self->async_submit(job - 1);
    });
    self = &pool;
    BOOST_TEST(pool.try_submit(500));
    kit::run(io);
    BOOST_TEST(pool.stats().done == 501U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(quick_jobs_let_other_work_run, Threading, policies)
{
    kit::drained_context io;
    std::size_t done_before = 0;
    const auto check = [&](auto handler) {
        pool_of<Threading> pool(io, {}, std::move(handler));
        for (int i = 0; i != 1000; ++i)
            BOOST_TEST_REQUIRE(pool.try_submit(i));
        asio::post(io, [&] { asio::post(io, [&] { done_before = pool.stats().done; }); });
        kit::run(io);
        BOOST_TEST(pool.stats().done == 1000U);
        BOOST_TEST(done_before < 500U);
    };
    check([](int&) {});
    check([](int&) -> asio::awaitable<void> { co_return; });
    check([](int&) {
        return [](auto token) {
            return asio::async_initiate<decltype(token), void()>([](auto h) { std::move(h)(); },
                                                                 token);
        };
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_that_is_dropped_fails_its_job_only, Threading, policies)
{
    kit::drained_context io;
    int reported = 0;
    pool_of<Threading> pool(io, {.on_error = [&](int&, std::exception_ptr) { ++reported; }},
                            [&](int& job) {
                                return [&io, job](auto token) {
                                    return asio::async_initiate<decltype(token), void()>(
                                        [&io, job](auto h) {
                                            if (job != 1)
                                                asio::post(io, std::move(h));
                                        },
                                        token);
                                };
                            });
    for (int i = 0; i != 3; ++i)
        BOOST_TEST(pool.try_submit(i));
    kit::run(io);
    BOOST_TEST(pool.stats().done == 2U);
    BOOST_TEST(pool.stats().failed == 1U);
    BOOST_TEST(reported == 0);
    kit::completion end;
    pool.async_run(1, end.handler([] {}));
    kit::run(io);
    BOOST_TEST(end.aborted());
}

BOOST_AUTO_TEST_CASE(the_cancellation_state_of_a_job_does_not_reach_the_next)
{
    manual_clock::reset();
    kit::drained_context io;
    pool_of<ts::thread_safe> pool(
        io, {.job_timeout = 10ms}, [&](int& job) -> asio::awaitable<void> {
            if (job == 0)
                co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            kit::manual_timer timer(co_await asio::this_coro::executor, 20ms);
            co_await timer.async_wait(asio::use_awaitable);
        });
    BOOST_TEST(pool.try_submit(0));
    BOOST_TEST(pool.try_submit(1));
    kit::poll_leaves_work(io);
    manual_clock::advance(io, 20ms);
    manual_clock::advance(io, 10ms);
    kit::run(io);
    BOOST_TEST(pool.stats().done == 1U);
    BOOST_TEST(pool.stats().failed == 1U);
}

BOOST_AUTO_TEST_CASE(a_pool_on_a_strand_runs_one_job_at_a_time)
{
    asio::thread_pool threads(2);
    int running = 0; // guarded by the strand
    int most = 0;
    {
        ts::worker_pool<int> pool(asio::make_strand(threads), {.workers = 4}, [&](int&) {
            most = std::max(most, ++running);
            --running;
        });
        asio::co_spawn(
            threads,
            [&]() -> asio::awaitable<void> {
                for (int i = 0; i != 1000; ++i)
                    co_await pool.async_submit(i);
                co_await pool.async_shutdown();
            },
            asio::use_future)
            .get();
    }
    threads.join();
    BOOST_TEST(most == 1);
}

BOOST_AUTO_TEST_CASE(a_pool_on_a_thread_pool_serves_coroutines_of_an_io_context)
{
    asio::thread_pool cpus(2);
    asio::io_context io;
    long sum = 0;
    ts::worker_pool<int, long> squares(cpus, {.workers = 2}, [](int& n) { return long(n) * n; });
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 1; i <= 100; ++i)
                sum += co_await squares.async_run(i, asio::use_awaitable);
            co_await squares.async_shutdown();
        },
        asio::detached);
    io.run();
    cpus.join();
    BOOST_TEST(sum == 338350);
}

BOOST_AUTO_TEST_CASE(the_result_type_is_deduced_from_the_handler)
{
    kit::drained_context io;
    ts::worker_pool lengths(io, ts::worker_pool_options<std::string>{},
                            [](std::string& s) { return s.size(); });
    ts::local::worker_pool waits(io.get_executor(), ts::worker_pool_options<int>{},
                                 [&](int&) { return asio::post(io, asio::deferred); });
    static_assert(std::is_same_v<decltype(lengths), ts::worker_pool<std::string, std::size_t>>);
    static_assert(std::is_same_v<decltype(waits), ts::local::worker_pool<int>>);
    std::size_t length = 0;
    lengths.async_run(std::string("four"), [&](error_code, std::size_t n) { length = n; });
    kit::run(io);
    BOOST_TEST(length == 4U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bad_input_names_the_member_and_changes_nothing, Threading, policies)
{
    kit::drained_context io;
    const auto nothing = [](int&) {};
    using pool = pool_of<Threading>;
    const auto text_of = [&](options o) {
        return kit::text_of([&] { pool(io, std::move(o), nothing); });
    };
    BOOST_TEST(text_of({.workers = 0}) == "worker_pool: workers must not be 0");
    BOOST_TEST(text_of({.capacity = 0}) == "worker_pool: capacity must not be 0");
    BOOST_TEST(text_of({.job_timeout = 0ns}) == "worker_pool: job_timeout must be positive");
    BOOST_TEST(text_of({.job_timeout = -1ns}) == "worker_pool: job_timeout must be positive");
    BOOST_TEST(kit::text_of([&] { pool(io, {}, std::function<void(int&)>()); }) ==
               "worker_pool: handler must not be null");
    void (*no_function)(int&) = nullptr;
    BOOST_TEST(kit::text_of([&] { pool(io, {}, no_function); }) ==
               "worker_pool: handler must not be null");

    pool p(io, {.workers = 2}, nothing);
    BOOST_TEST(kit::text_of([&] { p.resize(0); }) == "worker_pool: workers must not be 0");
    error_code ec;
    p.resize(0, ec);
    BOOST_TEST((ec == ts::errc::invalid_argument));
    BOOST_TEST(p.stats().workers == 2U);

    kit::completion ended;
    p.async_shutdown(ts::shutdown_mode::discard, -1ns, ended.handler([] {}));
    kit::run(io);
    BOOST_TEST((ended.error() == ts::errc::invalid_argument));
    BOOST_TEST(!p.is_closed());
    std::string text;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            try {
                co_await p.async_shutdown(ts::shutdown_mode::discard, -1ns);
            } catch (const std::exception& e) {
                text = e.what();
            }
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(text.find("worker_pool: deadline must not be negative") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_modes_have_names)
{
    BOOST_TEST(to_string(ts::shutdown_mode::drain) == "drain");
    BOOST_TEST(to_string(ts::shutdown_mode::discard) == "discard");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
