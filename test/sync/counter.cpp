// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/sync/counter.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;

template <class Threading>
using counter_of = turnstile::basic_counter<asio::any_io_executor, Threading>;

static_assert(!std::is_move_constructible_v<turnstile::counter>);

constexpr auto int_max = std::numeric_limits<std::int64_t>::max();
constexpr auto int_min = std::numeric_limits<std::int64_t>::min();
constexpr auto highest = turnstile::counter::highest;
constexpr auto lowest = turnstile::counter::lowest;
const auto nothing = [] {};

BOOST_AUTO_TEST_SUITE(counter)

BOOST_AUTO_TEST_CASE_TEMPLATE(goes_up_and_down, P, kit::policies)
{
    asio::io_context io;
    counter_of<P> c(io);
    BOOST_TEST(c.value() == 0);
    BOOST_TEST(c.add() == 1);
    BOOST_TEST(c.add(9) == 10);
    BOOST_TEST(c.sub(3) == 7);
    BOOST_TEST(c.sub() == 6);
    BOOST_TEST(c.add(-2) == 4);
    BOOST_TEST(c.sub(-1) == 5);
    BOOST_TEST(c.add(0) == 5);
    BOOST_TEST(c.value() == 5);
    BOOST_TEST(c.bounds().lower == 0);
    BOOST_TEST(c.bounds().upper == highest);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bad_construction_is_refused, P, kit::policies)
{
    asio::io_context io;
    const auto refused = [&](std::int64_t value, std::int64_t lower, std::int64_t upper) {
        try {
            counter_of<P> c(io, value, {lower, upper});
        } catch (const turnstile::system_error& e) {
            return e.code() == errc::invalid_argument;
        }
        return false;
    };
    BOOST_TEST(refused(-1, 0, 10));
    BOOST_TEST(refused(11, 0, 10));
    BOOST_TEST(refused(0, 1, -1));
    BOOST_TEST(refused(0, int_min, 10));
    BOOST_TEST(refused(0, 0, int_max));
    BOOST_TEST(!refused(0, lowest, highest));
    BOOST_TEST(!refused(5, 5, 5));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(crossing_a_bound_is_an_error_and_changes_nothing, P, kit::policies)
{
    kit::drained_context io;
    for (bool awaited : {false, true}) { // with and without a waiter: under the lock and without it
        counter_of<P> c(io, 2, {-3, 10});
        completion waiting;
        if (awaited)
            c.async_wait_at_least(9, waiting.handler(nothing));
        error_code ec;
        for (std::int64_t n : {std::int64_t(9), int_max}) {
            BOOST_TEST(c.add(n, ec) == 2);
            BOOST_TEST((ec == errc::over_count));
            BOOST_TEST(c.sub(-n, ec) == 2);
            BOOST_TEST((ec == errc::over_count));
            BOOST_CHECK_THROW(c.add(n), turnstile::system_error);
        }
        BOOST_TEST(c.sub(int_min, ec) == 2);
        BOOST_TEST((ec == errc::over_count));
        for (std::int64_t n : {std::int64_t(6), int_max}) {
            BOOST_TEST(c.sub(n, ec) == 2);
            BOOST_TEST((ec == errc::negative_count));
            BOOST_TEST(c.add(-n, ec) == 2);
            BOOST_TEST((ec == errc::negative_count));
            BOOST_CHECK_THROW(c.sub(n), turnstile::system_error);
        }
        BOOST_TEST(c.add(int_min, ec) == 2);
        BOOST_TEST((ec == errc::negative_count));
        BOOST_TEST(c.sub(5, ec) == -3);
        BOOST_TEST(!ec);
        BOOST_TEST(c.add(13, ec) == 10);
        BOOST_TEST(!ec);
        kit::run(io);
        BOOST_TEST(waiting.done() == awaited);
        if (!awaited)
            c.async_wait_at_least(9, waiting.handler(nothing));
        kit::run(io);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_widest_bounds_do_not_overflow, P, kit::policies)
{
    asio::io_context io;
    counter_of<P> c(io, lowest, {lowest, highest});
    error_code ec;
    c.sub(1, ec);
    BOOST_TEST((ec == errc::negative_count));
    BOOST_TEST(c.add(int_max) == highest);
    c.add(1, ec);
    BOOST_TEST((ec == errc::over_count));
    BOOST_TEST(c.value() == highest);
    BOOST_TEST(c.sub(int_max) == lowest);
    BOOST_TEST(c.sub(-1) == lowest + 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_threshold_beyond_a_bound_is_refused_at_once, P, kit::policies)
{
    kit::drained_context io;
    counter_of<P> c(io, 2, {0, 10});
    completion above;
    completion below;
    completion at_the_bounds;
    c.async_wait_at_least(11, above.handler(nothing));
    c.async_wait_at_most(-1, below.handler(nothing));
    c.async_wait_at_least(int_min, at_the_bounds.handler(nothing));
    kit::run(io);
    BOOST_TEST((above.error() == errc::over_count));
    BOOST_TEST((below.error() == errc::negative_count));
    BOOST_TEST(at_the_bounds.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(each_waits_for_its_own_threshold, P, kit::policies)
{
    kit::drained_context io;
    counter_of<P> c(io, 5);
    completion zero;
    completion at_most_3;
    completion at_least_7;
    completion at_least_9;
    c.async_wait_zero(zero.handler(nothing));
    c.async_wait_at_least(9, at_least_9.handler(nothing));
    c.async_wait_at_least(7, at_least_7.handler(nothing));
    c.async_wait_at_most(3, at_most_3.handler(nothing));
    c.add(2);
    kit::poll_leaves_work(io);
    BOOST_TEST(at_least_7.succeeded());
    BOOST_TEST(!at_least_9.done());
    c.sub(4);
    kit::poll_leaves_work(io);
    BOOST_TEST(at_most_3.succeeded());
    BOOST_TEST(!zero.done());
    c.add(6);
    kit::poll_leaves_work(io);
    BOOST_TEST(at_least_9.succeeded());
    c.sub(9);
    kit::run(io);
    BOOST_TEST(zero.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(
    the_nearest_threshold_is_granted_first_and_equal_ones_in_order_of_arrival, P, kit::policies)
{
    kit::drained_context io;
    counter_of<P> c(io);
    const std::int64_t thresholds[] = {3, 1, 2, 3, 1};
    std::vector<completion> all(5);
    for (std::size_t i = 0; i != all.size(); ++i)
        c.async_wait_at_least(thresholds[i], all[i].handler(nothing));
    completion any;
    c.async_wait([](std::int64_t n) { return n != 0; }, any.handler(nothing));
    c.add(3);
    kit::run(io);
    const std::size_t order[] = {1, 4, 2, 0, 3};
    for (std::size_t i = 0; i + 1 != all.size(); ++i)
        BOOST_TEST(all[order[i]].before(all[order[i + 1]]));
    BOOST_TEST(all[3].before(any));

    std::vector<completion> down(3);
    for (std::size_t i = 0; i != down.size(); ++i)
        c.async_wait_at_most(static_cast<std::int64_t>(i), down[i].handler(nothing));
    c.sub(3);
    kit::run(io);
    BOOST_TEST(down[2].before(down[1]));
    BOOST_TEST(down[1].before(down[0]));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(
    a_waiter_whose_threshold_was_reached_completes_even_if_the_value_moves_back, P, kit::policies)
{
    kit::drained_context io;
    counter_of<P> c(io, 1);
    completion there;
    completion after;
    completion saw_zero;
    c.async_wait_zero(there.handler(nothing));
    c.async_wait([](std::int64_t n) { return n == 0; }, saw_zero.handler(nothing));
    c.sub();
    c.add();
    c.async_wait_zero(after.handler(nothing));
    kit::poll_leaves_work(io);
    BOOST_TEST(there.succeeded());
    BOOST_TEST(saw_zero.succeeded());
    BOOST_TEST(!after.done());
    c.sub();
    kit::run(io);
    BOOST_TEST(after.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_predicate_sees_every_value_and_no_error, P, kit::policies)
{
    kit::drained_context io;
    counter_of<P> c(io, 1);
    std::vector<std::int64_t> seen;
    completion w;
    c.async_wait(
        [&](std::int64_t n) {
            if (seen.empty() || seen.back() != n)
                seen.push_back(n);
            return n == 4;
        },
        w.handler(nothing));
    error_code ec;
    c.sub(2, ec);
    c.add(2);
    c.sub(1);
    c.add(2);
    c.add(1);
    kit::run(io);
    BOOST_TEST(w.succeeded());
    BOOST_TEST(seen == std::vector<std::int64_t>({1, 3, 2, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_predicate_that_throws_ends_its_own_wait_only, P, kit::policies)
{
    kit::drained_context io;
    counter_of<P> c(io, 5);
    const auto throws_at = [](std::int64_t limit) {
        return [limit](std::int64_t n) {
            if (n >= limit)
                throw std::runtime_error("from a predicate");
            return false;
        };
    };
    completion at_once;
    completion later;
    completion before;
    completion behind;
    c.async_wait_at_least(7, before.handler(nothing));
    c.async_wait(throws_at(5), at_once.handler(nothing));
    c.async_wait(throws_at(7), later.handler(nothing));
    c.async_wait([](std::int64_t n) { return n == 7; }, behind.handler(nothing));
    BOOST_TEST(c.add(1) == 6);
    BOOST_TEST(c.add(1) == 7);
    kit::run(io);
    BOOST_TEST((at_once.error() == errc::predicate_failed));
    BOOST_TEST((later.error() == errc::predicate_failed));
    BOOST_TEST(before.succeeded());
    BOOST_TEST(behind.succeeded());
    BOOST_TEST(c.sub(7) == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_one_leaves_the_others_and_the_value, P, kit::policies)
{
    kit::drained_context io;
    counter_of<P> c(io, 0);
    std::vector<asio::cancellation_signal> signals(3);
    std::vector<completion> all(3);
    const auto slot = [&](std::size_t i) {
        return asio::bind_cancellation_slot(signals[i].slot(), all[i].handler(nothing));
    };
    c.async_wait_at_least(2, slot(0));
    c.async_wait_at_least(2, slot(1));
    c.async_wait([](std::int64_t n) { return n == 1; }, slot(2));
    signals[0].emit(asio::cancellation_type::total);
    signals[2].emit(asio::cancellation_type::total);
    c.add(2);
    kit::run(io);
    BOOST_TEST(all[0].aborted());
    BOOST_TEST(all[1].succeeded());
    BOOST_TEST(all[2].aborted());
    BOOST_TEST(c.value() == 2);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_fast_path_is_back_when_no_operation_waits, P, kit::policies)
{
    // However the last wait ends, by cancellation, grant or error, the flag `awaited` must not
    // stay set, and the next change must not be lost.
    kit::drained_context io;
    counter_of<P> c(io, 1);
    asio::cancellation_signal signal;
    completion cancelled;
    c.async_wait_zero(asio::bind_cancellation_slot(signal.slot(), cancelled.handler(nothing)));
    signal.emit(asio::cancellation_type::total);
    kit::run(io);
    BOOST_TEST(c.sub() == 0);
    completion at_least;
    c.async_wait_at_least(1, at_least.handler(nothing));
    BOOST_TEST(c.add() == 1);
    kit::run(io);
    BOOST_TEST(at_least.succeeded());
    BOOST_TEST(c.add() == 2);
    BOOST_TEST(c.sub(2) == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_random_walk_grants_exactly_the_waiters_it_should, P, kit::policies)
{
    // Compared with a model that checks every waiter after each change.
    struct expected {
        std::int64_t threshold;
        bool up;
        bool done = false;
    };
    std::mt19937 random(7);
    const auto below = [&](std::int64_t n) {
        return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
    };
    kit::drained_context io;
    counter_of<P> c(io, 0, {-100, 100});
    std::vector<expected> model;
    std::vector<completion> real;
    std::int64_t value = 0;
    for (int step = 0; step != 2000; ++step) {
        if (below(3) == 0) {
            const std::int64_t threshold = below(201) - 100;
            const bool up = below(2) == 0;
            real.emplace_back();
            model.push_back({threshold, up});
            if (up)
                c.async_wait_at_least(threshold, real.back().handler(nothing));
            else
                c.async_wait_at_most(threshold, real.back().handler(nothing));
        } else {
            const std::int64_t by = below(21) - 10;
            error_code ec;
            if (value + by >= -100 && value + by <= 100)
                value += by;
            BOOST_TEST(c.add(by, ec) == value);
        }
        kit::poll_leaves_work(io);
        for (std::size_t i = 0; i != model.size(); ++i) {
            expected& e = model[i];
            e.done = e.done || (e.up ? value >= e.threshold : value <= e.threshold);
            BOOST_REQUIRE(real[i].succeeded() == e.done);
        }
    }
    error_code ec;
    c.add(100 - value, ec);
    c.sub(200, ec);
    kit::run(io);
    BOOST_TEST(std::all_of(real.begin(), real.end(), [](auto& w) { return w.succeeded(); }));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
