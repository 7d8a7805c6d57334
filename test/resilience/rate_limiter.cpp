// SPDX-License-Identifier: BSL-1.0
#include "kit/seed.hpp"
#include "resilience/limiters.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace limiters;

static_assert(!std::is_move_constructible_v<turnstile::rate_limiter>);

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

// A wait that can be cancelled.
struct request {
    template <class Limiter>
    request(Limiter& limiter, std::uint64_t n)
    {
        limiter.async_acquire(n, asio::bind_cancellation_slot(signal.slot(), c.handler(nothing)));
    }
    void cancel() { signal.emit(asio::cancellation_type::terminal); }

    completion c;
    asio::cancellation_signal signal;
};

BOOST_AUTO_TEST_SUITE(rate_limiter)

BOOST_AUTO_TEST_CASE_TEMPLATE(nonsense_is_refused_and_changes_nothing, P, kit::policies)
{
    asio::io_context io;
    const auto nan = std::numeric_limits<double>::quiet_NaN();
    limiter_of<P> good(io, per_second(5, 10));
    for (const bandwidth& bad : {per_second(0), per_second(-1), per_second(nan), per_second(1e30),
                                 per_second(5, 0), per_second(5, huge), bandwidth{1, -1s, 1}}) {
        BOOST_CHECK_THROW(limiter_of<P>(io, bad), turnstile::system_error);
        error_code ec;
        good.set_limits(bad, ec);
        BOOST_TEST((ec == errc::invalid_argument));
        BOOST_CHECK_THROW(good.set_limits(bad), turnstile::system_error);
    }
    BOOST_CHECK_THROW(limiter_of<P>(io, std::vector<bandwidth>()), turnstile::system_error);
    BOOST_TEST((good.limits() == std::vector{per_second(5, 10)}));
    BOOST_TEST(good.available() == 10U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(exactly_the_burst_at_once_and_then_the_rate, P, kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, per_second(5, 10));
    for (int i = 0; i != 10; ++i)
        BOOST_TEST(l.try_acquire());
    for (int i = 0; i != 5; ++i) {
        nanoseconds retry_after{};
        BOOST_TEST(!l.try_acquire(1, retry_after));
        BOOST_TEST(retry_after.count() == nanoseconds(200ms).count());
        BOOST_TEST(l.time_until().count() == retry_after.count());
        kit::manual_clock::shift(200ms - 1ns);
        BOOST_TEST(!l.try_acquire());
        kit::manual_clock::shift(1ns);
        BOOST_TEST(l.try_acquire(1, retry_after));
        BOOST_TEST(retry_after.count() == 0);
    }
    kit::manual_clock::shift(10h);
    BOOST_TEST(l.available() == 10U);
    kit::manual_clock::shift(-1h);
    BOOST_TEST(l.try_acquire(10));
    kit::manual_clock::shift(-1h);
    BOOST_TEST(!l.try_acquire());
    kit::manual_clock::shift(1h);
    BOOST_TEST(!l.try_acquire());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bad_amounts_are_refused_at_once, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(5, 10));
    for (const std::uint64_t n : {std::uint64_t(11), huge}) {
        nanoseconds retry_after{};
        BOOST_TEST(!l.try_acquire(n, retry_after));
        BOOST_TEST((retry_after == nanoseconds::max()));
        BOOST_TEST((l.time_until(n) == nanoseconds::max()));
        request r(l, n);
        kit::run(io);
        BOOST_TEST((r.c.error() == errc::too_large));
        error_code ec;
        BOOST_TEST(!l.reserve(n, ec));
        BOOST_TEST((ec == errc::too_large));
    }
    BOOST_TEST(!l.try_acquire(0));
    request none(l, 0);
    kit::run(io);
    BOOST_TEST((none.c.error() == errc::invalid_argument));
    BOOST_CHECK_THROW((void)l.reserve(0), turnstile::system_error);
    BOOST_TEST(l.available() == 10U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(try_acquire_reports_why_it_failed, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 2));
    for (const bool has_listener : {false, true}) { // without one, the fast path decides
        if (has_listener)
            l.add_listener([](const rate_limiter_event&) {});
        error_code ec = errc::closed;
        BOOST_TEST(l.try_acquire(2, ec));
        BOOST_TEST(!ec);
        BOOST_TEST(!l.try_acquire(1, ec));
        BOOST_TEST((ec == errc::rate_limited));
        BOOST_TEST(!l.try_acquire(3, ec));
        BOOST_TEST((ec == errc::too_large));
        BOOST_TEST(!l.try_acquire(0, ec));
        BOOST_TEST((ec == errc::invalid_argument));
        kit::manual_clock::shift(1s);
    }
    BOOST_TEST(l.stats().rejected == 6U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waiting_is_the_number_of_waiters, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 1));
    BOOST_TEST(l.try_acquire());
    BOOST_TEST(l.waiting() == 0U);
    request first(l, 1);
    request second(l, 1);
    BOOST_TEST(l.waiting() == 2U);
    second.cancel();
    BOOST_TEST(l.waiting() == 1U);
    pass(io, 100ms);
    BOOST_TEST(first.c.succeeded());
    BOOST_TEST(l.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waiters_are_granted_at_the_rate_in_order, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(3, 2));
    std::vector<completion> all(8);
    for (auto& c : all)
        l.async_acquire(c.handler(nothing));
    const auto done = [&] {
        return std::count_if(all.begin(), all.end(), [](auto& c) { return c.succeeded(); });
    };
    pass(io, 0s);
    BOOST_TEST(done() == 2);
    for (int round = 0; round != 2; ++round) { // two seconds, in thirds
        pass(io, 333'333'333ns);
        BOOST_TEST(done() == 2 + 3 * round);
        pass(io, 1ns);
        BOOST_TEST(done() == 3 + 3 * round);
        pass(io, 333'333'332ns);
        BOOST_TEST(done() == 3 + 3 * round);
        pass(io, 1ns);
        BOOST_TEST(done() == 4 + 3 * round);
        pass(io, 333'333'333ns);
        BOOST_TEST(done() == 5 + 3 * round);
    }
    BOOST_TEST(std::is_sorted(all.begin(), all.end(),
                              [](const auto& a, const auto& b) { return a.before(b); }));
    BOOST_TEST(l.stats().waited == 6U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_small_late_request_does_not_overtake_a_large_head, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 10));
    BOOST_TEST(l.try_acquire(8));
    request large(l, 5);
    request small(l, 1);
    BOOST_TEST(!l.try_acquire(1));
    BOOST_TEST(l.time_until(1).count() == nanoseconds(500ms).count());
    pass(io, 300ms - 1ns);
    BOOST_TEST(!large.c.done());
    BOOST_TEST(!small.c.done());
    pass(io, 1ns);
    BOOST_TEST(large.c.succeeded());
    BOOST_TEST(!small.c.done());
    pass(io, 100ms);
    BOOST_TEST(small.c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_a_waiter_moves_the_waiters_behind_it_up, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 10));
    BOOST_TEST(l.try_acquire(10));
    request first(l, 1);
    request large(l, 9);
    request last(l, 1);
    large.cancel();
    pass(io, 100ms);
    BOOST_TEST(first.c.succeeded());
    BOOST_TEST(large.c.aborted());
    BOOST_TEST(!last.c.done());
    pass(io, 100ms);
    BOOST_TEST(last.c.succeeded());
    request head(l, 5);
    request next(l, 1);
    pass(io, 400ms);
    head.cancel(); // its permits go to the next waiter
    pass(io, 0s);
    BOOST_TEST(next.c.succeeded());
    BOOST_TEST(l.available() == 3U);
    BOOST_TEST(l.stats().cancelled == 2U);
}

// In every order, while the operations wait and when they are granted but not yet delivered.
BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_in_any_order_restores_exactly, P, kit::policies)
{
    std::array<std::size_t, 4> order{};
    std::iota(order.begin(), order.end(), 0U);
    do {
        for (const auto delay : {0ms, 250ms, 400ms}) {
            kit::drained_context io;
            limiter_of<P> l(io, per_second(10, 10));
            BOOST_TEST_REQUIRE(l.try_acquire(7));
            std::deque<request> all;
            for (const std::uint64_t n : {2U, 5U, 1U, 3U})
                all.emplace_back(l, n);
            kit::manual_clock::shift(delay);
            (void)l.time_until(); // grants some, without delivering them
            for (const std::size_t i : order)
                all[i].cancel();
            kit::run(io);
            for (auto& r : all)
                BOOST_TEST(r.c.aborted());
            const auto earned = static_cast<std::uint64_t>(delay / 100ms);
            BOOST_TEST(l.available() == 3 + earned);
            BOOST_TEST(l.time_until(10).count() == nanoseconds(700ms - delay).count());
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_refund_never_exceeds_rate_and_burst, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 10));
    request r(l, 10); // granted, not yet delivered
    kit::manual_clock::shift(1s);
    BOOST_TEST(l.try_acquire(10));
    r.cancel(); // without the grant the bucket would have been full all the time
    kit::run(io);
    BOOST_TEST(r.c.aborted());
    BOOST_TEST(l.available() == 0U);
    kit::manual_clock::shift(100ms);
    BOOST_TEST(l.available() == 1U);
}

// Requests are cancelled in random order after their grant. Between any two times, the remaining
// requests have never taken more than rate and burst allow.
BOOST_AUTO_TEST_CASE_TEMPLATE(cancelled_grants_create_no_permits, P, kit::policies)
{
    kit::for_each_seed(50, [](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        asio::io_context io;
        constexpr std::uint64_t burst = 8;
        limiter_of<P> l(io, per_second(10, burst));
        struct grant {
            grant(limiter_of<P>& limiter, std::uint64_t permits, nanoseconds now)
                : r(limiter, permits), n(permits), when(now)
            {
            }
            request r;
            std::uint64_t n;
            nanoseconds when;
        };
        std::deque<grant> all;
        std::size_t on_their_way = 0;
        for (int step = 0; step != 300; ++step) {
            const std::uint64_t n = 1 + random() % burst;
            const nanoseconds now = kit::manual_clock::now().time_since_epoch();
            if (l.time_until(n) == nanoseconds::zero())
                all.emplace_back(l, n, now);
            for (std::size_t i = on_their_way; i != all.size(); ++i) {
                if (random() % 4 == 0)
                    all[i].r.cancel();
            }
            if (random() % 4 == 0) {
                kit::run(io);
                on_their_way = all.size();
            }
            kit::manual_clock::shift(std::chrono::milliseconds(random() % 400));
        }
        kit::run(io);
        for (auto first = all.begin(); first != all.end(); ++first) {
            std::uint64_t taken = 0;
            for (auto last = first; last != all.end(); ++last) {
                taken += last->r.c.succeeded() ? last->n : 0;
                const auto allowed = burst * 100ms + (last->when - first->when);
                BOOST_TEST_REQUIRE(taken * 100 <= static_cast<std::uint64_t>(allowed / 1ms));
            }
        }
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_grant_cancelled_before_delivery_does_not_count, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(1, 5), {.count_grants = true});
    asio::cancellation_signal signal;
    completion c;
    l.async_acquire(3, asio::bind_cancellation_slot(signal.slot(), c.handler(nothing)));
    BOOST_TEST(l.stats().granted == 3U);
    signal.emit(asio::cancellation_type::terminal);
    kit::run(io);
    BOOST_TEST(c.aborted());
    BOOST_TEST(l.stats().granted == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_deadline_that_cannot_be_met_fails_at_once, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 5));
    BOOST_TEST(l.try_acquire(5));
    completion waits;
    completion hopeless;
    completion negative;
    completion in_time;
    l.async_acquire(2, 1s, waits.handler(nothing));
    l.async_acquire(1, 299ms, hopeless.handler(nothing));
    l.async_acquire(1, -5s, negative.handler(nothing));
    l.async_acquire(1, 300ms, in_time.handler(nothing));
    pass(io, 0s);
    BOOST_TEST((hopeless.error() == errc::rate_limited));
    BOOST_TEST((negative.error() == errc::rate_limited));
    BOOST_TEST(!waits.done());
    pass(io, 300ms);
    BOOST_TEST(waits.succeeded());
    BOOST_TEST(in_time.succeeded());
    completion now;
    pass(io, 100ms);
    l.async_acquire(1, 0s, now.handler(nothing));
    pass(io, 0s);
    BOOST_TEST(now.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(changing_the_limits_times_the_waiters_anew, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(1, 10));
    BOOST_TEST(l.try_acquire(10));
    completion first;
    completion too_many;
    completion too_late;
    completion last;
    l.async_acquire(2, first.handler(nothing));
    l.async_acquire(6, too_many.handler(nothing));
    l.async_acquire(1, 10s, too_late.handler(nothing));
    l.async_acquire(1, last.handler(nothing));
    l.set_limits(per_second(10, 10)); // ten times faster
    pass(io, 199ms);
    BOOST_TEST(!first.done());
    pass(io, 1ms);
    BOOST_TEST(first.succeeded());
    l.set_limits(per_second(0.1, 5)); // ten times slower, and smaller
    pass(io, 0s);
    BOOST_TEST((too_many.error() == errc::too_large));
    BOOST_TEST((too_late.error() == errc::rate_limited));
    // 10 permits are missing from a bucket of 5.
    BOOST_TEST(l.time_until(1).count() == nanoseconds(70s).count());
    pass(io, 60s - 1ns);
    BOOST_TEST(!last.done());
    l.set_limits(per_second(0.1, 20));
    pass(io, 0s);
    BOOST_TEST(last.succeeded()); // the larger bucket has the permits at once
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_unchanged_limit_changes_nothing, P, kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, per_second(3, 2));
    BOOST_TEST(l.try_acquire(2));
    l.set_limits(per_second(3, 2));
    BOOST_TEST(l.time_until().count() == 333'333'334);
    l.set_limits(per_second(3, 3));
    BOOST_TEST(l.try_acquire());
    BOOST_TEST(l.time_until().count() == 333'333'334);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(smooth_permits_come_one_by_one, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, turnstile::smooth(per_second(10, 5)));
    std::vector<completion> all(4);
    for (auto& c : all)
        l.async_acquire(c.handler(nothing));
    for (std::size_t i = 0; i != all.size(); ++i) {
        pass(io, i == 0 ? 0ms : 100ms - 1ns);
        BOOST_TEST(all[i].done() == (i == 0));
        pass(io, i == 0 ? 0ns : 1ns);
        BOOST_TEST(all[i].succeeded());
    }
    pass(io, 1h); // nothing is saved up
    BOOST_TEST(l.try_acquire(5));
    BOOST_TEST(!l.try_acquire());
    BOOST_TEST(l.time_until().count() == nanoseconds(500ms).count());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(all_bandwidths_must_agree, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, {per_second(10, 10), bandwidth{60, 1min, 20}});
    BOOST_TEST(l.limits().size() == 2U);
    BOOST_TEST(l.try_acquire(10));
    BOOST_TEST(!l.try_acquire());
    pass(io, 1s);
    BOOST_TEST(l.available() == 10U);
    BOOST_TEST(l.try_acquire(10));
    pass(io, 500ms);
    BOOST_TEST(l.available() == 1U); // of the second bucket
    request first(l, 1);
    request second(l, 3);
    pass(io, 0s);
    BOOST_TEST(first.c.succeeded());
    BOOST_TEST(!second.c.done());
    BOOST_TEST(!l.try_acquire(11));
    second.cancel();
    pass(io, 500ms);
    BOOST_TEST(l.available() == 1U);
    l.set_limits(per_second(10, 10)); // removes the second bucket
    BOOST_TEST(l.available() == 9U);
    BOOST_TEST(l.try_acquire(9));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_grant_goes_back_to_all_bandwidths, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, {per_second(10, 10), bandwidth{60, 1min, 20}});
    request r(l, 7);
    BOOST_TEST(l.available() == 3U);
    r.cancel();
    kit::run(io);
    BOOST_TEST(l.available() == 10U);
    BOOST_TEST(l.try_acquire(10));
    kit::manual_clock::shift(1s);
    BOOST_TEST(l.try_acquire(10));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(with_or_it_takes_a_permit_only_if_it_wins, P, kit::policies)
{
    using namespace asio::experimental::awaitable_operators;
    kit::drained_context io;
    limiter_of<P> a(io, per_second(1, 1));
    limiter_of<P> b(io, per_second(1, 1));
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            co_await (a.async_acquire(asio::use_awaitable) || b.async_acquire(asio::use_awaitable));
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(a.available() + b.available() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(runs_an_operation_with_a_permit, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 1), {.max_waiters = 1});
    asio::steady_timer timer(io, asio::steady_timer::time_point::min());
    std::vector<error_code> results;
    const auto call = [&] {
        l.async_call(timer.async_wait(asio::deferred),
                     [&](error_code ec) { results.push_back(ec); });
    };
    static_assert(turnstile::stage_for<limiter_of<P>, decltype(timer.async_wait(asio::deferred))>);
    call();
    call();
    call();
    BOOST_TEST(results.empty());
    pass(io, 0s);
    BOOST_TEST_REQUIRE(results.size() == 2U);
    BOOST_TEST((results[0] == error_code() || results[0] == errc::rejected));
    BOOST_TEST((results[1] == error_code() || results[1] == errc::rejected));
    BOOST_TEST(results[0] != results[1]);
    pass(io, 100ms);
    BOOST_TEST_REQUIRE(results.size() == 3U);
    BOOST_TEST(!results[2]);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_is_cancelled_while_it_waits, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 1));
    BOOST_TEST(l.try_acquire());
    asio::cancellation_signal signal;
    bool started = false;
    std::exception_ptr failure;
    l.async_call(
        [&]() -> asio::awaitable<void> {
            started = true;
            co_return;
        },
        asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) { failure = e; }));
    signal.emit(asio::cancellation_type::total);
    kit::run(io);
    BOOST_TEST(bool(failure));
    BOOST_TEST(!started);
    BOOST_TEST(l.time_until().count() == nanoseconds(100ms).count());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_change_at_the_time_of_a_grant_mints_nothing, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, bandwidth{1, 100ns, 10});
    BOOST_TEST(l.try_acquire(5));
    request r(l, 5); // granted, not yet delivered
    l.set_limits(bandwidth{1, 1ns, 10});
    kit::manual_clock::shift(100ns);
    BOOST_TEST(l.try_acquire(10));
    r.cancel(); // the bucket would have been full without the grant
    kit::run(io);
    BOOST_TEST(r.c.aborted());
    BOOST_TEST(l.available() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_rejected_coroutine_knows_when_to_try_again, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 1), {.max_waiters = 0});
    BOOST_TEST(l.try_acquire());
    std::exception_ptr thrown;
    l.async_call([]() -> asio::awaitable<void> { co_return; },
                 [&](std::exception_ptr e) { thrown = e; });
    kit::run(io);
    BOOST_TEST_REQUIRE(bool(thrown));
    try {
        std::rethrow_exception(thrown);
    } catch (const turnstile::rejection& r) {
        BOOST_TEST((r.code() == errc::rejected));
        BOOST_TEST(r.retry_after().count() == nanoseconds(100ms).count());
    }
}

// Without suspending, and with a connected cancellation slot, where the coroutine suspends.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_refused_acquire_throws_the_time_to_try_again, P, kit::policies)
{
    for (const bool cancellable : {false, true}) {
        kit::drained_context io;
        limiter_of<P> l(io, per_second(10, 1), {.max_waiters = 0});
        BOOST_TEST(l.try_acquire());
        nanoseconds retry_after{};
        const auto acquire = [&]() -> asio::awaitable<void> {
            try {
                co_await l.async_acquire();
            } catch (const turnstile::rejection& r) {
                BOOST_TEST((r.code() == errc::rejected));
                retry_after = r.retry_after();
            }
        };
        asio::cancellation_signal signal;
        if (cancellable)
            asio::co_spawn(io, acquire,
                           asio::bind_cancellation_slot(signal.slot(), asio::detached));
        else
            asio::co_spawn(io, acquire, asio::detached);
        kit::run(io);
        BOOST_TEST(retry_after.count() == nanoseconds(100ms).count());
    }
}

// The lateness of the timer does not add up, and no accepted waiter misses its deadline.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_late_timer_does_not_delay_the_waiters_behind, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 1));
    BOOST_TEST(l.try_acquire());
    completion first;
    completion second;
    completion third;
    l.async_acquire(1, 100ms, first.handler(nothing));
    l.async_acquire(1, 200ms, second.handler(nothing));
    l.async_acquire(1, 300ms, third.handler(nothing));
    pass(io, 150ms);
    BOOST_TEST(first.succeeded());
    BOOST_TEST(!second.done());
    pass(io, 50ms);
    BOOST_TEST(second.succeeded());
    pass(io, 100ms);
    BOOST_TEST(third.succeeded());
    BOOST_TEST(l.time_until().count() == nanoseconds(100ms).count());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_waiter_that_fails_later_knows_when_to_try_again, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 1));
    BOOST_TEST(l.try_acquire());
    nanoseconds waited{};
    nanoseconds called{};
    const auto fail_into = [](std::exception_ptr e, nanoseconds& retry_after) {
        BOOST_TEST_REQUIRE(bool(e));
        try {
            std::rethrow_exception(e);
        } catch (const turnstile::rejection& r) {
            BOOST_TEST((r.code() == errc::rate_limited));
            retry_after = r.retry_after();
        }
    };
    const auto acquire = [&]() -> asio::awaitable<void> { co_await l.async_acquire(1, 1s); };
    asio::co_spawn(io, acquire, [&](std::exception_ptr e) { fail_into(e, waited); });
    const auto op = []() -> asio::awaitable<void> { co_return; };
    pass(io, 0s);
    l.async_call(op, [&](std::exception_ptr e) { called = e ? 0s : 1s; });
    l.set_limits(per_second(0.1, 1)); // a hundred times slower
    pass(io, 0s);
    BOOST_TEST(waited.count() == nanoseconds(10s).count());
    pass(io, 10s);
    BOOST_TEST(called.count() == nanoseconds(1s).count());
}

BOOST_AUTO_TEST_CASE(errors_say_which_member_was_wrong)
{
    asio::io_context io;
    const auto says = [&](const bandwidth& b, const char* text) {
        const auto matches = [&](const turnstile::system_error& e) {
            return std::string(e.what()).find(text) == 0;
        };
        BOOST_CHECK_EXCEPTION(turnstile::rate_limiter(io, b), turnstile::system_error, matches);
    };
    says({1, 1s, 0}, "rate_limiter: burst must be at least 1");
    says({0, 1s, 1}, "rate_limiter: permits must be at least 1");
    says({1, 0s, 1}, "rate_limiter: period must be positive");
}

// A refund is exact unless more than 16 others were made since the permits were taken.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_refund_is_exact_after_16_others_and_safe_after_17, P, kit::policies)
{
    for (const std::size_t others : {16U, 17U}) {
        kit::drained_context io;
        limiter_of<P> l(io, per_second(10, 100));
        BOOST_TEST(l.try_acquire(50));
        request first(l, 1);
        std::deque<request> later;
        for (std::size_t i = 0; i != others; ++i)
            later.emplace_back(l, 1);
        kit::manual_clock::shift(100ms);
        for (request& r : later)
            r.cancel();
        BOOST_TEST(l.time_until(100).count() == nanoseconds(5s).count());
        first.cancel();
        // 100 ms have passed since the permit was taken.
        const nanoseconds left = others == 16 ? 4900ms : 5s;
        BOOST_TEST(l.time_until(100).count() == left.count());
        kit::run(io);
    }
}

// The two rates are counted in ticks of different lengths.
BOOST_AUTO_TEST_CASE_TEMPLATE(many_changes_of_the_rate_create_no_permits, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 5));
    for (int i = 0; i != 100; ++i) {
        kit::manual_clock::shift(5ms);
        l.set_limits({per_second(17, 5)});
        kit::manual_clock::shift(5ms);
        l.set_limits({per_second(10, 5)});
    }
    int taken = 0;
    while (taken != 100 && l.try_acquire())
        ++taken;
    BOOST_TEST(taken == 5);
    BOOST_TEST((l.time_until(1) > 0ns && l.time_until(1) <= 101ms));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_released_reservation_counts_refunds_before_it_once, P,
                              kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, std::vector{per_second(1, 10), per_second(2, 20)});
    request first(l, 5);
    auto later = l.reserve(10);
    first.cancel();
    later.release();
    kit::run(io);
    BOOST_TEST(l.available() == 10U);
}

// No fraction of a nanosecond is lost, regardless of the number of waiters.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_wait_of_exactly_the_predicted_time_succeeds, P, kit::policies)
{
    for (const std::uint64_t rate : {3U, 7U, 13U}) {
        kit::drained_context io;
        limiter_of<P> l(io, per_second(static_cast<double>(rate), 1));
        BOOST_TEST(l.try_acquire());
        std::vector<completion> all(5 * rate);
        for (completion& c : all)
            l.async_acquire(1, l.time_until(), c.handler(nothing));
        BOOST_TEST(l.time_until(1).count() <= (5s + nanoseconds(1s) / rate + 1ns).count());
        for (completion& c : all) {
            // Each timer is late by a third of the time between two grants.
            pass(io, 1'333'333'333ns / static_cast<std::int64_t>(rate));
            pass(io, 0s);
            BOOST_TEST(!(c.done() && c.error()));
        }
        for (completion& c : all)
            BOOST_TEST(c.succeeded());
    }
}

// The first waiter waits for the second bandwidth and blocks the others in the first one.
BOOST_AUTO_TEST_CASE_TEMPLATE(an_accepted_waiter_of_several_bandwidths_succeeds, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, {turnstile::smooth(per_second(10, 10)), per_second(5, 10)});
    BOOST_TEST(l.try_acquire(10));
    completion large;
    completion small;
    l.async_acquire(10, l.time_until(10), large.handler(nothing));
    BOOST_TEST(l.time_until().count() == nanoseconds(3s).count());
    l.async_acquire(1, l.time_until(), small.handler(nothing));
    for (int i = 0; i != 30; ++i)
        pass(io, 100ms);
    BOOST_TEST(large.succeeded());
    BOOST_TEST(small.succeeded());
}

// An accepted waiter that is not cancelled is granted, whatever other requests do.
BOOST_AUTO_TEST_CASE_TEMPLATE(predictions_hold_whatever_other_requests_do, P, kit::policies)
{
    kit::for_each_seed(120, [](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        const std::uint64_t burst = 1 + random() % 6;
        const std::uint64_t rate = 1 + random() % 12;
        std::vector<bandwidth> limits{per_second(static_cast<double>(rate), burst)};
        if (random() % 3 == 0)
            limits.push_back(per_second(static_cast<double>(1 + random() % 12), burst * 2));
        if (random() % 5 == 0)
            limits.front() = turnstile::smooth(limits.front());
        kit::drained_context io;
        limiter_of<P> l(io, limits);
        struct wait {
            completion c;
            asio::cancellation_signal signal;
        };
        std::deque<wait> waits;
        std::vector<typename limiter_of<P>::reservation_type> held;
        const auto check_waits = [&] {
            for (const wait& w : waits)
                BOOST_TEST_REQUIRE((!w.c.done() || w.c.succeeded() || w.c.aborted()));
        };
        for (int step = 0; step != 150; ++step) {
            const std::uint64_t n = 1 + random() % burst;
            switch (random() % 8) {
            case 0:
                held.push_back(l.reserve(n));
                break;
            case 1:
                if (!held.empty()) {
                    auto& r = held[random() % held.size()];
                    if (r && r.ready_at() > kit::manual_clock::now())
                        r.release();
                }
                break;
            case 2:
                (void)l.try_acquire(n);
                break;
            case 3:
                if (!waits.empty())
                    waits[random() % waits.size()].signal.emit(asio::cancellation_type::terminal);
                break;
            case 4:
            case 5: {
                const nanoseconds within = l.time_until(n);
                wait& w = waits.emplace_back();
                l.async_acquire(
                    n, within, asio::bind_cancellation_slot(w.signal.slot(), w.c.handler(nothing)));
                break;
            }
            default:
                for (int i = 0; i != 5; ++i)
                    pass(io, nanoseconds(1ms) * (random() % 100));
            }
            check_waits();
        }
        for (int i = 0; i != 4000 && l.stats().waiting != 0; ++i)
            pass(io, 50ms);
        kit::run(io);
        check_waits();
        BOOST_TEST(l.stats().waiting == 0U);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_number_of_changes_of_the_limits_grants_nothing, P, kit::policies)
{
    kit::drained_context io;
    const bandwidth slow{1, 1h, 8760}; // earned in a year
    limiter_of<P> l(io, slow);
    BOOST_TEST(l.try_acquire(8760));
    for (int i = 0; i != 1000; ++i)
        l.set_limits(slow);
    BOOST_TEST(!l.try_acquire());
    BOOST_TEST(l.time_until().count() == nanoseconds(1h).count());

    limiter_of<P> fast(io, per_second(100, 100));
    BOOST_TEST(fast.try_acquire(100));
    fast.set_limits(bandwidth{1, nanoseconds(100'000'000'000'000'000), 1});
    BOOST_TEST(!fast.try_acquire());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_grant_by_earlier_limits_is_not_refunded_at_the_new_rate, P,
                              kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, bandwidth{1, 1ms, 2});
    asio::cancellation_signal signal;
    completion granted;
    l.async_acquire(asio::bind_cancellation_slot(signal.slot(), granted.handler(nothing)));
    kit::manual_clock::shift(2ms);
    l.set_limits(bandwidth{1, 10ms, 2});
    BOOST_TEST(l.try_acquire(2));
    signal.emit(asio::cancellation_type::terminal);
    pass(io, 2ms);
    BOOST_TEST(granted.aborted());
    BOOST_TEST(!l.try_acquire());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(by_the_steady_clock_it_waits_too, P, kit::policies)
{
    kit::drained_context io;
    turnstile::basic_rate_limiter<asio::any_io_executor, P> l(io, per_second(10'000, 1));
    const auto start = std::chrono::steady_clock::now();
    int granted = 0;
    for (int i = 0; i != 5; ++i)
        l.async_acquire([&](error_code ec) { granted += ec ? 0 : 1; });
    kit::run(io);
    BOOST_TEST(granted == 5);
    BOOST_TEST((std::chrono::steady_clock::now() - start >= 400us));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
