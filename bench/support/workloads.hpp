// SPDX-License-Identifier: BSL-1.0
// The workloads, as templates over the competitor. Each workload checks its own result, and returns
// whether it was right.
#pragma once

#include "events.hpp"
#include "gates.hpp"
#include "parking.hpp"
#include "threads.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>

namespace bench {

// ------------------------------------------------------------------ one coroutine ----

// Runs `make_awaitable()` again and again in one coroutine; the first tenth is not measured.
template <class Meter, class MakeAwaitable>
bool loop(Meter& meter, asio::io_context& context, std::int64_t times, MakeAwaitable make_awaitable)
{
    std::int64_t done = 0;
    const std::int64_t warm = times / 10;
    const auto run = [&]() -> asio::awaitable<void> {
        for (; done != warm; ++done)
            co_await make_awaitable();
        meter.begin();
        for (; done != times; ++done)
            co_await make_awaitable();
        meter.end(times - warm);
    };
    asio::co_spawn(context, run(), asio::detached);
    context.run();
    return done == times;
}

template <class Meter, class MakeAwaitable>
bool loop(Meter& meter, std::int64_t times, MakeAwaitable make_awaitable)
{
    asio::io_context context;
    return loop(meter, context, times, std::move(make_awaitable));
}

inline asio::awaitable<void> empty_coroutine() { co_return; }

// Acquires and releases, without another user of the gate.
template <class Gate, class Meter>
bool uncontended(Meter& meter, std::int64_t times, std::size_t permits = 1)
{
    asio::io_context context;
    Gate gate(context, permits);
    std::int64_t done = 0;
    const std::int64_t warm = times / 10;
    const auto run = [&]() -> asio::awaitable<void> {
        for (; done != times; ++done) {
            if (done == warm)
                meter.begin();
            if constexpr (releases_itself<Gate>) {
                auto held = co_await gate.acquire();
            } else {
                co_await gate.acquire();
                gate.release();
            }
        }
        meter.end(times - warm);
    };
    asio::co_spawn(context, run(), asio::detached);
    context.run();
    return done == times;
}

// --------------------------------------------------------------- many, one gate ----

// Counts the coroutines inside a gate, and checks that there are never more than `capacity`. Int is
// an atomic if several threads may be inside.
template <class Int>
class region {
public:
    explicit region(std::int64_t capacity) noexcept : capacity_(capacity) {}

    // Returns the number of earlier entries.
    std::int64_t enter() noexcept
    {
        if (++inside_ > capacity_)
            overrun_ = true;
        return entered_++;
    }
    void leave() noexcept { --inside_; }

    bool passed_by(std::int64_t n) const noexcept
    {
        return entered_ == n && inside_ == 0 && !overrun_;
    }

private:
    std::int64_t capacity_;
    Int inside_{0};
    Int entered_{0};
    bool overrun_ = false;
};

struct crowd {
    std::size_t permits = 1;
    std::int64_t coroutines = 100;
    std::int64_t times = 0; // for each coroutine
    int threads = 1;
};

// Many coroutines pass the same gate, and yield while they hold it. The first tenth is not
// measured.
template <class Gate, class Int = std::int64_t, class Meter>
bool contended(Meter& meter, const crowd& size)
{
    asio::io_context context;
    Gate gate(context, size.permits);
    region<Int> inside(static_cast<std::int64_t>(size.permits));
    const std::int64_t total = size.coroutines * size.times;
    const std::int64_t warm = total / 10;

    const auto enter = [&] {
        if (inside.enter() == warm)
            meter.begin();
    };
    const auto pass = [&]() -> asio::awaitable<void> {
        for (std::int64_t i = 0; i != size.times; ++i) {
            if constexpr (releases_itself<Gate>) {
                auto held = co_await gate.acquire();
                enter();
                co_await asio::post(asio::use_awaitable);
                inside.leave();
            } else {
                co_await gate.acquire();
                enter();
                co_await asio::post(asio::use_awaitable);
                inside.leave();
                gate.release();
            }
        }
    };
    for (std::int64_t i = 0; i != size.coroutines; ++i)
        asio::co_spawn(context, pass(), asio::detached);
    run_on_threads(context, size.threads);
    meter.end(total - warm);
    return inside.passed_by(total);
}

// ------------------------------------------------------------------- broadcast ----

// Runs f and all handlers that become ready on the context, where f can use the context's memory
// cache.
template <class F>
void run_on(asio::io_context& context, F f)
{
    asio::post(context, f);
    context.restart();
    context.poll();
}

// Measures from waking all waiters until all have run. Their next wait and the first round are not
// measured.
template <class Event, class Meter>
bool broadcast(Meter& meter, std::size_t waiters, int rounds)
{
    asio::io_context context;
    Event event(context);
    parking lot(waiters);
    std::size_t woken = 0;
    bool over = false;

    const auto wait = [&]() -> asio::awaitable<void> {
        for (;;) {
            co_await lot.park();
            if (over)
                co_return;
            co_await event.wait();
            ++woken;
        }
    };

    for (std::size_t i = 0; i != waiters; ++i)
        asio::co_spawn(context, wait(), asio::detached);
    context.poll();
    bool right = lot.size() == waiters;
    for (int round = 0; round <= rounds; ++round) {
        run_on(context, [&] { lot.resume_all(); });
        woken = 0;
        right = right && lot.size() == 0;
        run_on(context, [&] {
            if (round != 0)
                meter.begin();
            event.wake_all();
        });
        if (round != 0)
            meter.end(static_cast<std::int64_t>(waiters));
        right = right && woken == waiters && lot.size() == waiters;
    }
    over = true;
    run_on(context, [&] { lot.resume_all(); });
    return right;
}

// ---------------------------------------------------------------------- cancel ----

struct queues {
    std::size_t events = 1;
    std::size_t waiters = 1; // at each event
    std::size_t batch = 1;   // cancelled in one round
    int rounds = 1;
};

// Cancels waiting callbacks in the middle of their queue, each when the one before has completed.
// The next wait of a cancelled callback, at the end of the queue, and the first round are not
// measured.
template <class Event, class Meter>
bool cancel(Meter& meter, const queues& size)
{
    asio::io_context context;
    const std::size_t total = size.events * size.waiters;
    std::deque<asio::cancellation_signal> signals(total);
    std::deque<Event> events;
    for (std::size_t i = 0; i != size.events; ++i)
        events.emplace_back(context);

    // The second half of a queue moves up by one with each waiter that is cancelled in the middle.
    const std::size_t middle = size.waiters == 1 ? 0 : total / 2;
    std::size_t turn = 0;
    const auto waiter_of = [&](std::size_t t) { return middle + t % (total - middle); };

    std::size_t left = 0;
    const auto cancel_next = [&] {
        if (left == 0)
            return;
        --left;
        signals[waiter_of(turn++)].emit(asio::cancellation_type::total);
    };
    std::size_t cancelled = 0;
    const auto wait = [&](std::size_t i) {
        events[i % size.events].wait(
            asio::bind_cancellation_slot(signals[i].slot(), [&](const error_code& ec) {
                cancelled += ec.failed() ? 1 : 0;
                cancel_next();
            }));
    };

    run_on(context, [&] {
        for (std::size_t i = 0; i != total; ++i)
            wait(i);
    });
    for (int round = 0; round <= size.rounds; ++round) {
        run_on(context, [&] {
            if (round != 0)
                meter.begin();
            left = size.batch;
            cancel_next();
        });
        if (round != 0)
            meter.end(static_cast<std::int64_t>(size.batch));
        run_on(context, [&] {
            for (std::size_t i = size.batch; i != 0; --i)
                wait(waiter_of(turn - i));
        });
    }
    const bool right = cancelled == size.batch * static_cast<std::size_t>(size.rounds + 1);
    run_on(context, [&] {
        for (Event& event : events)
            event.wake_all();
    });
    return right;
}

} // namespace bench
