// SPDX-License-Identifier: BSL-1.0
// Values that can only be reached through their lock, and a lock for each account.

#include <turnstile/work/guarded.hpp>
#include <turnstile/work/keyed_mutex.hpp>
#include <turnstile/work/shared_guarded.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <map>
#include <string>
#include <utility>

namespace asio = boost::asio;

namespace {

// [guarded]
asio::awaitable<void> register_name(turnstile::guarded<std::map<int, std::string>>& names, int id,
                                    std::string name)
{
    auto locked = co_await names.async_lock();
    co_await asio::post(asio::use_awaitable); // the lock stays held
    (*locked)[id] = name;
} // unlocked here
// [/guarded]

// [shared-guarded]
asio::awaitable<void> reload(turnstile::shared_guarded<std::string>& config)
{
    auto writing = co_await config.async_lock();
    *writing = "new";
}

asio::awaitable<void> print(turnstile::shared_guarded<std::string>& config)
{
    auto reading = co_await config.async_read(); // beside other readers
    fmt::print("config: {}, {} characters\n", *reading, reading->size());
}
// [/shared-guarded]

// [keyed-mutex]
asio::awaitable<void> deposit(turnstile::keyed_mutex<std::string>& locks, int& balance, int amount)
{
    auto lock = co_await locks.async_lock("alice"); // other accounts do not wait
    const int before = balance;
    co_await asio::post(asio::use_awaitable);
    balance = before + amount;
}
// [/keyed-mutex]

// [lock-all]
asio::awaitable<void> transfer(turnstile::keyed_mutex<std::string>& locks, std::string from,
                               std::string to, std::map<std::string, int>& accounts)
{
    auto locking = locks.async_lock_all({from, to}); // g++ 12 wants no list inside a co_await
    auto both = co_await std::move(locking);
    accounts[from] -= 10;
    co_await asio::post(asio::use_awaitable);
    accounts[to] += 10;
}
// [/lock-all]

} // namespace

int main()
{
    asio::io_context io;
    turnstile::guarded<std::map<int, std::string>> names(io);
    asio::co_spawn(io, register_name(names, 1, "one"), asio::detached);
    asio::co_spawn(io, register_name(names, 2, "two"), asio::detached);
    io.run();
    if (auto locked = names.try_lock())
        fmt::print("{} names: {}, {}\n", locked->size(), locked->at(1), locked->at(2));

    turnstile::shared_guarded<std::string> config(io, "initial");
    asio::co_spawn(io, print(config), asio::detached);
    asio::co_spawn(io, reload(config), asio::detached);
    asio::co_spawn(io, print(config), asio::detached);
    io.restart();
    io.run();

    turnstile::keyed_mutex<std::string> locks(io);
    int balance = 0;
    for (int i = 0; i != 10; ++i)
        asio::co_spawn(io, deposit(locks, balance, 5), asio::detached);
    std::map<std::string, int> accounts{{"bob", 100}, {"carol", 100}};
    asio::co_spawn(io, transfer(locks, "bob", "carol", accounts), asio::detached);
    asio::co_spawn(io, transfer(locks, "carol", "bob", accounts), asio::detached);
    asio::co_spawn(io, transfer(locks, "bob", "carol", accounts), asio::detached);
    io.restart();
    io.run();
    fmt::print("alice has {}, bob {}, carol {}\n", balance, accounts["bob"], accounts["carol"]);
    fmt::print("locks in use: {}\n", locks.size());
}
