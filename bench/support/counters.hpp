// SPDX-License-Identifier: BSL-1.0
// Counters and latches under one interface, and their workloads.
#pragma once

#include "gates.hpp"
#include "workloads.hpp"

#include <turnstile/sync/counter.hpp>
#include <turnstile/sync/latch.hpp>

#include <boost/asio/as_tuple.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace bench {

// ------------------------------------------------------------ one among thresholds ----

template <class Counter>
class turnstile_counter {
public:
    explicit turnstile_counter(asio::io_context& context) : counter_(context) {}

    void add() { counter_.add(1); }
    template <class F>
    void wait_at_least(std::int64_t n, F reached)
    {
        counter_.async_wait_at_least(n, [reached](const error_code& ec) {
            if (!ec)
                reached();
        });
    }

private:
    Counter counter_;
};

// A number, and a timer that is cancelled at each change; all waiters compare, and most wait again.
class timer_counter {
public:
    explicit timer_counter(asio::io_context& context)
        : timer_(context, asio::steady_timer::time_point::max())
    {
    }

    void add()
    {
        ++value_;
        timer_.cancel();
    }
    template <class F>
    void wait_at_least(std::int64_t n, F reached)
    {
        if (value_ >= n)
            return reached();
        timer_.async_wait([this, n, reached](const error_code&) {
            if (!over_)
                wait_at_least(n, reached);
        });
    }
    ~timer_counter() { over_ = true; }

private:
    bool over_ = false;
    std::int64_t value_ = 0;
    asio::steady_timer timer_;
};

struct thresholds {
    std::size_t counters = 1;
    std::size_t waiters = 1; // at each counter
    std::size_t batch = 1;   // changes in one round
    int rounds = 1;
};

// Each waiter has a threshold of its own, and each change reaches one threshold. Measures from the
// change until that waiter has run. Its next wait, for the highest threshold, and the first round
// are not measured.
template <class Counter, class Meter>
bool reach(Meter& meter, const thresholds& size)
{
    asio::io_context context;
    std::deque<Counter> counters;
    for (std::size_t i = 0; i != size.counters; ++i)
        counters.emplace_back(context);
    std::size_t reached = 0;
    const auto on_reached = [&] { ++reached; };
    std::vector<std::int64_t> highest(size.counters);
    const auto wait_at = [&](std::size_t i) {
        counters[i].wait_at_least(++highest[i], on_reached);
    };

    run_on(context, [&] {
        for (std::size_t i = 0; i != size.counters; ++i)
            for (std::size_t n = 0; n != size.waiters; ++n)
                wait_at(i);
    });
    bool right = true;
    for (int round = 0; round <= size.rounds; ++round) {
        reached = 0;
        if (round != 0)
            meter.begin();
        for (std::size_t i = 0; i != size.batch; ++i) {
            counters[i % size.counters].add();
            context.restart();
            context.poll();
            right = right && reached == i + 1;
        }
        if (round != 0)
            meter.end(static_cast<std::int64_t>(size.batch));
        run_on(context, [&] {
            for (std::size_t i = 0; i != size.batch; ++i)
                wait_at(i % size.counters);
        });
    }
    return right;
}

// ----------------------------------------------------------------------- countdown ----

template <class Latch>
class turnstile_latch {
public:
    turnstile_latch(asio::io_context& context, std::size_t count) : latch_(context, count) {}

    auto wait() { return latch_.async_wait(asio::use_awaitable); }
    void count_down() { latch_.count_down(); }

private:
    Latch latch_;
};

// A message for each arrival, received one by one.
template <class Channel>
class channel_latch {
public:
    channel_latch(asio::io_context& context, std::size_t count)
        : channel_(context, count), count_(count)
    {
    }

    asio::awaitable<void> wait()
    {
        for (std::size_t i = 0; i != count_; ++i)
            co_await channel_.async_receive(asio::use_awaitable);
    }
    void count_down() { channel_.try_send(error_code()); }

private:
    Channel channel_;
    std::size_t count_;
};

class timer_latch {
public:
    timer_latch(asio::io_context& context, std::size_t count)
        : timer_(context, asio::steady_timer::time_point::max()), count_(count)
    {
    }

    asio::awaitable<void> wait()
    {
        error_code ignored;
        if (count_ != 0)
            co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    void count_down()
    {
        if (--count_ == 0)
            timer_.cancel();
    }

private:
    asio::steady_timer timer_;
    std::size_t count_;
};

// One coroutine waits for `count` arrivals. Measures the time for each arrival, from the first one
// until the coroutine has run. The first round is not measured.
template <class Latch, class Meter>
bool countdown(Meter& meter, std::size_t count, int rounds)
{
    asio::io_context context;
    bool right = true;
    for (int round = 0; round <= rounds; ++round) {
        Latch latch(context, count);
        bool open = false;
        const auto wait = [&]() -> asio::awaitable<void> {
            co_await latch.wait();
            open = true;
        };
        asio::co_spawn(context, wait(), asio::detached);
        context.restart();
        context.poll();
        right = right && !open;
        run_on(context, [&] {
            if (round != 0)
                meter.begin();
            for (std::size_t i = 0; i != count; ++i)
                latch.count_down();
        });
        if (round != 0)
            meter.end(static_cast<std::int64_t>(count));
        right = right && open;
    }
    return right;
}

} // namespace bench
