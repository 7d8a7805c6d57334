// SPDX-License-Identifier: BSL-1.0
// Operations that can be cancelled together, under one interface, and their workload.
// Stop(context, n): bind(handler) returns the handler or token for one of n operations, cancel()
// cancels all. And bound_call, for calls<...>.
#pragma once

#include "breakers.hpp"
#include "posted_operation.hpp"
#include "workloads.hpp"

#include <turnstile/sync/event.hpp>
#include <turnstile/work/cancellation_source.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace bench {

template <class Source>
struct bound_call {
    explicit bound_call(asio::io_context& context)
        : stop(context), operation{context.get_executor()}
    {
    }
    auto async_call() { return operation(stop.bind(asio::use_awaitable)); }
    Source stop;
    posted_operation operation;
};

// The same operation without the source, which exists all the same: its timer makes the io_context
// poll for events.
struct unbound_call {
    explicit unbound_call(asio::io_context& context)
        : stop(context), operation{context.get_executor()}
    {
    }
    auto async_call() { return operation(asio::use_awaitable); }
    turnstile::cancellation_source stop;
    posted_operation operation;
};

template <class Source>
class source_stop {
public:
    source_stop(asio::io_context& context, std::size_t) : source_(context) {}
    template <class Handler>
    auto bind(Handler handler)
    {
        return source_.bind(std::move(handler));
    }
    void cancel() { source_.cancel(); }

private:
    Source source_;
};

// By hand: a signal for each operation, emitted on the thread of all operations.
class signals_by_hand {
public:
    signals_by_hand(asio::io_context&, std::size_t operations) : signals_(operations) {}
    template <class Handler>
    auto bind(Handler handler)
    {
        return asio::bind_cancellation_slot(signals_[bound_++].slot(), std::move(handler));
    }
    void cancel()
    {
        for (auto& signal : signals_)
            signal.emit(asio::cancellation_type::terminal);
    }

private:
    std::deque<asio::cancellation_signal> signals_;
    std::size_t bound_ = 0;
};

// Measures from the call of cancel() until all operations have completed.
template <class Stop, class Event, class Meter>
bool cancel_all(Meter& meter, std::size_t operations, int rounds)
{
    asio::io_context context;
    Event never(context);
    std::size_t cancelled = 0;
    for (int round = 0; round != rounds; ++round) {
        Stop stop(context, operations);
        for (std::size_t i = 0; i != operations; ++i)
            never.async_wait(
                stop.bind([&](const error_code& ec) { cancelled += ec.failed() ? 1 : 0; }));
        run_on(context, [&] {
            meter.begin();
            stop.cancel();
        });
        meter.end(static_cast<std::int64_t>(operations));
    }
    return cancelled == operations * static_cast<std::size_t>(rounds);
}

} // namespace bench
