// SPDX-License-Identifier: BSL-1.0
// Fan-out under one interface: Fanout(context, receivers), receive(i) to be awaited, value(i,
// result of receive), and send(value), which reaches all receivers.
#pragma once

#include <turnstile/channel/broadcast.hpp>
#include <turnstile/channel/oneshot.hpp>
#include <turnstile/channel/watch.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <tuple>
#include <utility>
#include <vector>

namespace bench {

namespace asio = boost::asio;
using boost::system::error_code;

using int_channel = asio::experimental::channel<void(error_code, int)>;
using concurrent_int_channel = asio::experimental::concurrent_channel<void(error_code, int)>;

template <class Broadcast>
class turnstile_broadcast {
public:
    static constexpr std::size_t capacity = 64;

    turnstile_broadcast(asio::io_context& context, std::size_t receivers)
        : broadcast_(context.get_executor(), capacity)
    {
        while (receivers_.size() != receivers)
            receivers_.push_back(broadcast_.subscribe());
    }

    auto receive(std::size_t i) { return receivers_[i].async_receive(asio::use_awaitable); }
    int value(std::size_t, const typename Broadcast::message_type& m) const { return *m; }
    void send(int value) { broadcast_.send(value); }

private:
    Broadcast broadcast_;
    std::vector<typename Broadcast::receiver_type> receivers_;
};

// A channel for each receiver.
template <class Channel>
class channel_for_each {
public:
    channel_for_each(asio::io_context& context, std::size_t receivers)
    {
        while (channels_.size() != receivers)
            channels_.emplace_back(context,
                                   turnstile_broadcast<turnstile::broadcast<int>>::capacity);
    }

    auto receive(std::size_t i) { return channels_[i].async_receive(asio::use_awaitable); }
    int value(std::size_t, int v) const { return v; }
    void send(int value)
    {
        for (Channel& c : channels_)
            c.try_send(error_code(), value);
    }

private:
    std::deque<Channel> channels_;
};

template <class Watch>
class turnstile_watch {
public:
    turnstile_watch(asio::io_context& context, std::size_t receivers)
        : watch_(context.get_executor(), -1), seen_(receivers, watch_.version())
    {
    }

    auto receive(std::size_t i) { return watch_.async_wait_changed(seen_[i], asio::use_awaitable); }
    int value(std::size_t i, const typename Watch::snapshot_type& now)
    {
        seen_[i] = now.version();
        return *now;
    }
    void send(int value) { watch_.set(value); }

private:
    Watch watch_;
    std::vector<std::uint64_t> seen_;
};

// A value, and a timer that is cancelled when the value changes. A receiver that does not wait at
// that moment misses the change.
class timer_watch {
public:
    timer_watch(asio::io_context& context, std::size_t)
        : timer_(context, asio::steady_timer::time_point::max())
    {
    }

    auto receive(std::size_t) { return timer_.async_wait(asio::as_tuple(asio::use_awaitable)); }
    int value(std::size_t, const std::tuple<error_code>&) const { return value_; }
    void send(int value)
    {
        value_ = value;
        timer_.cancel();
    }

private:
    asio::steady_timer timer_;
    int value_ = 0;
};

// One value through a channel made for it: Once(context), send(value), receive() to be awaited.
template <class Oneshot>
class turnstile_once {
public:
    explicit turnstile_once(asio::io_context& context) : oneshot_(context.get_executor()) {}
    auto receive() { return oneshot_.receiver.async_receive(asio::use_awaitable); }
    void send(int value) { oneshot_.sender.send(value); }

private:
    Oneshot oneshot_;
};

template <class Channel>
class channel_once {
public:
    explicit channel_once(asio::io_context& context) : channel_(context, 1) {}
    auto receive() { return channel_.async_receive(asio::use_awaitable); }
    void send(int value) { channel_.try_send(error_code(), value); }

private:
    Channel channel_;
};

} // namespace bench
