// SPDX-License-Identifier: BSL-1.0
// Circuit breakers and bulkheads, and the hand-written class that they replace.
#pragma once

#include "posted_operation.hpp"
#include "workloads.hpp"

#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>
#include <turnstile/resilience/keyed_circuit_breaker.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace bench {

template <class Bulkhead>
class turnstile_bulkhead {
public:
    turnstile_bulkhead(asio::io_context& context, std::size_t permits)
        : bulkhead_(context, {.limit = permits, .max_waiters = 1000})
    {
    }

    auto acquire() { return bulkhead_.async_acquire(asio::use_awaitable); }

private:
    Bulkhead bulkhead_;
};

// The usual class of a few lines: a lock around a count of failures.
class hand_made_breaker {
public:
    explicit hand_made_breaker(asio::io_context&) {}

    bool call()
    {
        {
            const std::scoped_lock lock(mutex_);
            if (is_open_ && std::chrono::steady_clock::now() < until_)
                return false;
        }
        const std::scoped_lock lock(mutex_);
        failures_ = 0;
        ++successes_;
        return true;
    }

private:
    std::mutex mutex_;
    bool is_open_ = false;
    std::chrono::steady_clock::time_point until_;
    int failures_ = 0;
    std::uint64_t successes_ = 0;
};

// The same class for each of 1,000 keys in turn: a map behind one lock.
class hand_made_keyed_breaker {
public:
    explicit hand_made_keyed_breaker(asio::io_context& context) : context_(context) {}

    bool call()
    {
        key_ = (key_ + 1) % 1000;
        hand_made_breaker* breaker = nullptr;
        {
            const std::scoped_lock lock(mutex_);
            breaker = &breakers_.try_emplace(key_, context_).first->second;
        }
        return breaker->call();
    }

private:
    asio::io_context& context_;
    std::mutex mutex_;
    std::unordered_map<int, hand_made_breaker> breakers_;
    int key_ = 0;
};

struct in_a_row {
    static turnstile::circuit_breaker_options options() { return {}; }
};
struct last_hundred {
    static turnstile::circuit_breaker_options options()
    {
        return {.window = turnstile::count_window{}};
    }
};
struct last_seconds {
    static turnstile::circuit_breaker_options options()
    {
        return {.window = turnstile::time_window{}, .slow_after = std::chrono::seconds(1)};
    }
};

template <class Breaker, class Window>
class turnstile_breaker {
public:
    explicit turnstile_breaker(asio::io_context& context) : breaker_(context, Window::options()) {}

    bool call()
    {
        auto permit = breaker_.try_acquire();
        const bool admitted = static_cast<bool>(permit);
        permit.success();
        return admitted;
    }

private:
    Breaker breaker_;
};

// 1,000 keys in turn. The window must remember successes, so that no key is forgotten.
template <class Breaker, class Window>
class turnstile_keyed_breaker {
public:
    explicit turnstile_keyed_breaker(asio::io_context& context)
        : breaker_(context, Window::options())
    {
    }

    bool call()
    {
        key_ = (key_ + 1) % 1000;
        auto permit = breaker_.try_acquire(key_);
        const bool admitted = static_cast<bool>(permit);
        permit.success();
        return admitted;
    }

private:
    Breaker breaker_;
    int key_ = 0;
};

// Calls that succeed, through a closed circuit.
template <class Breaker, class Meter>
bool permits(Meter& meter, std::int64_t times)
{
    asio::io_context context;
    Breaker breaker(context);
    std::int64_t admitted = 0;
    for (std::int64_t i = 0; i != times / 10; ++i)
        admitted += breaker.call() ? 1 : 0;
    meter.begin();
    for (std::int64_t i = times / 10; i != times; ++i)
        admitted += breaker.call() ? 1 : 0;
    meter.end(times - times / 10);
    return admitted == times;
}

template <class Stage>
struct stage_calls {
    explicit stage_calls(asio::io_context& context)
        : stage(context), operation{context.get_executor()}
    {
    }
    auto async_call() { return stage.async_call(operation, asio::use_awaitable); }
    Stage stage;
    posted_operation operation;
};

struct direct_calls {
    explicit direct_calls(asio::io_context& context) : operation{context.get_executor()} {}
    auto async_call() { return operation(asio::use_awaitable); }
    posted_operation operation;
};

// One coroutine makes one call after the other; the first tenth is not measured.
template <class Calls, class Meter>
bool calls(Meter& meter, std::int64_t times)
{
    asio::io_context context;
    Calls callee(context);
    return loop(meter, context, times, [&] { return callee.async_call(); });
}

} // namespace bench
