// SPDX-License-Identifier: BSL-1.0
// A program of somebody who uses Turnstile: one object of each kind, for any thread and for one
// strand, so that whatever is compiled into the library is linked from outside.

#include <turnstile/turnstile.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using any = asio::any_io_executor;
using turnstile::errc;

int passed = 0;
int failed = 0;

void expect(bool is_right, const char* what)
{
    ++(is_right ? passed : failed);
    if (!is_right)
        std::printf("Wrong: %s\n", what);
}

template <class Threading>
asio::awaitable<void> add_one(turnstile::basic_mutex<any, Threading>& mutex, int& sum)
{
    auto lock = co_await mutex.async_lock();
    const int before = sum;
    co_await asio::post(asio::use_awaitable);
    sum = before + 1;
}

template <class Threading>
asio::awaitable<void> synchronize()
{
    const any here = co_await asio::this_coro::executor;
    turnstile::basic_mutex<any, Threading> mutex(here);
    turnstile::basic_shared_mutex<any, Threading> shared_mutex(here);
    turnstile::basic_condition<any, Threading> condition(here);
    turnstile::basic_semaphore<any, Threading> semaphore(here, 0);
    turnstile::basic_event<any, Threading> event(here);
    turnstile::basic_auto_reset_event<any, Threading> signal(here);
    turnstile::basic_latch<any, Threading> latch(here, 1);
    turnstile::basic_counter<any, Threading> counter(here);
    turnstile::basic_barrier<any, Threading> barrier(here, 2);

    int sum = 0;
    for (int i = 0; i != 9; ++i)
        asio::co_spawn(here, add_one(mutex, sum), asio::detached);
    co_await add_one(mutex, sum);
    while (sum != 10)
        co_await asio::post(asio::use_awaitable);
    expect(!mutex.is_locked(), "mutex");

    // Each step of the other lets this one go on.
    const auto other = [&]() -> asio::awaitable<void> {
        semaphore.release(1);
        event.set();
        signal.set();
        latch.count_down();
        counter.add(3);
        co_await barrier.async_arrive_and_wait();
        auto lock = co_await mutex.async_lock();
        condition.notify_all();
    };
    asio::co_spawn(here, other(), asio::detached);
    expect(static_cast<bool>(co_await semaphore.async_acquire()), "semaphore");
    co_await event.async_wait();
    co_await signal.async_wait();
    co_await latch.async_wait();
    co_await counter.async_wait_at_least(3);
    expect(counter.value() == 3, "counter");
    auto lock = co_await mutex.async_lock();
    expect(co_await barrier.async_arrive_and_wait() < 2, "barrier");
    co_await condition.async_wait(lock);
    expect(lock.owns_lock(), "condition");

    auto reading = co_await shared_mutex.async_lock_shared();
    auto writing = co_await shared_mutex.async_upgrade(reading);
    expect(writing.owns_lock(), "shared_mutex");
}

template <class Threading>
asio::awaitable<void> communicate()
{
    const any here = co_await asio::this_coro::executor;
    turnstile::basic_queue<int, any, Threading> queue(here, 1);
    turnstile::basic_priority_queue<int, int, std::less<int>, any, Threading> by_priority(here, 2);
    turnstile::basic_broadcast<int, any, Threading> broadcast(here, 4);
    turnstile::basic_watch<int, any, Threading> watch(here, 0);
    auto receiver = broadcast.subscribe();
    auto [answer, asked] = turnstile::basic_oneshot<int, any, Threading>(here);

    const auto other = [&]() -> asio::awaitable<void> {
        co_await queue.async_push(1);
        co_await by_priority.async_push(2, 0);
        broadcast.send(3);
        watch.set(4);
        answer.send(5);
    };
    asio::co_spawn(here, other(), asio::detached);
    expect(co_await queue.async_pop() == 1, "queue");
    expect(co_await by_priority.async_pop() == 2, "priority_queue");
    expect(*co_await receiver.async_receive() == 3, "broadcast");
    expect(*co_await watch.async_wait_for([](int value) { return value == 4; }) == 4, "watch");
    expect(co_await asked.async_receive() == 5, "oneshot");
}

// An operation that works.
const auto work = []() -> asio::awaitable<int> {
    co_await asio::post(asio::use_awaitable);
    co_return 1;
};

template <class Threading>
asio::awaitable<void> resist()
{
    const any here = co_await asio::this_coro::executor;
    turnstile::basic_rate_limiter<any, Threading> limiter(here, turnstile::per_second(1, 1));
    turnstile::basic_keyed_rate_limiter<int, std::hash<int>, std::equal_to<int>, any, Threading>
        keyed(here, turnstile::per_second(1, 1));
    turnstile::basic_circuit_breaker<any, Threading> breaker(here);
    turnstile::basic_bulkhead<any, Threading> bulkhead(here,
                                                       {.adaptive = turnstile::aimd_options()});

    expect(co_await limiter.async_call(work) == 1 && !limiter.try_acquire(), "rate_limiter");
    expect(co_await keyed.async_call(7, work) == 1 && !keyed.try_acquire(7), "keyed_rate_limiter");
    expect(co_await breaker.async_call(work) == 1, "circuit_breaker");
    breaker.force_open();
    try {
        co_await breaker.async_call(work);
    } catch (const turnstile::rejection& e) {
        expect(e.code() == errc::circuit_open, "rejection");
    }
    expect(co_await bulkhead.async_call(work) == 1, "bulkhead");
}

asio::awaitable<void> supervise()
{
    const any here = co_await asio::this_coro::executor;
    turnstile::timeout timeout(here, 1h);
    turnstile::retry retry(here, {.backoff = turnstile::backoff::exponential(1ns).capped(1us),
                                  .budget = std::make_shared<turnstile::retry_budget>()});
    turnstile::hedge hedge(here, {.delay = 1h, .percentile = 0.9, .max_attempts = 3});
    const auto stages = turnstile::pipeline(here).timeout(1h).retry();

    int attempt = 0;
    const auto at_second = [&]() -> asio::awaitable<int> {
        if (++attempt == 1)
            throw turnstile::system_error(asio::error::connection_reset);
        co_return co_await work();
    };
    expect(co_await timeout.async_call(work) == 1, "timeout");
    expect(co_await retry.async_call(at_second) == 1 && attempt == 2, "retry");
    expect(co_await hedge.async_call(work) == 1, "hedge");
    expect(co_await stages.async_call(work) == 1, "pipeline");
}

asio::awaitable<void> use_everything()
{
    co_await synchronize<turnstile::thread_safe>();
    co_await synchronize<turnstile::strand_confined>();
    co_await communicate<turnstile::thread_safe>();
    co_await communicate<turnstile::strand_confined>();
    co_await resist<turnstile::thread_safe>();
    co_await resist<turnstile::strand_confined>();
    co_await supervise();
    expect(turnstile::make_error_code(errc::closed) == boost::system::errc::broken_pipe, "errc");
}

int main()
{
    asio::io_context io;
    asio::co_spawn(io, use_everything(), [](const std::exception_ptr& failure) {
        if (failure)
            std::rethrow_exception(failure);
    });
    io.run();

    std::printf("Turnstile %s: %d right, %d wrong\n", TURNSTILE_VERSION_STRING, passed, failed);
    return passed != 0 && failed == 0 ? 0 : 1;
}
