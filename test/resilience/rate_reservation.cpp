#include "resilience/limiters.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

namespace {

using namespace limiters;

template <class Threading>
using reservation_of = typename limiter_of<Threading>::reservation_type;

BOOST_AUTO_TEST_SUITE(reservation)

BOOST_AUTO_TEST_CASE_TEMPLATE(says_when_it_may_go, P, kit::policies)
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
    refused.cancel();
    BOOST_TEST(l.time_until(1).count() == nanoseconds(100ms).count());
    BOOST_TEST(bool(l.reserve(2, 200ms)));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_in_any_order_restores_exactly, P, kit::policies)
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
                all[i].cancel();
            BOOST_TEST(l.available() == 3 + static_cast<std::uint64_t>(delay / 100ms));
            BOOST_TEST(l.time_until(10).count() == nanoseconds(700ms - delay).count());
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(stands_in_line_with_those_who_wait, P, kit::policies)
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
    pass(io, 100ms); // it does not delay the one before it
    BOOST_TEST(first.succeeded());
    pass(io, 300ms - 1ns);
    BOOST_TEST(!last.done());
    pass(io, 1ns);
    BOOST_TEST(last.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_one_moves_up_those_behind_it, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 5));
    BOOST_TEST(l.try_acquire(5));
    auto head = l.reserve(3);
    completion waiter;
    l.async_acquire(1, waiter.handler(nothing));
    pass(io, 100ms);
    BOOST_TEST(!waiter.done());
    head.cancel();
    BOOST_TEST(!head);
    pass(io, 0s);
    BOOST_TEST(waiter.succeeded());
}

// Whether it is first in line, behind a waiter, or behind one that is cancelled.
BOOST_AUTO_TEST_CASE_TEMPLATE(dropping_one_gives_nothing_back, P, kit::policies)
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
            const auto needed = behind_a_waiter && !waiter_is_cancelled ? 500ms : 400ms;
            pass(io, needed - 1ns);
            BOOST_TEST(!after.done());
            pass(io, 1ns);
            BOOST_TEST(after.succeeded());
            BOOST_TEST(l.available() == 0U);
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_that_is_due_counts_from_its_own_time, P, kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, per_second(10, 5));
    BOOST_TEST(l.try_acquire(5));
    const auto r = l.reserve(5); // due after 500 ms, and full again 500 ms later
    kit::manual_clock::shift(800ms);
    BOOST_TEST(l.available() == 3U); // nobody looked in between
    kit::manual_clock::shift(200ms);
    BOOST_TEST(l.available() == 5U);
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
    a.cancel();
    a.cancel();
    BOOST_TEST(l.available() == 2U);
    static_assert(!std::is_copy_constructible_v<reservation_of<P>>);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(alone_is_no_work_for_the_context, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(1, 1));
    BOOST_TEST(l.try_acquire());
    const auto r = l.reserve();
    kit::run(io); // ends
    BOOST_TEST(r.delay().count() == nanoseconds(1s).count());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
