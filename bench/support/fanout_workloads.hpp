// SPDX-License-Identifier: BSL-1.0
// The workloads of fan-out, as templates over the competitor; see workloads.hpp.
#pragma once

#include "fanout.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace bench {

// Sends value after value to `receivers` coroutines, each of which waits for every value. The first
// tenth is not measured.
template <class Fanout, class Meter>
bool fan_out(Meter& meter, std::size_t receivers, int values)
{
    asio::io_context context;
    Fanout fanout(context, receivers);
    std::int64_t sum = 0;
    const int warm = values / 10;

    const auto receive = [&](std::size_t i) -> asio::awaitable<void> {
        for (int n = 0; n != values; ++n)
            sum += fanout.value(i, co_await fanout.receive(i));
    };
    for (std::size_t i = 0; i != receivers; ++i)
        asio::co_spawn(context, receive(i), asio::detached);
    context.poll();
    // On the context, whose memory cache it can use. Each value is sent when all receivers have
    // run.
    const auto send = [&]() -> asio::awaitable<void> {
        for (int n = 1; n <= values; ++n) {
            if (n == warm + 1)
                meter.begin();
            const std::int64_t wanted = sum + n * static_cast<std::int64_t>(receivers);
            fanout.send(n);
            do
                co_await asio::post(asio::use_awaitable);
            while (sum != wanted);
        }
        meter.end(static_cast<std::int64_t>(receivers) * (values - warm));
    };
    asio::co_spawn(context, send(), asio::detached);
    context.restart();
    context.run();
    const auto n = static_cast<std::int64_t>(values);
    return sum == static_cast<std::int64_t>(receivers) * n * (n + 1) / 2;
}

// Makes a channel, waits for its one value, which a posted function sends, and destroys the
// channel.
template <class Once, class Meter>
bool hand_over_once(Meter& meter, int times)
{
    asio::io_context context;
    std::optional<Once> once;
    std::int64_t sum = 0;
    const int warm = times / 10;
    const auto receive = [&]() -> asio::awaitable<void> {
        for (int n = 0; n != times; ++n) {
            if (n == warm)
                meter.begin();
            once.emplace(context);
            asio::post(context, [&] { once->send(1); });
            sum += co_await once->receive();
        }
        meter.end(times - warm);
    };
    asio::co_spawn(context, receive(), asio::detached);
    context.run();
    return sum == times;
}

} // namespace bench
