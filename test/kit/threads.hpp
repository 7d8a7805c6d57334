// SPDX-License-Identifier: BSL-1.0
// Threads for the stress tests: functions that run at the same time, contexts that several threads
// run, and cancellations that race with a completion.
#pragma once

#include "kit/joining_thread.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace kit {

namespace asio = boost::asio;

// The number of repetitions: `n`, or a fraction of it where a sanitizer makes the program slow.
constexpr int rounds(int n, int sanitized_fraction = 10) noexcept
{
#if TURNSTILE_SANITIZED
    return n / sanitized_fraction;
#else
    (void)sanitized_fraction;
    return n;
#endif
}

inline constexpr int default_threads = 4;

// Calls f(0), f(1), ... f(threads - 1) at the same time, each on a thread of its own, and returns
// when all calls have returned.
template <class F>
void on_threads(F f, int threads = default_threads)
{
    std::latch start(threads);
    std::vector<joining_thread> pool;
    pool.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i != threads; ++i) {
        pool.emplace_back([&start, &f, i] {
            start.arrive_and_wait();
            f(i);
        });
    }
}

// Calls all functions at the same time, each on a thread of its own.
template <class... F>
void at_once(F... f)
{
    const std::function<void()> functions[] = {std::move(f)...};
    on_threads([&](int i) { functions[i](); }, static_cast<int>(sizeof...(F)));
}

// Runs the context on several threads until it is out of work.
inline void run_on_threads(asio::io_context& io, int threads = default_threads)
{
    on_threads([&io](int) { io.run(); }, threads);
}

// A thread that runs a context. The context does not run out of work before finish().
class context_thread {
public:
    explicit context_thread(asio::io_context& io)
        : work_(asio::make_work_guard(io)), thread_([&io] { io.run(); })
    {
    }
    context_thread(const context_thread&) = delete;
    context_thread& operator=(const context_thread&) = delete;
    ~context_thread() { work_.reset(); }

    // Returns when the context is out of work.
    void finish()
    {
        work_.reset();
        thread_.join();
    }

private:
    asio::executor_work_guard<asio::io_context::executor_type> work_;
    joining_thread thread_; // the first to be destroyed: it joins
};

// Cancels, or does not, one operation of a coroutine on a strand. A function posted to the strand
// emits the signal while other threads may grant the operation: the cancelled operation is queued,
// or granted and not yet delivered.
class racing_cancellation {
public:
    racing_cancellation(const asio::any_io_executor& strand, bool cancels)
    {
        asio::post(strand, [this, cancels] {
            if (cancels)
                signal_.emit(asio::cancellation_type::total);
        });
    }
    racing_cancellation(const racing_cancellation&) = delete;
    racing_cancellation& operator=(const racing_cancellation&) = delete;

    // The completion token of the operation.
    auto token()
    {
        return asio::as_tuple(asio::bind_cancellation_slot(signal_.slot(), asio::use_awaitable));
    }

    // To be awaited before the destruction: the posted function uses the signal.
    static auto emitted() { return asio::post(asio::use_awaitable); }

private:
    asio::cancellation_signal signal_;
};

// Counts the failed checks of several threads, because the macros of Boost.Test are not thread
// safe.
class expectation {
public:
    void operator()(bool holds) noexcept { failures_ += holds ? 0 : 1; }
    int failures() const noexcept { return failures_; }

private:
    std::atomic<int> failures_ = 0;
};

} // namespace kit
