// SPDX-License-Identifier: BSL-1.0
// Ways to start coroutines that are counted, under one interface, and their workloads.
// Spawner(context): spawn(awaitable) starts one.
// Limited(context, limit): spawn(awaitable), to be awaited, starts one when fewer than `limit` run.
#pragma once

#include "heap.hpp"

#include <turnstile/sync/semaphore.hpp>
#include <turnstile/work/task_group.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <utility>

namespace bench {

namespace asio = boost::asio;

template <class Group>
class group_spawner {
public:
    explicit group_spawner(asio::io_context& context) : group_(context) {}
    void spawn(asio::awaitable<void> child) { group_.spawn(std::move(child)); }

private:
    Group group_;
};

class bare_spawner {
public:
    explicit bare_spawner(asio::io_context& context) : context_(context) {}
    void spawn(asio::awaitable<void> child)
    {
        asio::co_spawn(context_, std::move(child), asio::detached);
    }

private:
    asio::io_context& context_;
};

// What a child of a group has: a strand, and a signal that cancels it.
class strand_spawner {
public:
    explicit strand_spawner(asio::io_context& context) : context_(context), signals_(100) {}
    void spawn(asio::awaitable<void> child)
    {
        asio::cancellation_signal& signal = signals_[next_++ % signals_.size()];
        asio::co_spawn(asio::make_strand(context_), std::move(child),
                       asio::bind_cancellation_slot(signal.slot(), asio::detached));
    }

private:
    asio::io_context& context_;
    std::deque<asio::cancellation_signal> signals_;
    std::size_t next_ = 0;
};

// A coroutine starts 100 children at a time, which yield `yields` times. One operation is one
// child. The first tenth is not measured.
template <class Spawner, class Meter>
bool spawn_children(Meter& meter, std::int64_t times, int yields)
{
    asio::io_context context;
    Spawner spawner(context);
    std::int64_t ended = 0;
    const auto child = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != yields; ++i)
            co_await asio::post(asio::use_awaitable);
        ++ended;
    };
    const std::int64_t rounds = times / 100;
    for (std::int64_t round = 0; round != rounds; ++round) {
        asio::post(context, [&] {
            if (round == rounds / 10)
                meter.begin();
            for (int i = 0; i != 100; ++i)
                spawner.spawn(child());
        });
        context.restart();
        context.run();
    }
    meter.end(100 * (rounds - rounds / 10));
    return ended == 100 * rounds;
}

template <class Group>
class limited_group {
public:
    limited_group(asio::io_context& context, std::size_t limit) : group_(context, {.limit = limit})
    {
    }
    auto spawn(asio::awaitable<void> child)
    {
        return group_.async_spawn(std::move(child), asio::use_awaitable);
    }

private:
    Group group_;
};

// By hand: a permit for each coroutine, which its completion handler gives back.
class semaphore_and_spawn {
public:
    semaphore_and_spawn(asio::io_context& context, std::size_t limit)
        : context_(context), permits_(context, limit)
    {
    }
    asio::awaitable<void> spawn(asio::awaitable<void> child)
    {
        auto permit = co_await permits_.async_acquire(asio::use_awaitable);
        asio::co_spawn(context_, std::move(child),
                       [held = std::move(permit)](std::exception_ptr) {});
    }

private:
    asio::io_context& context_;
    turnstile::semaphore permits_;
};

// One coroutine starts `times` children, at most 100 at a time, which yield once. Fails if the
// memory in use grows after the first tenth by more than what 100 children need.
template <class Limited, class Meter>
bool spawn_limited(Meter& meter, std::int64_t times)
{
    asio::io_context context;
    Limited children(context, 100);
    std::int64_t ended = 0;
    std::int64_t running = 0;
    std::int64_t most = 0;
    const auto child = [&]() -> asio::awaitable<void> {
        most = std::max(most, ++running);
        co_await asio::post(asio::use_awaitable);
        --running;
        ++ended;
    };
    std::size_t before = 0;
    std::size_t after = 0;
    const auto run = [&]() -> asio::awaitable<void> {
        for (std::int64_t i = 0; i != times; ++i) {
            if (i == times / 10) {
                before = heap::bytes_in_use();
                meter.begin();
            }
            co_await children.spawn(child());
        }
        meter.end(times - times / 10);
        after = heap::bytes_in_use();
    };
    asio::co_spawn(context, run(), asio::detached);
    context.run();
    constexpr std::size_t of_100_children = 200'000;
    return ended == times && most == 100 && after < before + of_100_children;
}

} // namespace bench
