// SPDX-License-Identifier: BSL-1.0
// The code sample of README.md.

// [readme]
#include <turnstile/turnstile.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <map>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<std::string> fetch(int page) // stands for a request to a server
{
    asio::steady_timer network(co_await asio::this_coro::executor, 1ms);
    co_await network.async_wait(asio::use_awaitable);
    co_return fmt::format("text of page {}", page);
}

// Pages that several workers fill.
struct library {
    explicit library(asio::io_context& io) : mutex(io) {}

    turnstile::mutex mutex;
    std::map<int, std::string> pages;
};

asio::awaitable<void> work(turnstile::queue<int>& jobs, const auto& requests, library& results)
{
    for (;;) {
        auto [ec, page] = co_await jobs.async_pop(asio::as_tuple(asio::use_awaitable));
        if (ec == turnstile::errc::closed)
            co_return; // every job was taken

        const auto request = [number = page] { return fetch(number); };
        auto [failed, text] =
            co_await requests.async_call(request, asio::as_tuple(asio::use_awaitable));
        if (failed)
            continue; // after three attempts the page is left out

        auto lock = co_await results.mutex.async_lock(); // does not suspend if it is free
        results.pages[page] = std::move(text);
    }
}

asio::awaitable<void> submit(turnstile::queue<int>& jobs)
{
    for (int page = 1; page <= 100; ++page)
        co_await jobs.async_push(page); // waits while the queue is full
    jobs.close();                       // the workers drain it, and end
}

int main()
{
    asio::io_context io;
    turnstile::queue<int> jobs(io, 8);
    turnstile::rate_limiter limiter(io, turnstile::per_second(10'000, 100));
    turnstile::circuit_breaker breaker(io);
    const auto requests = turnstile::pipeline(io)
                              .retry({.max_attempts = 3})
                              .rate_limiter(limiter)
                              .circuit_breaker(breaker)
                              .timeout(2s); // for each attempt
    library results(io);

    for (int worker = 0; worker != 4; ++worker)
        asio::co_spawn(io, work(jobs, requests, results), asio::detached);
    asio::co_spawn(io, submit(jobs), asio::detached);
    io.run();
    fmt::print("{} pages\n", results.pages.size());
}
// [/readme]
