// SPDX-License-Identifier: BSL-1.0
// Taking available permits of a rate limiter, and a keyed rate limiter with a million keys.
#include "support/enroll.hpp"
#include "support/token_bucket.hpp"
#include "support/workloads.hpp"

#include <turnstile/resilience/keyed_rate_limiter.hpp>
#include <turnstile/resilience/rate_limiter.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace bench {
namespace {

constexpr double rate = 1e8;
constexpr std::uint64_t burst = 50'000'000;
constexpr std::int64_t times = 100'000;
constexpr std::uint64_t keys = 1'000'000;

template <class Threading, class Clock>
using limiter = turnstile::basic_rate_limiter<asio::any_io_executor, Threading, Clock>;
template <class Threading, class Clock>
using keyed_limiter =
    turnstile::basic_keyed_rate_limiter<std::uint64_t, std::hash<std::uint64_t>, std::equal_to<>,
                                        asio::any_io_executor, Threading, Clock>;

using turnstile::strand_confined;
using turnstile::thread_safe;
using steady = std::chrono::steady_clock;

// A limiter of any type, with a context if its constructor needs one.
template <class Limiter>
class made {
public:
    template <class... Args>
    explicit made(Args... args)
    {
        if constexpr (std::is_constructible_v<Limiter, Args...>)
            limiter_.emplace(args...);
        else
            limiter_.emplace(context_, args...);
    }
    Limiter& operator*() noexcept { return *limiter_; }
    asio::io_context& context() noexcept { return context_; }

private:
    asio::io_context context_;
    std::optional<Limiter> limiter_;
};

template <class Limiter>
bool take_in_a_loop(meter& m, Limiter& limiter, int threads)
{
    const auto take = [&] {
        bool all = true;
        for (std::int64_t i = 0; i != times; ++i)
            all = limiter.try_acquire() && all;
        return all;
    };
    bool right = take();
    m.begin();
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i)
        others.emplace_back([&] { take(); });
    right = take() && right;
    others.clear();
    m.end(threads * times);
    return right;
}

template <class Limiter, class... Args>
void enroll_try(const std::string& name, int threads, Args... args)
{
    enroll(
        name,
        [=](meter& m) {
            made<Limiter> l(args...);
            return take_in_a_loop(m, *l, threads);
        },
        threads);
}

template <class Clock>
void enroll_tries(const std::string& workload)
{
    const auto one = turnstile::per_second(rate, burst);
    enroll_try<limiter<thread_safe, Clock>>(workload + "/ours", 1, one);
    enroll_try<limiter<strand_confined, Clock>>(workload + "/local", 1, one);
    enroll_try<mutex_bucket<Clock>>(workload + "/std_mutex", 1, rate, double(burst));
}

// Every key once, in no particular order.
std::uint64_t key_number(std::uint64_t i) { return i * 2'654'435'761U; }

template <class Limiter>
bool touch(Limiter& limiter, std::uint64_t first, std::uint64_t n)
{
    bool all = true;
    for (std::uint64_t i = first; i != first + n; ++i)
        all = limiter.try_acquire(key_number(i % keys)) && all;
    return all;
}

// A limiter with a million keys, constructed once, and the heap memory of each key.
template <class Limiter>
class crowd {
public:
    template <class... Args>
    static crowd& instance(Args... args)
    {
        static crowd only(args...);
        return only;
    }

    // Other keys in each iteration.
    bool touch_some(meter& m)
    {
        constexpr std::uint64_t some = keys / 10;
        m.begin();
        const bool right = touch(*limiter_, next_, some);
        m.end(some);
        next_ += some;
        return right;
    }
    double bytes() const { return bytes_; }

private:
    template <class... Args>
    explicit crowd(Args... args) : limiter_(args...)
    {
        const std::size_t before = heap::bytes_in_use();
        touch(*limiter_, 0, keys);
        bytes_ = static_cast<double>(heap::bytes_in_use() - before) / keys;
    }

    made<Limiter> limiter_;
    std::uint64_t next_ = 0;
    double bytes_ = 0;
};

template <class Limiter, class... Args>
void enroll_keys(const std::string& competitor, Args... args)
{
    using all = crowd<Limiter>;
    enroll("rate_key/" + competitor,
           [=](meter& m) { return all::instance(args...).touch_some(m); });
    enroll_bytes("bytes_key/" + competitor, [=] { return all::instance(args...).bytes(); });
}

// One call of purge() forgets a million idle keys.
template <class Threading>
bool purge(meter& m)
{
    asio::io_context context;
    keyed_limiter<Threading, stopped_clock> limiter(context, turnstile::per_second(1));
    touch(limiter, 0, keys);
    stopped_clock::elapsed += std::chrono::seconds(1);
    m.begin();
    const std::size_t gone = limiter.purge();
    m.end(keys);
    return gone == keys && limiter.size() == 0;
}

// The cost of a key from its first request until it is forgotten: every key is new, and soon idle.
template <class Threading>
bool come_and_go(meter& m)
{
    asio::io_context context;
    keyed_limiter<Threading, steady> limiter(context, turnstile::per_second(1e6));
    m.begin();
    const bool all = touch(limiter, 0, keys);
    m.end(keys);
    return all && limiter.size() < keys / 10;
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_tries<steady>("rate_try");
    enroll_tries<stopped_clock>("rate_try_no_clock");
    const auto one = turnstile::per_second(rate, burst);
    enroll_try<limiter<thread_safe, steady>>("rate_try_2_threads/ours", 2, one);
    enroll_try<mutex_bucket<steady>>("rate_try_2_threads/std_mutex", 2, rate, double(burst));
    const std::vector four(4, one);
    enroll_try<limiter<thread_safe, steady>>("rate_try_4/ours", 1, four);
    enroll_try<limiter<strand_confined, steady>>("rate_try_4/local", 1, four);

    const auto acquire = []<class P>(std::type_identity<P>) {
        return [](meter& m) {
            made<limiter<P, steady>> l(turnstile::per_second(rate, burst));
            return loop(m, l.context(), times / 4, [&] { return (*l).async_acquire(); });
        };
    };
    enroll("rate_acquire/ours", acquire(std::type_identity<thread_safe>()));
    enroll("rate_acquire/local", acquire(std::type_identity<strand_confined>()));

    const auto slow = turnstile::per_second(0.001, 1000);
    enroll_keys<keyed_limiter<thread_safe, steady>>("ours", slow);
    enroll_keys<keyed_limiter<strand_confined, steady>>("local", slow);
    enroll_keys<mutex_buckets<steady>>("std_mutex", 0.001, 1000.0);
    enroll("rate_purge/ours", &purge<thread_safe>);
    enroll("rate_come_and_go/ours", &come_and_go<thread_safe>);
    return true;
}();

} // namespace
} // namespace bench
