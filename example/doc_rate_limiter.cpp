// SPDX-License-Identifier: BSL-1.0
// The programs quoted in doc/resilience_rate_limiter.md.

#include <turnstile/resilience/keyed_rate_limiter.hpp>
#include <turnstile/resilience/rate_limiter.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <string>

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;

namespace {

// [acquire]
asio::awaitable<void> send(turnstile::rate_limiter& limiter)
{
    co_await limiter.async_acquire(); // resumes when a permit is granted
}
// [/acquire]

// [within]
asio::awaitable<void> send_soon(turnstile::rate_limiter& limiter)
{
    auto [ec] = co_await limiter.async_acquire(1, 10ms, asio::as_tuple(asio::use_awaitable));
    if (ec == turnstile::errc::rate_limited)
        fmt::print("busy\n");
}
// [/within]

// [retry-after]
void answer(turnstile::rate_limiter& limiter)
{
    turnstile::nanoseconds retry_after{};
    if (!limiter.try_acquire(1, retry_after))
        fmt::print("429, Retry-After: {} h\n",
                   std::chrono::ceil<std::chrono::hours>(retry_after).count());
}
// [/retry-after]

} // namespace

int main()
{
    asio::io_context io;

    // [make]
    turnstile::rate_limiter limiter(io, turnstile::per_second(5, 10)); // 10 at once
    // [/make]

    for (int i = 0; i != 10; ++i)
        asio::co_spawn(io, send(limiter), asio::detached);
    io.run();

    turnstile::rate_limiter slow(io, turnstile::bandwidth{1, 1h, 1});
    asio::co_spawn(io, send(slow), asio::detached);
    asio::co_spawn(io, send_soon(slow), asio::detached);
    io.restart();
    io.run();
    answer(slow);

    // [several]
    turnstile::rate_limiter both(
        io, {turnstile::per_second(10, 10), turnstile::bandwidth{100, 1min, 100}});
    // [/several]
    fmt::print("of both: {}\n", both.available());

    // [reserve]
    auto place = limiter.reserve(3);
    if (place.delay() > 1min)
        place.release(); // gives its permits back
    // [/reserve]

    int served = 0;
    // [keyed]
    turnstile::keyed_rate_limiter<std::string> users(io, turnstile::bandwidth{1, 1h, 3});
    for (const std::string user : {"ann", "bob", "ann", "ann", "ann"})
        served += users.try_acquire(user) ? 1 : 0;
    // [/keyed]
    fmt::print("{} served, {} users\n", served, users.size());

    asio::steady_timer timer(io, 1ms);
    // [call]
    both.async_call(timer.async_wait(asio::deferred),
                    [](error_code ec) { fmt::print("called: {}\n", ec.message()); });
    // [/call]
    io.restart();
    io.run();
}
