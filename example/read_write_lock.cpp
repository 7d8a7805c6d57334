// SPDX-License-Identifier: BSL-1.0
// A read-write lock: any number of readers, or one writer. The second part upgrades a reader to the
// writer without unlocking in between.

#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace asio = boost::asio;

namespace {

// ---- Readers and a writer --------------------------------------------------------------

struct watched {
    int readers = 0;
    int most_readers = 0;
    bool alone = true;
};

asio::awaitable<void> read(turnstile::shared_mutex& mutex, watched& inside)
{
    auto lock = co_await mutex.async_lock_shared();
    inside.most_readers = std::max(inside.most_readers, ++inside.readers);
    co_await asio::post(asio::use_awaitable); // other readers lock meanwhile
    --inside.readers;
}

asio::awaitable<void> write(turnstile::shared_mutex& mutex, watched& inside)
{
    auto lock = co_await mutex.async_lock();
    inside.alone = inside.readers == 0;
    co_await asio::post(asio::use_awaitable); // no other coroutine can lock meanwhile
    inside.alone = inside.alone && inside.readers == 0;
}

void readers_and_a_writer()
{
    asio::io_context io;
    turnstile::shared_mutex mutex(io);
    watched inside;
    for (int i = 0; i != 3; ++i)
        asio::co_spawn(io, read(mutex, inside), asio::detached);
    asio::co_spawn(io, write(mutex, inside), asio::detached);
    for (int i = 0; i != 3; ++i)
        asio::co_spawn(io, read(mutex, inside), asio::detached);
    io.run();
    if (inside.most_readers == 3 && inside.alone)
        fmt::print("Multiple concurrent readers; writer gets exclusive access\n");
}

// ---- Read, then perhaps write ----------------------------------------------------------

// [shared-mutex]
struct directory {
    explicit directory(asio::io_context& io) : mutex(io) {}

    turnstile::shared_mutex mutex;
    std::map<std::string, int> numbers; // guarded by the mutex
};

asio::awaitable<int> look_up(directory& d, std::string name)
{
    auto reading = co_await d.mutex.async_lock_shared(); // beside other readers
    const auto found = d.numbers.find(name);
    co_return found == d.numbers.end() ? 0 : found->second;
}

asio::awaitable<int> number_of(directory& d, std::string name)
{
    auto reading = co_await d.mutex.async_lock_upgrade(); // beside readers, one at a time
    if (const auto found = d.numbers.find(name); found != d.numbers.end())
        co_return found->second;

    auto writing = co_await d.mutex.async_upgrade(reading); // no writer came in between
    const int number = static_cast<int>(d.numbers.size()) + 1;
    d.numbers.emplace(name, number);
    auto again = d.mutex.downgrade(std::move(writing)); // admits other readers
    fmt::print("{} has got number {}\n", name, number);
    co_return number;
}
// [/shared-mutex]

void read_then_write()
{
    asio::io_context io;
    directory d(io);
    for (const char* name : {"ada", "bob", "ada"})
        asio::co_spawn(io, number_of(d, name), asio::detached);
    io.run();
    io.restart();
    asio::co_spawn(io, look_up(d, "ada"), [](const std::exception_ptr&, int number) {
        fmt::print("ada still has number {}\n", number);
    });
    io.run();
}

} // namespace

int main()
{
    readers_and_a_writer();
    read_then_write();
}
