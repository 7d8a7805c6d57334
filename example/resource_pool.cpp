// SPDX-License-Identifier: BSL-1.0
// A pool of two resources for four workers. The pool checks a resource before it leases it, and
// replaces those that are stale.

#include <turnstile/work/resource_pool.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <exception>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

struct resource {
    int id;
    int uses = 0;

    bool is_stale() const { return uses >= 2; }
};

// [pool]
asio::awaitable<void> worker(turnstile::resource_pool<resource>& pool, int number, int& served)
{
    for (int job = 1; job <= 2; ++job) {
        auto lease = co_await pool.async_acquire(); // waits for its turn
        ++lease->uses;
        co_await asio::post(asio::use_awaitable); // works with it
        fmt::print("worker {} has used a resource for the {} time\n", number,
                   lease->uses == 1 ? "first" : "second");
        ++served;
    } // returned here
}
// [/pool]

asio::awaitable<void> run()
{
    const auto executor = co_await asio::this_coro::executor;
    int made = 0;
    int served = 0;
    // [operations]
    turnstile::resource_pool<resource> pool(
        executor,
        {.max_size = 2, .bypass_window = 0s, .order = turnstile::reuse_order::oldest_first},
        {.create = [&]() -> asio::awaitable<resource> { co_return resource{++made}; },
         .check = [](resource& r) -> asio::awaitable<bool> { co_return !r.is_stale(); },
         .close = [](resource& r) -> asio::awaitable<void> {
             fmt::print("resource {} is closed after {} uses\n", r.id, r.uses);
             co_return;
         }});
    // [/operations]
    asio::steady_timer all_served(executor, asio::steady_timer::time_point::max());
    for (int number = 1; number <= 4; ++number)
        asio::co_spawn(executor, worker(pool, number, served), [&](std::exception_ptr) {
            if (served == 8)
                all_served.cancel();
        });
    turnstile::error_code cancelled;
    co_await all_served.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));

    // [close]
    co_await pool.async_close(5s); // closes idle resources, waits for leased ones
    const auto stats = pool.stats();
    fmt::print("{} leases of {} resources, {} failed a check\n", stats.acquired, stats.created,
               stats.evicted(turnstile::eviction_reason::check_failed));
    // [/close]
}

} // namespace

int main()
{
    asio::io_context io(1);
    asio::co_spawn(io, run(), asio::detached);
    io.run();
}
