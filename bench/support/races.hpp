// SPDX-License-Identifier: BSL-1.0
// Ways to await the first of two operations, or both, under one interface, and their workloads.
// First(context): put(n) makes one of two waits ready, take() awaits the first of them.
// Both(context): run() awaits two operations that complete at once, through the scheduler.
#pragma once

#include "posted_operation.hpp"

#include <turnstile/channel/queue.hpp>
#include <turnstile/work/all.hpp>
#include <turnstile/work/select.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdint>

namespace bench {

namespace asio = boost::asio;

class two_queues {
public:
    explicit two_queues(asio::io_context& context) : a_(context, 4), b_(context, 4) {}
    bool put(int n) { return a_.try_push(n); }
    bool is_empty() const { return a_.size() + b_.size() == 0; }

protected:
    turnstile::queue<int> a_;
    turnstile::queue<int> b_;
};

struct selected : two_queues {
    using two_queues::two_queues;
    auto take()
    {
        return turnstile::async_select(a_.async_pop(asio::deferred), b_.async_pop(asio::deferred),
                                       asio::use_awaitable);
    }
};

struct either_awaitable : two_queues {
    using two_queues::two_queues;
    auto take()
    {
        using namespace asio::experimental::awaitable_operators;
        return a_.async_pop(asio::use_awaitable) || b_.async_pop(asio::use_awaitable);
    }
};

struct first_of_group : two_queues {
    using two_queues::two_queues;
    auto take()
    {
        return asio::experimental::make_parallel_group(a_.async_pop(asio::deferred),
                                                       b_.async_pop(asio::deferred))
            .async_wait(asio::experimental::wait_for_one_success(), asio::use_awaitable);
    }
};

class either_channel {
    using channel_type = asio::experimental::channel<void(boost::system::error_code, int)>;

public:
    explicit either_channel(asio::io_context& context) : a_(context, 4), b_(context, 4) {}
    bool put(int n) { return a_.try_send(boost::system::error_code(), n); }
    bool is_empty() const { return !a_.ready() && !b_.ready(); }
    auto take()
    {
        using namespace asio::experimental::awaitable_operators;
        return a_.async_receive(asio::use_awaitable) || b_.async_receive(asio::use_awaitable);
    }

private:
    channel_type a_;
    channel_type b_;
};

enum class readiness { at_once, later };

// One operation is a call of take(). The first tenth is not measured.
template <class First, class Meter>
bool take_first(Meter& meter, std::int64_t times, readiness ready)
{
    asio::io_context context;
    First sources(context);
    std::int64_t done = 0;
    bool right = true;
    const auto put = [&] { right = sources.put(1) && right; };
    const auto run = [&]() -> asio::awaitable<void> {
        for (; done != times; ++done) {
            if (done == times / 10)
                meter.begin();
            if (ready == readiness::at_once)
                put();
            else
                asio::post(context, put);
            co_await sources.take();
        }
        meter.end(times - times / 10);
    };
    asio::co_spawn(context, run(), asio::detached);
    context.run();
    return right && done == times && sources.is_empty();
}

struct both_posted {
    explicit both_posted(asio::io_context& context) : operation{context.get_executor()} {}
    posted_operation operation;
};

struct all_of_both : both_posted {
    using both_posted::both_posted;
    auto run() { return turnstile::async_all(operation, operation, asio::use_awaitable); }
};

struct both_awaitables : both_posted {
    using both_posted::both_posted;
    auto run()
    {
        using namespace asio::experimental::awaitable_operators;
        return operation(asio::use_awaitable) && operation(asio::use_awaitable);
    }
};

struct both_of_group : both_posted {
    using both_posted::both_posted;
    auto run()
    {
        return asio::experimental::make_parallel_group(operation(asio::deferred),
                                                       operation(asio::deferred))
            .async_wait(asio::experimental::wait_for_one_error(), asio::use_awaitable);
    }
};

template <class Both, class Meter>
bool run_both(Meter& meter, std::int64_t times)
{
    asio::io_context context;
    Both both(context);
    std::int64_t done = 0;
    const auto run = [&]() -> asio::awaitable<void> {
        for (; done != times; ++done) {
            if (done == times / 10)
                meter.begin();
            co_await both.run();
        }
        meter.end(times - times / 10);
    };
    asio::co_spawn(context, run(), asio::detached);
    context.run();
    return done == times;
}

} // namespace bench
