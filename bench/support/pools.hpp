// SPDX-License-Identifier: BSL-1.0
// Ways to run jobs on a number of workers, under one interface, and their workload.
// Pool(context, workers): submit(job), to be awaited, waits for a place; finish(), to be awaited,
// waits for the last job.
#pragma once

#include "threads.hpp"

#include <turnstile/sync/semaphore.hpp>
#include <turnstile/work/worker_pool.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

namespace bench {

namespace asio = boost::asio;

constexpr std::size_t places = 100;

// A job that waits once, or not at all.
struct counting_job {
    std::atomic<std::int64_t>* done;
    bool yields;
};

inline asio::awaitable<void> run_job(counting_job job)
{
    if (job.yields)
        co_await asio::post(asio::use_awaitable);
    job.done->fetch_add(1, std::memory_order_relaxed);
}

template <class Pool>
class worker_pool_jobs {
public:
    worker_pool_jobs(asio::io_context& context, std::size_t workers)
        : pool_(context, {.workers = workers, .capacity = places},
                [](counting_job& job) { return run_job(job); })
    {
    }
    auto submit(counting_job job)
    {
        return pool_.async_submit(std::move(job), asio::use_awaitable);
    }
    auto finish() { return pool_.async_shutdown(asio::use_awaitable); }

private:
    Pool pool_;
};

// A coroutine for each job; a semaphore limits their number.
class spawned_jobs {
public:
    spawned_jobs(asio::io_context& context, std::size_t workers)
        : context_(context), permits_(context, workers), workers_(workers)
    {
    }
    asio::awaitable<void> submit(counting_job job)
    {
        auto permit = co_await permits_.async_acquire(asio::use_awaitable);
        asio::co_spawn(context_, run_job(job), [held = std::move(permit)](std::exception_ptr) {});
    }
    asio::awaitable<void> finish()
    {
        auto all = co_await permits_.async_acquire(workers_, asio::use_awaitable);
    }

private:
    asio::io_context& context_;
    turnstile::semaphore permits_;
    std::size_t workers_;
};

// Workers by hand: coroutines that receive jobs from a channel.
template <class Channel>
class channel_jobs {
public:
    channel_jobs(asio::io_context& context, std::size_t workers)
        : jobs_(context, places), left_(context, workers), workers_(workers)
    {
        for (std::size_t i = 0; i != workers; ++i)
            asio::co_spawn(context, work(), asio::detached);
    }
    auto submit(counting_job job)
    {
        return jobs_.async_send(boost::system::error_code(), job, asio::use_awaitable);
    }
    asio::awaitable<void> finish()
    {
        jobs_.close();
        for (std::size_t i = 0; i != workers_; ++i)
            co_await left_.async_receive(asio::use_awaitable);
    }

private:
    asio::awaitable<void> work()
    {
        for (;;) {
            auto [ec, job] = co_await jobs_.async_receive(asio::as_tuple(asio::use_awaitable));
            if (ec)
                break;
            try {
                co_await run_job(job);
            } catch (const std::exception&) {
            }
        }
        co_await left_.async_send(boost::system::error_code(), asio::use_awaitable);
    }

    Channel jobs_;
    asio::experimental::concurrent_channel<void(boost::system::error_code)> left_;
    std::size_t workers_;
};

// One coroutine submits `times` jobs, for 8 workers. One operation is one job.
template <class Pool, class Meter>
bool submit_jobs(Meter& meter, std::int64_t times, int threads, bool yields)
{
    asio::io_context context;
    Pool pool(context, 8);
    std::atomic<std::int64_t> done{0};
    const auto submit = [&]() -> asio::awaitable<void> {
        for (std::int64_t i = 0; i != times; ++i) {
            if (i == times / 10)
                meter.begin();
            co_await pool.submit({&done, yields});
        }
        co_await pool.finish();
        meter.end(times - times / 10);
    };
    asio::co_spawn(context, submit(), asio::detached);
    run_on_threads(context, threads);
    return done.load() == times;
}

} // namespace bench
