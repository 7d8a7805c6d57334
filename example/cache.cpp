// SPDX-License-Identifier: BSL-1.0
// A hundred callers ask for a value that takes long to compute; it is computed once.

#include <turnstile/work/cache.hpp>
#include <turnstile/work/single_flight.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

struct user {
    std::string name;
};

int computed = 0;

// [load]
asio::awaitable<user> load_user(std::string id)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, 5ms); // a slow database
    co_await timer.async_wait(asio::use_awaitable);
    ++computed;
    co_return user{"the user " + id};
}
// [/load]

using user_cache = turnstile::cache<std::string, user>;

// [get]
asio::awaitable<std::shared_ptr<const user>> get_or_compute(user_cache& users, std::string id)
{
    co_return co_await users.async_get(id);
}
// [/get]

asio::awaitable<void> caller(user_cache& users, int& served)
{
    const auto u = co_await get_or_compute(users, "user:123");
    served += u->name == "the user user:123" ? 1 : 0;
}

// [bulk]
asio::awaitable<std::map<std::string, user>> load_users(const std::vector<std::string>& ids)
{
    std::map<std::string, user> found; // one query for all of them
    for (const std::string& id : ids)
        found.emplace(id, user{"the user " + id});
    co_return found;
}

asio::awaitable<void> print_all(user_cache& users)
{
    const std::vector<std::string> ids{"user:1", "user:123", "user:2"};
    for (const auto& u : co_await users.async_get_all(ids, load_users))
        fmt::print("{}\n", u->name);
}
// [/bulk]

// [single-flight]
asio::awaitable<void> call_once_at_a_time(turnstile::single_flight<std::string, user>& flights)
{
    const auto u = co_await flights.async_do("user:7", load_user);
    fmt::print("{}\n", u->name);
}
// [/single-flight]

} // namespace

int main()
{
    asio::io_context io;

    // [cache]
    user_cache users(io, {.max_entries = 10'000, .ttl = 5min, .stale_if_error = 1h}, load_user);
    // [/cache]
    int served = 0;
    for (int i = 0; i != 100; ++i)
        asio::co_spawn(io, caller(users, served), asio::detached);
    io.run();
    fmt::print("{} callers, computed {} time\n", served, computed);

    io.restart();
    asio::co_spawn(io, print_all(users), asio::detached);
    io.run();

    // [change]
    users.put("user:1", user{"a new name"}); // also if it is being loaded
    users.invalidate("user:2");
    users.invalidate_if([](const std::string&, const user& u) { return u.name.empty(); });
    // [/change]
    fmt::print("{}, {} entries\n", users.peek("user:1")->name, users.size());

    turnstile::single_flight<std::string, user> flights(io);
    io.restart();
    for (int i = 0; i != 2; ++i)
        asio::co_spawn(io, call_once_at_a_time(flights), asio::detached);
    io.run();
    fmt::print("{} load for two callers\n", flights.stats().started);
}
