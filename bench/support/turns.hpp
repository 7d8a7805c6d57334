// SPDX-License-Identifier: BSL-1.0
// Two coroutines that take turns, and wait for each other in different ways: Turns(context),
// wait_for(who) to be awaited, and pass_to(who).
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
    asio::awaitable<void> play(int who, std::int64_t times, Body body)
    {
        auto lock = co_await mutex_.async_lock(asio::use_awaitable);
        for (; times != 0; --times) {
            while (turn_ != who)
                co_await changed_.async_wait(lock, asio::use_awaitable);
            body();
            turn_ = 1 - who;
            changed_.notify_one();
        }
    }

private:
    Mutex mutex_;
    Condition changed_;
    int turn_ = 0;
};

// The idiom of a timer that never expires, and is cancelled when something has changed. What
// it has no need for is a lock, as long as there is one thread.
class timer_turns {
public:
    explicit timer_turns(asio::io_context& context)
        : timer_(context, asio::steady_timer::time_point::max())
    {
    }

    template <class Body>
    asio::awaitable<void> play(int who, std::int64_t times, Body body)
    {
        for (; times != 0; --times) {
            while (turn_ != who) {
                error_code cancelled;
                co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
            }
            body();
            turn_ = 1 - who;
            timer_.cancel_one();
        }
    }

private:
    asio::steady_timer timer_;
    int turn_ = 0;
};

// A channel for each side, through which its turn is sent.
template <class Channel>
class channel_turns {
public:
    explicit channel_turns(asio::io_context& context) : sides_{{context, 1}, {context, 1}}
    {
        sides_[0].try_send(error_code());
    }

    template <class Body>
    asio::awaitable<void> play(int who, std::int64_t times, Body body)
    {
        for (; times != 0; --times) {
            co_await sides_[who].async_receive(asio::use_awaitable);
            body();
            sides_[1 - who].try_send(error_code());
        }
    }

private:
    Channel sides_[2];
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
    const auto take = [&](int who) {
        return [&, who] {
            right = right && last != who;
            last = who;
            if (taken++ == times / 10)
                meter.begin();
        };
    };
    for (int who : {0, 1})
        asio::co_spawn(context, turns.play(who, times / 2, take(who)), asio::detached);
    context.run();
    meter.end(times - times / 10);
    return right && taken == times;
}

} // namespace bench
