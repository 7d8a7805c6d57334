// SPDX-License-Identifier: BSL-1.0
// One coroutine locks and unlocks one key after the other: with a keyed_mutex, and with a map of
// mutexes by hand, from which the last user of a key removes it.
#include "support/enroll.hpp"

#include <turnstile/sync/mutex.hpp>
#include <turnstile/work/keyed_mutex.hpp>

#include <boost/asio.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace bench {
namespace {

constexpr std::int64_t times = 50'000;
constexpr int keys = 1000;

template <class Mutex>
class keyed_locks {
public:
    explicit keyed_locks(boost::asio::io_context& io) : locks_(io) {}
    boost::asio::awaitable<void> use(int key) { auto lock = co_await locks_.async_lock(key); }

private:
    Mutex locks_;
};

class map_of_mutexes {
public:
    explicit map_of_mutexes(boost::asio::io_context& io) : io_(io) {}
    boost::asio::awaitable<void> use(int key)
    {
        std::shared_ptr<turnstile::mutex> m;
        {
            const std::scoped_lock guard(guard_);
            auto& found = all_[key];
            if (!found)
                found = std::make_shared<turnstile::mutex>(io_);
            m = found;
        }
        {
            auto lock = co_await m->async_lock();
        }
        const std::scoped_lock guard(guard_);
        m.reset();
        if (const auto it = all_.find(key); it != all_.end() && it->second.use_count() == 1)
            all_.erase(it);
    }

private:
    boost::asio::io_context& io_;
    std::mutex guard_;
    std::map<int, std::shared_ptr<turnstile::mutex>> all_;
};

template <class Locks>
bool one_after_the_other(meter& m)
{
    boost::asio::io_context io;
    Locks locks(io);
    std::int64_t done = 0;
    const auto run = [&]() -> boost::asio::awaitable<void> {
        for (; done != times; ++done) {
            if (done == times / 10)
                m.begin();
            co_await locks.use(static_cast<int>(done % keys));
        }
        m.end(times - times / 10);
    };
    boost::asio::co_spawn(io, run(), boost::asio::detached);
    io.run();
    return done == times;
}

[[maybe_unused]] const bool enrolled = [] {
    enroll("keyed_lock/ours", one_after_the_other<keyed_locks<turnstile::keyed_mutex<int>>>);
    enroll("keyed_lock/local",
           one_after_the_other<keyed_locks<turnstile::local::keyed_mutex<int>>>);
    enroll("keyed_lock/by_hand", one_after_the_other<map_of_mutexes>);
    return true;
}();

} // namespace
} // namespace bench
