// SPDX-License-Identifier: BSL-1.0
// A configuration that changes while the program runs: its readers see the latest one.

#include <turnstile/channel/watch.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <string>

namespace asio = boost::asio;

namespace {

// [config-type]
struct config {
    int workers = 1;
    std::string level = "info";
};
// [/config-type]

// [config-follow]
// Prints each change; of several changes at once, the last.
asio::awaitable<void> follow(turnstile::watch<config>& settings)
{
    auto now = settings.get();
    for (;;) {
        fmt::print("version {}: {} workers, level {}\n", now.version(), now->workers, now->level);
        auto [ec, next] = co_await settings.async_wait_changed(now.version(),
                                                               asio::as_tuple(asio::use_awaitable));
        if (ec == turnstile::errc::closed)
            break; // the last version was printed
        now = next;
    }
    fmt::print("no more changes\n");
}
// [/config-follow]

// [config-wait]
asio::awaitable<void> wait_for_workers(turnstile::watch<config>& settings)
{
    const auto is_enough = [](const config& c) { return c.workers >= 4; };
    const auto found = co_await settings.async_wait_for(is_enough);
    fmt::print("enough workers: {}\n", found->workers);
}
// [/config-wait]

asio::awaitable<void> administer(turnstile::watch<config>& settings)
{
    const auto let_others_see = [] { return asio::post(asio::use_awaitable); };
    co_await let_others_see();
    // [config-change]
    settings.set(config{2, "debug"});
    // [/config-change]
    co_await let_others_see();
    co_await let_others_see();
    // [config-update]
    settings.update([](config& c) { c.workers *= 2; });
    settings.update([](config& c) { c.level = "warning"; });
    // [/config-update]
    settings.close();
}

} // namespace

int main()
{
    asio::io_context io;
    turnstile::watch<config> settings(io);
    asio::co_spawn(io, follow(settings), asio::detached);
    asio::co_spawn(io, wait_for_workers(settings), asio::detached);
    asio::co_spawn(io, administer(settings), asio::detached);
    io.run();
}
