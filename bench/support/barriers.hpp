// SPDX-License-Identifier: BSL-1.0
// Barriers under one interface, Barrier(context, parties) with arrive() to be awaited, and their
// workload.
#pragma once

#include "gates.hpp"
#include "threads.hpp"

#include <turnstile/sync/barrier.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace bench {

template <class Barrier>
class turnstile_barrier {
public:
    turnstile_barrier(asio::io_context& context, std::size_t parties) : barrier_(context, parties)
    {
    }

    auto arrive() { return barrier_.async_arrive_and_wait(asio::use_awaitable); }

private:
    Barrier barrier_;
};

// The hand-written form: a count, and a timer that the last party cancels.
class timer_barrier {
public:
    timer_barrier(asio::io_context& context, std::size_t parties)
        : timer_(context, asio::steady_timer::time_point::max()), parties_(parties)
    {
    }

    asio::awaitable<void> arrive()
    {
        if (++arrived_ == parties_) {
            arrived_ = 0;
            timer_.cancel();
            co_return;
        }
        error_code ignored;
        co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }

private:
    asio::steady_timer timer_;
    std::size_t parties_;
    std::size_t arrived_ = 0;
};

// The same for several threads: a lock makes counting and waiting one step.
class locked_timer_barrier {
public:
    locked_timer_barrier(asio::io_context& context, std::size_t parties)
        : timer_(context, asio::steady_timer::time_point::max()), parties_(parties)
    {
    }

    auto arrive()
    {
        auto token = asio::as_tuple(asio::use_awaitable);
        return asio::async_initiate<decltype(token), void(error_code)>(
            [this](auto handler) {
                const std::scoped_lock lock(mutex_);
                if (++arrived_ != parties_) {
                    timer_.async_wait(std::move(handler));
                    return;
                }
                arrived_ = 0;
                timer_.cancel();
                asio::post(timer_.get_executor(),
                           [h = std::move(handler)]() mutable { std::move(h)(error_code()); });
            },
            token);
    }

private:
    std::mutex mutex_;
    asio::steady_timer timer_;
    std::size_t parties_;
    std::size_t arrived_ = 0;
};

// `parties` coroutines meet `rounds` times; none may proceed before all have arrived. The first
// tenth is not measured. Int is an atomic if several threads run the context.
template <class Barrier, class Int = std::int64_t, class Meter>
bool meet(Meter& meter, std::int64_t parties, std::int64_t rounds, int threads = 1)
{
    asio::io_context context;
    Barrier barrier(context, static_cast<std::size_t>(parties));
    const std::int64_t total = parties * rounds;
    const std::int64_t warm = total / 10;
    Int arrived{0};
    Int proceeded{0};
    bool early = false;

    const auto party = [&]() -> asio::awaitable<void> {
        for (std::int64_t round = 1; round <= rounds; ++round) {
            if (++arrived == warm)
                meter.begin();
            co_await barrier.arrive();
            if (arrived < round * parties)
                early = true;
            ++proceeded;
        }
    };
    for (std::int64_t i = 0; i != parties; ++i)
        asio::co_spawn(context, party(), asio::detached);
    run_on_threads(context, threads);
    meter.end(total - warm);
    return !early && arrived == total && proceeded == total;
}

} // namespace bench
