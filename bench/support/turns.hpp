// SPDX-License-Identifier: BSL-1.0
// Two coroutines that take turns under one interface, Turns(context) with play(player, times, body)
// to be awaited, and their workload.
#pragma once

#include "gates.hpp"

#include <turnstile/sync/condition.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <cstdint>
#include <mutex>

namespace bench {

template <class Condition, class Mutex>
class condition_turns {
public:
    explicit condition_turns(asio::io_context& context) : mutex_(context), changed_(context) {}

    template <class Body>
    asio::awaitable<void> play(int player, std::int64_t times, Body body)
    {
        auto lock = co_await mutex_.async_lock(asio::use_awaitable);
        for (; times != 0; --times) {
            while (turn_ != player)
                co_await changed_.async_wait(lock, asio::use_awaitable);
            body();
            turn_ = 1 - player;
            changed_.notify_one();
        }
    }

private:
    Mutex mutex_;
    Condition changed_;
    int turn_ = 0;
};

// The idiom of a timer that never expires, and is cancelled at each change. On one thread it needs
// no lock.
class timer_turns {
public:
    explicit timer_turns(asio::io_context& context)
        : timer_(context, asio::steady_timer::time_point::max())
    {
    }

    template <class Body>
    asio::awaitable<void> play(int player, std::int64_t times, Body body)
    {
        for (; times != 0; --times) {
            while (turn_ != player) {
                error_code cancelled;
                co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
            }
            body();
            turn_ = 1 - player;
            timer_.cancel_one();
        }
    }

private:
    asio::steady_timer timer_;
    int turn_ = 0;
};

// A channel for each player, through which its turn is sent.
template <class Channel>
class channel_turns {
public:
    explicit channel_turns(asio::io_context& context) : channels_{{context, 1}, {context, 1}}
    {
        channels_[0].try_send(error_code());
    }

    template <class Body>
    asio::awaitable<void> play(int player, std::int64_t times, Body body)
    {
        for (; times != 0; --times) {
            co_await channels_[player].async_receive(asio::use_awaitable);
            body();
            channels_[1 - player].try_send(error_code());
        }
    }

private:
    Channel channels_[2];
};

// One operation is one turn. The first tenth is not measured.
template <class Turns, class Meter>
bool take_turns(Meter& meter, std::int64_t times)
{
    asio::io_context context;
    Turns turns(context);
    std::int64_t taken = 0;
    int last = 1;
    bool right = true;
    const auto take = [&](int player) {
        return [&, player] {
            right = right && last != player;
            last = player;
            if (taken++ == times / 10)
                meter.begin();
        };
    };
    for (int player : {0, 1})
        asio::co_spawn(context, turns.play(player, times / 2, take(player)), asio::detached);
    context.run();
    meter.end(times - times / 10);
    return right && taken == times;
}

} // namespace bench
