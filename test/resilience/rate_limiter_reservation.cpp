// SPDX-License-Identifier: BSL-1.0
#include "resilience/limiters.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace {

using namespace limiters;

template <class Threading>
using reservation_of = typename limiter_of<Threading>::reservation_type;

BOOST_AUTO_TEST_SUITE(rate_limiter_reservation)

BOOST_AUTO_TEST_CASE_TEMPLATE(says_when_its_permits_may_be_used, P, kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, per_second(10, 5));
    auto now = l.reserve(5);
    BOOST_TEST(bool(now));
    BOOST_TEST(now.count() == 5U);
    BOOST_TEST(now.delay().count() == 0);
    auto later = l.reserve(2);
    BOOST_TEST(later.delay().count() == nanoseconds(200ms).count());
    BOOST_TEST((later.ready_at() == kit::manual_clock::now() + 200ms));
    auto last = l.reserve();
    BOOST_TEST(last.delay().count() == nanoseconds(300ms).count());
    BOOST_TEST(!l.try_acquire());
    kit::manual_clock::shift(250ms);
    BOOST_TEST(later.delay().count() == 0);
    BOOST_TEST(last.delay().count() == nanoseconds(50ms).count());
    kit::manual_clock::shift(150ms);
    BOOST_TEST(l.available() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(that_would_take_too_long_is_refused, P, kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, per_second(10, 5));
    BOOST_TEST(l.try_acquire(5));
    error_code ec;
    auto refused = l.reserve(2, 199ms, ec);
    BOOST_TEST((ec == errc::rate_limited));
    BOOST_TEST(!refused);
    BOOST_TEST(refused.count() == 0U);
    BOOST_TEST(refused.delay().count() == nanoseconds(200ms).count());
    refused.release();
    BOOST_TEST(l.time_until(1).count() == nanoseconds(100ms).count());
    BOOST_TEST(bool(l.reserve(2, 200ms)));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(releasing_in_any_order_restores_exactly, P, kit::policies)
{
    std::array<std::size_t, 4> order{};
    std::iota(order.begin(), order.end(), 0U);
    do {
        for (const auto delay : {0ms, 250ms, 500ms}) {
            asio::io_context io;
            limiter_of<P> l(io, per_second(10, 10));
            BOOST_TEST_REQUIRE(l.try_acquire(7));
            std::vector<reservation_of<P>> all;
            for (const std::uint64_t n : {2U, 5U, 1U, 3U})
                all.push_back(l.reserve(n));
            kit::manual_clock::shift(delay);
            for (const std::size_t i : order)
                all[i].release();
            BOOST_TEST(l.available() == 3 + static_cast<std::uint64_t>(delay / 100ms));
            BOOST_TEST(l.time_until(10).count() == nanoseconds(700ms - delay).count());
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_placed_between_waiters, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 5));
    BOOST_TEST(l.try_acquire(5));
    completion first;
    completion last;
    l.async_acquire(1, first.handler(nothing));
    auto middle = l.reserve(2);
    l.async_acquire(1, last.handler(nothing));
    BOOST_TEST(middle.delay().count() == nanoseconds(300ms).count());
    pass(io, 100ms); // the reservation does not delay the waiter before it
    BOOST_TEST(first.succeeded());
    pass(io, 300ms - 1ns);
    BOOST_TEST(!last.done());
    pass(io, 1ns);
    BOOST_TEST(last.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(released_moves_up_the_waiters_behind_it, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 5));
    BOOST_TEST(l.try_acquire(5));
    auto head = l.reserve(3);
    completion waiter;
    l.async_acquire(1, waiter.handler(nothing));
    pass(io, 100ms);
    BOOST_TEST(!waiter.done());
    head.release();
    BOOST_TEST(!head);
    pass(io, 0s);
    BOOST_TEST(waiter.succeeded());
}

// In front of all waiters, behind a waiter, or behind a waiter that is cancelled.
BOOST_AUTO_TEST_CASE_TEMPLATE(destroyed_gives_nothing_back, P, kit::policies)
{
    for (const bool behind_a_waiter : {false, true}) {
        for (const bool waiter_is_cancelled : {false, true}) {
            kit::drained_context io;
            limiter_of<P> l(io, per_second(10, 5));
            BOOST_TEST(l.try_acquire(5));
            completion before;
            completion after;
            asio::cancellation_signal signal;
            if (behind_a_waiter)
                l.async_acquire(
                    1, asio::bind_cancellation_slot(signal.slot(), before.handler(nothing)));
            std::optional<reservation_of<P>> dropped(l.reserve(2));
            std::optional<reservation_of<P>> another(l.reserve(1));
            l.async_acquire(1, after.handler(nothing));
            dropped.reset();
            another.reset();
            if (waiter_is_cancelled)
                signal.emit(asio::cancellation_type::terminal);
            // The place of a cancelled waiter in front of both reservations is free.
            const auto needed = !behind_a_waiter ? 400ms : waiter_is_cancelled ? 100ms : 500ms;
            pass(io, needed - 1ns);
            BOOST_TEST(!after.done());
            pass(io, 1ns);
            BOOST_TEST(after.succeeded());
            BOOST_TEST(l.available() == 0U);
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_charged_for_its_own_time, P, kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, per_second(10, 5));
    BOOST_TEST(l.try_acquire(5));
    const auto r = l.reserve(5); // due after 500 ms, and full again 500 ms later
    kit::manual_clock::shift(800ms);
    BOOST_TEST(l.available() == 3U); // no call in between
    kit::manual_clock::shift(200ms);
    BOOST_TEST(l.available() == 5U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(keeps_its_time_when_the_waiters_ahead_leave, P, kit::policies)
{
    for (const bool is_dropped : {false, true}) {
        kit::drained_context io;
        limiter_of<P> l(io, per_second(1, 1));
        BOOST_TEST(l.try_acquire());
        const auto start = kit::manual_clock::now();
        std::array<asio::cancellation_signal, 4> signals;
        std::array<completion, 4> ahead;
        for (std::size_t i = 0; i != ahead.size(); ++i)
            l.async_acquire(
                1, asio::bind_cancellation_slot(signals[i].slot(), ahead[i].handler(nothing)));
        std::optional<reservation_of<P>> r(l.reserve());
        BOOST_TEST(r->delay().count() == nanoseconds(5s).count());
        if (is_dropped)
            r.reset();
        for (auto& signal : signals)
            signal.emit(asio::cancellation_type::terminal);
        // The places of the cancelled waiters are free: at 1 s to 4 s, and again from 6 s on.
        for (const int second : {1, 2, 3, 4, 6}) {
            pass(io, kit::manual_clock::now() < start + 4s ? 1s : 2s);
            BOOST_TEST((kit::manual_clock::now() == start + std::chrono::seconds(second)));
            BOOST_TEST(l.try_acquire());
            BOOST_TEST(!l.try_acquire());
        }
    }
}

// Whatever is released, the granted permits never exceed rate and burst.
BOOST_AUTO_TEST_CASE_TEMPLATE(never_more_than_rate_and_burst_in_any_time, P, kit::policies)
{
    constexpr std::uint64_t burst = 3;
    std::minstd_rand random(7);
    for (int round = 0; round != 300; ++round) {
        asio::io_context io;
        limiter_of<P> l(io, per_second(10, burst));
        std::vector<reservation_of<P>> held;
        std::vector<std::pair<nanoseconds, std::uint64_t>> used;
        const auto start = kit::manual_clock::now();
        const auto since = [&](auto time) { return nanoseconds(time - start); };
        for (int step = 0; step != 40; ++step) {
            switch (random() % 4) {
            case 0:
                held.push_back(l.reserve(1 + random() % burst));
                break;
            case 1:
                if (!held.empty()) {
                    auto& r = held[random() % held.size()];
                    if (r && r.ready_at() >= kit::manual_clock::now())
                        r.release();
                }
                break;
            case 2:
                if (const std::uint64_t n = 1 + random() % burst; l.try_acquire(n))
                    used.emplace_back(since(kit::manual_clock::now()), n);
                break;
            default:
                kit::manual_clock::shift(nanoseconds(1ms) * (random() % 200));
            }
        }
        for (auto& r : held) {
            if (r)
                used.emplace_back(since(r.ready_at()), r.count());
        }
        std::sort(used.begin(), used.end());
        for (std::size_t from = 0; from != used.size(); ++from) {
            std::uint64_t sum = 0;
            for (std::size_t to = from; to != used.size(); ++to) {
                sum += used[to].second;
                const auto earned = (used[to].first - used[from].first) / nanoseconds(100ms);
                BOOST_TEST_REQUIRE(sum <= burst + static_cast<std::uint64_t>(earned));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_counted_when_it_is_made, P, kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, per_second(10, 5), {.count_grants = true});
    auto now = l.reserve(4);
    auto later = l.reserve(3);
    BOOST_TEST(l.stats().granted == 7U);
    kit::manual_clock::shift(200ms);
    BOOST_TEST(l.stats().granted == 7U); // it is ready; no call has been made since
    later.release();
    BOOST_TEST(l.stats().granted == 4U);
}

// The permits of the first reservation go to other requests.
BOOST_AUTO_TEST_CASE_TEMPLATE(keeps_its_time_when_an_earlier_one_is_released, P, kit::policies)
{
    for (const std::uint64_t burst : {1U, 5U}) {
        asio::io_context io;
        limiter_of<P> l(io, per_second(1, burst));
        BOOST_TEST(l.try_acquire(burst));
        auto first = l.reserve();
        auto second = l.reserve();
        BOOST_TEST(second.delay().count() == nanoseconds(2s).count());
        first.release();
        BOOST_TEST(l.time_until().count() == nanoseconds(1s).count());
        kit::manual_clock::shift(1s);
        BOOST_TEST(l.try_acquire());
        BOOST_TEST(l.time_until().count() == nanoseconds(2s).count());
        second.release();
        BOOST_TEST(l.time_until().count() == nanoseconds(1s).count());
    }
}

// The cancelled waiters in front of the reservation leave idle time.
BOOST_AUTO_TEST_CASE_TEMPLATE(released_returns_the_idle_time_in_front_of_it, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(1, 1));
    BOOST_TEST(l.try_acquire());
    std::array<asio::cancellation_signal, 4> signals;
    for (auto& signal : signals)
        l.async_acquire(1, asio::bind_cancellation_slot(signal.slot(), [](error_code) {}));
    auto r = l.reserve();
    for (auto& signal : signals)
        signal.emit(asio::cancellation_type::terminal);
    r.release();
    BOOST_TEST(l.time_until().count() == nanoseconds(1s).count());
    kit::run(io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(released_returns_the_idle_time_of_all_bandwidths, P, kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, {per_second(10, 1), per_second(1, 2)});
    BOOST_TEST(l.try_acquire());
    kit::manual_clock::shift(100ms);
    BOOST_TEST(l.try_acquire());
    auto r = l.reserve(); // waits for the second bandwidth
    BOOST_TEST(r.delay().count() == nanoseconds(900ms).count());
    r.release();
    l.set_limits(per_second(10, 1));
    BOOST_TEST(l.time_until().count() == nanoseconds(100ms).count());
}

// A grant is given back while a waiter and the reservation behind it are outstanding.
BOOST_AUTO_TEST_CASE_TEMPLATE(in_line_lets_no_accepted_waiter_fail_after_a_refund, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(1, 2));
    asio::cancellation_signal signal;
    completion taken;
    l.async_acquire(1, asio::bind_cancellation_slot(signal.slot(), taken.handler(nothing)));
    BOOST_TEST(l.try_acquire());
    completion before;
    l.async_acquire(2, 2s, before.handler(nothing));
    const auto r = l.reserve(2);
    BOOST_TEST(r.delay().count() == nanoseconds(4s).count());
    signal.emit(asio::cancellation_type::terminal);
    completion behind;
    l.async_acquire(1, l.time_until(), behind.handler(nothing));
    for (int i = 0; i != 60; ++i)
        pass(io, 100ms);
    BOOST_TEST(taken.aborted());
    BOOST_TEST(before.succeeded());
    BOOST_TEST(behind.succeeded());
}

// The new limits give the second reservation an earlier time than the first.
BOOST_AUTO_TEST_CASE_TEMPLATE(of_an_earlier_time_is_used_first_after_a_change_of_the_limits, P,
                              kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, per_second(1, 10));
    BOOST_TEST(l.try_acquire(10));
    auto late = l.reserve(10);
    BOOST_TEST(late.delay().count() == nanoseconds(10s).count());
    l.set_limits(per_second(10, 30));
    auto early = l.reserve(5);
    BOOST_TEST((early.ready_at() < late.ready_at()));
    kit::manual_clock::shift(1s);
    early.release(); // after its time
    // The first reservation still needs 10 of the 30 permits in 9 s.
    BOOST_TEST(l.available() == 30U);
    kit::manual_clock::shift(9s);
    BOOST_TEST(l.available() == 20U);
}

// In every order of destruction; the reservations are destroyed or released.
BOOST_AUTO_TEST_CASE_TEMPLATE(may_outlive_its_limiter_and_the_context, P, kit::policies)
{
    std::array<std::size_t, 4> order{};
    std::iota(order.begin(), order.end(), 0U);
    do {
        for (const bool cancels : {false, true}) {
            auto io = std::make_unique<asio::io_context>();
            auto l = std::make_unique<limiter_of<P>>(*io, per_second(10, 1));
            BOOST_TEST(l->try_acquire());
            asio::co_spawn(
                *io,
                [&l = *l]() -> asio::awaitable<void> {
                    const auto in_frame = l.reserve();
                    co_await l.async_acquire(asio::as_tuple(asio::use_awaitable));
                },
                asio::detached);
            io->poll();
            std::optional<reservation_of<P>> behind(l->reserve()); // is placed behind a waiter
            std::optional<reservation_of<P>> other(l->reserve());
            for (const std::size_t end : order) {
                if (end == 0)
                    l.reset();
                else if (end == 1)
                    io.reset();
                else if (auto& r = end == 2 ? behind : other; cancels)
                    r->release();
                else
                    r.reset();
            }
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

// One outstanding reservation and one cancellation: the tails of the buckets are measured once, not
// for each later request. The place of the cancelled waiter is taken, so that requests need the
// tails. rate_limiter_schedule.cpp has a faster test of the same rule.
BOOST_AUTO_TEST_CASE_TEMPLATE(does_not_make_each_request_examine_the_whole_line, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(1000, 1));
    BOOST_TEST(l.try_acquire());
    asio::cancellation_signal signal;
    completion first;
    l.async_acquire(1, asio::bind_cancellation_slot(signal.slot(), first.handler(nothing)));
    constexpr int waiters = 20'000;
    int granted = 0;
    for (int i = 0; i != waiters; ++i)
        l.async_acquire([&](error_code ec) { granted += ec ? 0 : 1; });
    const auto r = l.reserve();
    signal.emit(asio::cancellation_type::total);
    l.async_acquire([&](error_code ec) { granted += ec ? 0 : 1; });
    bool taken = false;
    for (int i = 0; i != 20 * waiters; ++i) // fails by the watchdog
        taken = l.try_acquire() || taken;
    BOOST_TEST(!taken);
    pass(io, 1min);
    BOOST_TEST(granted == waiters + 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(takes_any_duration, P, kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, per_second(1, 1));
    BOOST_TEST(bool(l.reserve(1, -1s))); // counts as zero
    error_code ec;
    BOOST_TEST(!l.reserve(1, -1s, ec));
    BOOST_TEST((ec == errc::rate_limited));
    BOOST_TEST(bool(l.reserve(1, std::chrono::hours::max(), ec)));
    BOOST_TEST(!ec);
}

// The sum of all requests may be too large to be counted.
BOOST_AUTO_TEST_CASE_TEMPLATE(of_too_many_permits_in_all_is_rejected, P, kit::policies)
{
    constexpr std::uint64_t many = std::uint64_t(1) << 56;
    asio::io_context io;
    limiter_of<P> l(io, bandwidth{1'000'000'000, 1s, many});
    std::vector<reservation_of<P>> all;
    error_code ec;
    while (!ec && all.size() != 300)
        all.push_back(l.reserve(many, ec));
    BOOST_TEST((ec == errc::rejected));
    BOOST_TEST(!l.try_acquire());
    completion c;
    l.async_acquire(many, c.handler(nothing));
    kit::run(io);
    BOOST_TEST((c.error() == errc::rejected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_moved_not_copied, P, kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, per_second(10, 5));
    auto a = l.reserve(2);
    auto b = std::move(a);
    BOOST_TEST(!a);
    BOOST_TEST(b.count() == 2U);
    a = l.reserve(3);
    a = std::move(b);
    BOOST_TEST(a.count() == 2U);
    BOOST_TEST(l.available() == 0U);
    a.release();
    a.release();
    BOOST_TEST(l.available() == 2U);
    static_assert(!std::is_copy_constructible_v<reservation_of<P>>);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(alone_is_no_work_for_the_context, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(1, 1));
    BOOST_TEST(l.try_acquire());
    const auto r = l.reserve();
    kit::run(io); // does not wait for the reservation
    BOOST_TEST(r.delay().count() == nanoseconds(1s).count());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(by_earlier_limits_gives_no_bandwidth_back_that_is_new, P,
                              kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, bandwidth{1, 1ms, 2});
    auto r = l.reserve(1);
    l.set_limits({bandwidth{1, 1ms, 4}, bandwidth{1, 1h, 2}});
    BOOST_TEST(l.try_acquire(2));
    r.release();
    BOOST_TEST(!l.try_acquire());
}

// Under the new limits the first waiter has to wait for the reservation behind it.
BOOST_AUTO_TEST_CASE_TEMPLATE(that_new_limits_move_forward_delays_no_accepted_waiter, P,
                              kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, bandwidth{1, 10ms, 2});
    BOOST_TEST(l.try_acquire(2));
    completion first;
    l.async_acquire(2, first.handler(nothing));
    const auto r = l.reserve(1);
    pass(io, 1ms);
    l.set_limits(turnstile::smooth(bandwidth{1, 10ms, 2}));
    completion accepted;
    l.async_acquire(1, l.time_until(1), accepted.handler(nothing));
    for (int i = 0; i != 100; ++i)
        pass(io, 1ms);
    BOOST_TEST(first.succeeded());
    BOOST_TEST(accepted.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(that_is_ready_is_charged_for_the_present, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, {bandwidth{3, 10ns, 4}, bandwidth{19, 100ns, 2}});
    pass(io, 3ns);
    auto first = l.reserve(1);
    BOOST_TEST(first.delay().count() == 0);
    BOOST_TEST(l.try_acquire());
    const auto second = l.reserve(1);
    BOOST_TEST(second.delay().count() == 6); // 5.26, and not before
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
