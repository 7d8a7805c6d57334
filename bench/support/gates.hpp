// SPDX-License-Identifier: BSL-1.0
// Mutexes and semaphores under one interface: Gate(context, permits), acquire() to be awaited,
// release().
#pragma once

#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstddef>
#include <utility>

namespace bench {

namespace asio = boost::asio;
using boost::system::error_code;

// Whether the result of acquire() releases the gate when it is destroyed. Otherwise release() does.
template <class Gate>
constexpr bool releases_itself = !requires(Gate & gate)
{
    gate.release();
};

template <class Mutex>
class turnstile_mutex {
public:
    explicit turnstile_mutex(asio::io_context& context, std::size_t /*one*/ = 1) : mutex_(context)
    {
    }

    auto acquire() { return mutex_.async_lock(asio::use_awaitable); }

private:
    Mutex mutex_;
};

template <class Semaphore>
class turnstile_semaphore {
public:
    turnstile_semaphore(asio::io_context& context, std::size_t permits)
        : semaphore_(context, permits, permits)
    {
    }

    auto acquire() { return semaphore_.async_acquire(asio::use_awaitable); }

private:
    Semaphore semaphore_;
};

// A channel with a message for each permit.
template <class Channel>
class channel_gate {
public:
    explicit channel_gate(asio::io_context& context, std::size_t permits = 1)
        : channel_(context, permits)
    {
        for (std::size_t i = 0; i != permits; ++i)
            channel_.try_send(error_code());
    }

    auto acquire() { return channel_.async_receive(asio::use_awaitable); }
    void release() { channel_.try_send(error_code()); }

private:
    Channel channel_;
};

using channel = asio::experimental::channel<void(error_code)>;
using concurrent_channel = asio::experimental::concurrent_channel<void(error_code)>;

// The idiom of a timer that never expires, and is cancelled to wake a waiter.
class timer_gate {
public:
    explicit timer_gate(asio::io_context& context, std::size_t permits = 1)
        : timer_(context, asio::steady_timer::time_point::max()), permits_(permits)
    {
    }

    asio::awaitable<void> acquire()
    {
        while (permits_ == 0) {
            error_code cancelled;
            co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
        }
        --permits_;
    }
    void release()
    {
        ++permits_;
        timer_.cancel_one();
    }

private:
    asio::steady_timer timer_;
    std::size_t permits_;
};

} // namespace bench
