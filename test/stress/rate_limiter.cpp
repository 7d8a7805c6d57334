// SPDX-License-Identifier: BSL-1.0
// Rate limiters under real threads, with a clock that the threads advance.
#include "kit/joining_thread.hpp"

#include <turnstile/resilience/keyed_rate_limiter.hpp>
#include <turnstile/resilience/rate_limiter.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;
using turnstile::nanoseconds;
using turnstile::per_second;
using namespace std::chrono_literals;

constexpr int threads = 4;
#if TURNSTILE_SANITIZED
constexpr int rounds = 2000;
#else
constexpr int rounds = 20'000;
#endif

struct shared_clock {
    using duration = nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<shared_clock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept
    {
        return time_point(duration(elapsed.load(std::memory_order_relaxed)));
    }
    static void advance(duration by) noexcept { elapsed += by.count(); }

    static inline std::atomic<rep> elapsed{1'000'000'000};
};

template <class F>
void on_threads(F f)
{
    std::vector<kit::joining_thread> pool;
    for (int i = 0; i != threads; ++i)
        pool.emplace_back([&f, i] { f(i); });
}

void run_on_threads(asio::io_context& io)
{
    on_threads([&](int) { io.run(); });
}

} // namespace

// The reactor sleeps only briefly, because the clock may advance at any time. It advances the clock
// itself, because no other thread does while all workers wait.
template <>
struct boost::asio::wait_traits<shared_clock> {
    static nanoseconds to_wait_duration(const nanoseconds&)
    {
        shared_clock::advance(500ns);
        return 10us;
    }
    static nanoseconds to_wait_duration(const shared_clock::time_point&)
    {
        return to_wait_duration(nanoseconds());
    }
};

namespace {

using limiter =
    turnstile::basic_rate_limiter<asio::any_io_executor, turnstile::thread_safe, shared_clock>;

BOOST_AUTO_TEST_SUITE(rate_stress)

BOOST_AUTO_TEST_CASE(many_threads_never_get_more_than_rate_and_burst)
{
    asio::io_context io;
    limiter l(io, per_second(1'000'000, 100), {.count_grants = true});
    const auto start = shared_clock::now();
    std::atomic<std::uint64_t> taken = 0;
    on_threads([&](int id) {
        for (int i = 0; i != rounds; ++i) {
            const auto n = static_cast<std::uint64_t>(1 + (i + id) % 3);
            if (l.try_acquire(n))
                taken += n;
            shared_clock::advance(100ns);
        }
    });
    const auto earned = static_cast<std::uint64_t>((shared_clock::now() - start) / 1us);
    BOOST_TEST(taken <= earned + 100);
    BOOST_TEST(taken >= earned / 2); // permits were granted at all
    BOOST_TEST(l.stats().granted == taken);
}

// Here and below, the workers request about ten times as many permits as are earned, so that the
// limit holds them back.
BOOST_AUTO_TEST_CASE(several_bandwidths_waiters_cancellations_and_changes_keep_the_rate)
{
    asio::io_context io;
    limiter l(io, {per_second(1'000'000, 50), per_second(2'000'000, 20)});
    const auto start = shared_clock::now();
    std::atomic<std::uint64_t> taken = 0;
    const auto worker = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds / 20; ++i) {
            asio::cancellation_signal signal;
            asio::post(executor, [&] {
                if ((i + id) % 3 == 0)
                    signal.emit(asio::cancellation_type::total);
            });
            const auto n = static_cast<std::uint64_t>(1 + (i + id) % 5);
            shared_clock::advance(50ns);
            auto [ec] = co_await l.async_acquire(n, asio::as_tuple(asio::bind_cancellation_slot(
                                                        signal.slot(), asio::use_awaitable)));
            if (!ec)
                taken += n;
            if (i % 50 == id)
                l.set_limits({per_second(1'000'000, 50), per_second(2'000'000, 20)});
            auto reserved = l.reserve(2);
            if (i % 2 == 0)
                reserved.release();
            else
                taken += 2;
            shared_clock::advance(250ns);
            // The posted function uses the signal and must run before the signal is destroyed.
            co_await asio::post(asio::use_awaitable);
        }
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), worker(i), asio::detached);
    run_on_threads(io);
    shared_clock::advance(100us); // the last reservations may be outstanding
    const auto earned = static_cast<std::uint64_t>((shared_clock::now() - start) / 1us);
    BOOST_TEST(taken <= earned + 50);
    BOOST_TEST(l.stats().waited > 0U);
    BOOST_TEST(l.stats().waiting == 0U);
    BOOST_TEST(l.available() == 20U);
}

BOOST_AUTO_TEST_CASE(keys_are_added_waited_for_and_forgotten_on_many_threads)
{
    asio::io_context io;
    turnstile::basic_keyed_rate_limiter<int, std::hash<int>, std::equal_to<int>,
                                        asio::any_io_executor, turnstile::thread_safe, shared_clock>
        l(io, per_second(1'000'000, 3));
    const auto start = shared_clock::now();
    constexpr int keys = 50;
    std::vector<std::atomic<std::uint64_t>> taken(keys);
    const auto worker = [&](int id) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i != rounds / 20; ++i) {
            const int key = (i * 7 + id) % keys;
            asio::cancellation_signal signal;
            asio::post(executor, [&] {
                if ((i + id) % 4 == 0)
                    signal.emit(asio::cancellation_type::total);
            });
            auto [ec] = co_await l.async_acquire(
                key, 2,
                asio::as_tuple(asio::bind_cancellation_slot(signal.slot(), asio::use_awaitable)));
            if (!ec)
                taken[static_cast<std::size_t>(key)] += 2;
            if (l.try_acquire(key))
                ++taken[static_cast<std::size_t>(key)];
            shared_clock::advance(30ns);
            if (i % 64 == 0)
                l.purge();
            co_await asio::post(asio::use_awaitable);
        }
    };
    for (int i = 0; i != 8; ++i)
        asio::co_spawn(asio::make_strand(io), worker(i), asio::detached);
    run_on_threads(io);
    const auto earned = static_cast<std::uint64_t>((shared_clock::now() - start) / 1us);
    for (const auto& n : taken)
        BOOST_TEST(n <= earned + 3);
    BOOST_TEST(l.stats().waited > 0U);
    BOOST_TEST(l.stats().waiting == 0U);
    shared_clock::advance(1s);
    l.purge();
    BOOST_TEST(l.size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_limiter_may_be_destroyed_while_its_timer_expires_on_other_threads)
{
    for (int round = 0; round != rounds / 100; ++round) {
        asio::io_context io;
        auto l = std::make_shared<turnstile::rate_limiter>(io, per_second(100'000, 1));
        for (int i = 0; i != 4; ++i)
            l->async_acquire([l](error_code) {});
        l.reset();
        run_on_threads(io);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
