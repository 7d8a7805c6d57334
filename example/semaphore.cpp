// SPDX-License-Identifier: BSL-1.0
// Ten tasks, three permits: a semaphore limits how many of them run at once.
// The same in three styles: coroutines, callbacks, and futures on threads that may block.

#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr int tasks = 10;
constexpr int limit = 3;

// Counts the running tasks, and remembers the maximum.
class headcount {
public:
    void enter()
    {
        const std::scoped_lock lock(mutex_);
        most_ = std::max(most_, ++now_);
    }
    void leave()
    {
        const std::scoped_lock lock(mutex_);
        --now_;
    }
    void report(std::string_view style) const
    {
        if (most_ <= limit && now_ == 0)
            fmt::print("At most {} tasks running concurrently{}\n", limit, style);
        else
            fmt::print("The limit of {} was broken: {} tasks at once{}\n", limit, most_, style);
    }

private:
    std::mutex mutex_;
    int now_ = 0;
    int most_ = 0;
};

// ---- Coroutines ------------------------------------------------------------------------

asio::awaitable<void> call(turnstile::semaphore& semaphore, headcount& running)
{
    auto permit = co_await semaphore.async_acquire();
    running.enter();
    asio::steady_timer work(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
    co_await work.async_wait(asio::use_awaitable);
    running.leave();
}

void with_coroutines()
{
    asio::io_context io;
    turnstile::semaphore semaphore(io, limit);
    headcount running;

    for (int i = 0; i != tasks; ++i)
        asio::co_spawn(io, call(semaphore, running), asio::detached);
    io.run();

    running.report("");
}

// ---- Callbacks -------------------------------------------------------------------------

void with_callbacks()
{
    using permit_type = turnstile::semaphore::permit_type;
    asio::io_context io;
    turnstile::semaphore semaphore(io, limit);
    headcount running;

    for (int i = 0; i != tasks; ++i) {
        semaphore.async_acquire([&](error_code ec, permit_type permit) {
            if (ec)
                return;
            running.enter();
            // The permit moves along with the work, and is released at its end.
            asio::post(io, [&, permit = std::move(permit)]() mutable {
                running.leave();
                permit.release();
            });
        });
    }
    io.run();

    running.report(", with callbacks");
}

// ---- Futures ---------------------------------------------------------------------------

void with_futures()
{
    asio::thread_pool pool(1);
    turnstile::semaphore semaphore(pool, limit);
    headcount running;

    std::vector<std::thread> threads;
    for (int i = 0; i != tasks; ++i) {
        threads.emplace_back([&] {
            const auto permit = semaphore.async_acquire(asio::use_future).get();
            running.enter();
            std::this_thread::yield();
            running.leave();
        });
    }
    for (std::thread& thread : threads)
        thread.join();

    running.report(", with futures");
}

} // namespace

int main()
{
    with_coroutines();
    with_callbacks();
    with_futures();
}
