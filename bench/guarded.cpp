// SPDX-License-Identifier: BSL-1.0
// One coroutine changes a guarded value, without another user; by hand with a mutex beside a value.
#include "support/enroll.hpp"
#include "support/workloads.hpp"

#include <turnstile/work/guarded.hpp>
#include <turnstile/work/shared_guarded.hpp>

namespace bench {
namespace {

constexpr std::int64_t times = 50'000;

template <class Guarded>
class guarded_number {
public:
    explicit guarded_number(asio::io_context& context) : value_(context, 0) {}
    asio::awaitable<void> add()
    {
        auto value = co_await value_.async_lock(asio::use_awaitable);
        ++*value;
    }

private:
    Guarded value_;
};

template <class Guarded>
class read_number {
public:
    explicit read_number(asio::io_context& context) : value_(context, 1) {}
    asio::awaitable<void> add()
    {
        auto value = co_await value_.async_read(asio::use_awaitable);
        sum_ += *value;
    }

private:
    Guarded value_;
    std::int64_t sum_ = 0;
};

class number_and_mutex {
public:
    explicit number_and_mutex(asio::io_context& context) : mutex_(context) {}
    asio::awaitable<void> add()
    {
        auto lock = co_await mutex_.async_lock(asio::use_awaitable);
        ++value_;
    }

private:
    turnstile::mutex mutex_;
    std::int64_t value_ = 0;
};

template <class Number>
void enroll_number(const std::string& name)
{
    enroll(name, [](meter& m) {
        asio::io_context context;
        Number number(context);
        return loop(m, context, times, [&] { return number.add(); });
    });
}

[[maybe_unused]] const bool enrolled = [] {
    using turnstile::guarded;
    using turnstile::shared_guarded;
    enroll_number<guarded_number<guarded<std::int64_t>>>("guarded/ours");
    enroll_number<guarded_number<turnstile::local::guarded<std::int64_t>>>("guarded/local");
    enroll_number<number_and_mutex>("guarded/by_hand");
    enroll_number<read_number<shared_guarded<std::int64_t>>>("guarded_read/ours");
    enroll_number<read_number<turnstile::local::shared_guarded<std::int64_t>>>(
        "guarded_read/local");
    return true;
}();

} // namespace
} // namespace bench
