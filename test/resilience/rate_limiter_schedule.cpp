// SPDX-License-Identifier: BSL-1.0
// Invariants of a rate limiter's buckets and predictions that no public function shows.
#include "kit/policies.hpp"
#include "kit/seed.hpp"

#include <turnstile/resilience/detail/rate_limiter_line.hpp>
#include <turnstile/resilience/detail/rate_limiter_schedule.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

namespace {

using turnstile::bandwidth;
using turnstile::nanoseconds;
using turnstile::per_second;
using turnstile::detail::rate_limiter_booking;
using turnstile::detail::rate_limiter_line;
using turnstile::detail::rate_limiter_receipt;
using turnstile::detail::rate_limiter_waiter;
using namespace std::chrono_literals;

template <class Threading>
using schedule_of = turnstile::detail::rate_limiter_schedule<Threading>;

template <class Schedule>
void set_limit(Schedule& s, const bandwidth& limit, nanoseconds now)
{
    typename Schedule::prepared_limits next(std::vector{limit});
    s.disable_fast_path();
    s.change(next, now);
    s.enable_fast_path(rate_limiter_line());
}

BOOST_AUTO_TEST_SUITE(rate_limiter_schedule)

// A thread that read the word before the changes must not succeed with its compare-and-swap.
BOOST_AUTO_TEST_CASE_TEMPLATE(changes_that_restore_the_limits_do_not_restore_the_word, P,
                              kit::policies)
{
    const nanoseconds now = 5s;
    schedule_of<P> s({per_second(10, 5)}, now);
    for (std::uint64_t taken = 0; taken != 3; ++taken) {
        const std::uint64_t before = s.word();
        set_limit(s, per_second(100, 5), now);
        set_limit(s, per_second(10, 5), now);
        BOOST_TEST(s.word() > before);
        BOOST_TEST(s.available(now) == 5 - taken);
        BOOST_TEST((s.try_take(now, 1) == schedule_of<P>::fast_result::taken));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_change_makes_the_word_larger_than_it_has_ever_been, P,
                              kit::policies)
{
    const std::array limits{per_second(10, 5), per_second(17, 5), bandwidth{1, 1h, 5},
                            per_second(999'983, 50), turnstile::smooth(per_second(3, 5))};
    kit::for_each_seed(50, [&](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        nanoseconds now = 5s;
        schedule_of<P> s({limits[0]}, now);
        std::vector<rate_limiter_receipt> taken;
        std::uint64_t largest = s.word();
        for (int step = 0; step != 300; ++step) {
            switch (random() % 4) {
            case 0: {
                rate_limiter_receipt receipt;
                if (s.try_take(now, 1, receipt) == schedule_of<P>::fast_result::taken)
                    taken.push_back(receipt);
                break;
            }
            case 1:
                if (!taken.empty()) {
                    s.disable_fast_path();
                    s.refund(now, 1, taken.back());
                    s.enable_fast_path(rate_limiter_line());
                    taken.pop_back();
                }
                break;
            case 2:
                now += std::chrono::milliseconds(random() % 200);
                break;
            default:
                set_limit(s, limits[random() % limits.size()], now);
                BOOST_TEST_REQUIRE(s.word() > largest);
            }
            largest = std::max(largest, s.word());
        }
    });
}

// The refund lowers the word, so the largest value is not the present one.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_change_after_a_refund_exceeds_the_word_before_it, P, kit::policies)
{
    const nanoseconds now = 5s;
    schedule_of<P> s({per_second(10, 5)}, now);
    rate_limiter_receipt receipt;
    BOOST_TEST((s.try_take(now, 5, receipt) == schedule_of<P>::fast_result::taken));
    const std::uint64_t largest = s.word();
    s.disable_fast_path();
    s.refund(now, 5, receipt);
    BOOST_TEST(s.word() < largest);
    set_limit(s, per_second(10, 5), now);
    BOOST_TEST(s.word() > largest);
}

// The test changes the permits of a queued waiter behind the back of the schedule: a prediction
// that takes notice has examined the whole line.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_line_is_measured_once_for_64_waiters_and_change, P, kit::policies)
{
    constexpr std::size_t count = 200;
    const nanoseconds now = 5s;
    schedule_of<P> s({per_second(1, 1)}, now);
    BOOST_TEST((s.try_take(now, 1) == schedule_of<P>::fast_result::taken));
    s.disable_fast_path();
    const auto run = [](turnstile::detail::waiter&, turnstile::detail::task_action) {};
    std::deque<rate_limiter_waiter> waiters;
    rate_limiter_line line;
    const auto join = [&] { line.push_back(s, waiters.emplace_back(run), now); };
    for (std::size_t i = 0; i != count; ++i)
        join();
    rate_limiter_booking booking;
    booking.ready_at = s.expected(now, 1, line);
    s.reserve(booking, now, line);
    line.remove(s, waiters.front(), now); // one change
    join();                               // in the place of the first waiter
    const nanoseconds before = s.expected(now, 1, line);
    waiters[5].permits += 2;
    BOOST_TEST(s.expected(now, 1, line).count() == before.count());
    s.note_change();
    BOOST_TEST(s.expected(now, 1, line).count() == before.count());
    s.note_change(); // three changes for 200 waiters
    const nanoseconds after = s.expected(now, 1, line);
    BOOST_TEST(after.count() > before.count());
    for (int i = 0; i != 3; ++i) {
        waiters[5].permits += 2;
        BOOST_TEST(s.expected(now, 1, line).count() == after.count());
    }
    s.release(booking, now);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
