// SPDX-License-Identifier: BSL-1.0
// Read-write locks under one interface, Lock(context) with acquire_shared() and acquire() to be
// awaited, and their workload. The results of these functions release the lock; where they are
// void, release_shared() and release() do.
#pragma once

#include "gates.hpp"

#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <cstdint>

namespace bench {

// A Gate whose acquire() takes a shared lock.
template <class SharedMutex>
class turnstile_reader {
public:
    explicit turnstile_reader(asio::io_context& context, std::size_t /*many*/ = 0) : mutex_(context)
    {
    }

    auto acquire() { return mutex_.async_lock_shared(asio::use_awaitable); }

private:
    SharedMutex mutex_;
};

template <class SharedMutex>
class turnstile_read_write {
public:
    explicit turnstile_read_write(asio::io_context& context) : mutex_(context) {}

    auto acquire_shared() { return mutex_.async_lock_shared(asio::use_awaitable); }
    auto acquire() { return mutex_.async_lock(asio::use_awaitable); }

private:
    SharedMutex mutex_;
};

// A channel used as a mutex. Two writers that each took the permits of all readers one by one would
// deadlock.
template <class Channel>
class channel_read_write : public channel_gate<Channel> {
public:
    using channel_gate<Channel>::channel_gate;

    auto acquire_shared() { return this->acquire(); }
    void release_shared() { this->release(); }
};

// The idiom of a timer that never expires, and is cancelled at each change.
class timer_read_write {
public:
    explicit timer_read_write(asio::io_context& context)
        : timer_(context, asio::steady_timer::time_point::max())
    {
    }

    asio::awaitable<void> acquire_shared()
    {
        while (writing_)
            co_await change();
        ++readers_;
    }
    void release_shared()
    {
        if (--readers_ == 0)
            timer_.cancel();
    }
    asio::awaitable<void> acquire()
    {
        while (writing_ || readers_ != 0)
            co_await change();
        writing_ = true;
    }
    void release()
    {
        writing_ = false;
        timer_.cancel();
    }

private:
    asio::awaitable<void> change()
    {
        error_code cancelled;
        co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }

    asio::steady_timer timer_;
    int readers_ = 0;
    bool writing_ = false;
};

// 100 coroutines, one in ten of them a writer, yield while they hold the lock. The first tenth is
// not measured.
template <class Lock, class Meter>
bool read_mostly(Meter& meter, std::int64_t times)
{
    asio::io_context context;
    Lock lock(context);
    constexpr std::int64_t coroutines = 100;
    std::int64_t readers = 0;
    std::int64_t writers = 0;
    std::int64_t passed = 0;
    const std::int64_t total = coroutines * times;
    const std::int64_t warm = total / 10;
    bool right = true;

    const auto enter = [&](std::int64_t& inside) {
        if (passed++ == warm)
            meter.begin();
        ++inside;
        right = right && (writers == 0 || (writers == 1 && readers == 0));
    };
    const auto read = [&]() -> asio::awaitable<void> {
        for (std::int64_t i = 0; i != times; ++i) {
            if constexpr (requires { lock.release_shared(); }) {
                co_await lock.acquire_shared();
                enter(readers);
                co_await asio::post(asio::use_awaitable);
                --readers;
                lock.release_shared();
            } else {
                auto held = co_await lock.acquire_shared();
                enter(readers);
                co_await asio::post(asio::use_awaitable);
                --readers;
            }
        }
    };
    const auto write = [&]() -> asio::awaitable<void> {
        for (std::int64_t i = 0; i != times; ++i) {
            if constexpr (requires { lock.release(); }) {
                co_await lock.acquire();
                enter(writers);
                co_await asio::post(asio::use_awaitable);
                --writers;
                lock.release();
            } else {
                auto held = co_await lock.acquire();
                enter(writers);
                co_await asio::post(asio::use_awaitable);
                --writers;
            }
        }
    };
    for (std::int64_t i = 0; i != coroutines; ++i) {
        if (i % 10 == 0)
            asio::co_spawn(context, write(), asio::detached);
        else
            asio::co_spawn(context, read(), asio::detached);
    }
    context.run();
    meter.end(total - warm);
    return right && passed == total;
}

} // namespace bench
