// SPDX-License-Identifier: BSL-1.0
// Events under one interface: Event(context), wait() to be awaited, wait(token), and wake_all(),
// which completes all waits and leaves the event unset.
#pragma once

#include "gates.hpp"

#include <turnstile/sync/event.hpp>

#include <boost/asio/as_tuple.hpp>

#include <utility>

namespace bench {

template <class Event>
class turnstile_event {
public:
    explicit turnstile_event(asio::io_context& context) : event_(context) {}

    auto wait() { return event_.async_wait(asio::use_awaitable); }
    template <class Token>
    auto wait(Token&& token)
    {
        return event_.async_wait(std::forward<Token>(token));
    }
    void wake_all()
    {
        event_.set();
        event_.clear();
    }

private:
    Event event_;
};

// A channel that is closed to wake all waiters. They complete with an error; as_tuple keeps it from
// being thrown.
template <class Channel>
class channel_event {
public:
    explicit channel_event(asio::io_context& context) : channel_(context) {}

    template <class Token>
    auto wait(Token&& token)
    {
        return channel_.async_receive(std::forward<Token>(token));
    }
    auto wait() { return wait(asio::as_tuple(asio::use_awaitable)); }
    void wake_all()
    {
        channel_.close();
        channel_.reset();
    }

private:
    Channel channel_;
};

class timer_event {
public:
    explicit timer_event(asio::io_context& context)
        : timer_(context, asio::steady_timer::time_point::max())
    {
    }

    template <class Token>
    auto wait(Token&& token)
    {
        return timer_.async_wait(std::forward<Token>(token));
    }
    auto wait() { return wait(asio::as_tuple(asio::use_awaitable)); }
    void wake_all() { timer_.cancel(); }

private:
    asio::steady_timer timer_;
};

} // namespace bench
