// SPDX-License-Identifier: BSL-1.0
// Two replicas, one of which does not answer. A call that takes longer than usual is also sent to
// the other one; the first answer is the result, and the slow call is cancelled.

#include <turnstile/resilience/hedge.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

asio::awaitable<std::string> ask(int replica)
{
    asio::steady_timer latency(co_await asio::this_coro::executor);
    latency.expires_after(replica == 1 ? 1h : 1ms);
    try {
        co_await latency.async_wait(asio::use_awaitable);
    } catch (const boost::system::system_error&) {
        fmt::print("Replica {} was cancelled.\n", replica);
        throw;
    }
    co_return fmt::format("the answer of replica {}", replica);
}

asio::awaitable<void> run()
{
    // [hedge]
    int next = 0;
    const auto executor = co_await asio::this_coro::executor;
    turnstile::hedge hedge(executor, {.delay = 5ms, .percentile = 0.95});
    const auto ask_next = [&] { return ask(++next); };
    const std::string answer = co_await hedge.async_call(ask_next);
    // [/hedge]
    fmt::print("Got {}.\n", answer);
    fmt::print("Attempts: {}, won by the second: {}\n", hedge.stats().attempts,
               hedge.stats().hedge_won);
}

} // namespace

int main()
{
    asio::io_context io;
    asio::co_spawn(io, run(), asio::detached);
    io.run();
}
