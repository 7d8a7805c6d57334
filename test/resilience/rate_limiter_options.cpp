// SPDX-License-Identifier: BSL-1.0
#include "resilience/limiters.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

using namespace limiters;

BOOST_AUTO_TEST_SUITE(rate_limiter_settings)

BOOST_AUTO_TEST_CASE_TEMPLATE(no_more_than_max_waiters_wait, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 1), {.max_waiters = 2});
    BOOST_TEST(l.try_acquire());
    std::vector<completion> all(4);
    for (auto& c : all)
        l.async_acquire(c.handler(nothing));
    pass(io, 0s);
    BOOST_TEST(!all[1].done());
    BOOST_TEST((all[2].error() == errc::rejected));
    BOOST_TEST((all[3].error() == errc::rejected));
    pass(io, 100ms);
    completion next;
    l.async_acquire(next.handler(nothing));
    pass(io, 200ms);
    pass(io, 100ms);
    BOOST_TEST(next.succeeded());
    BOOST_TEST(l.stats().rejected == 2U);
    BOOST_TEST(l.stats().waited == 3U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(without_places_for_waiters_no_operation_waits, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 1), {.max_waiters = 0});
    completion taken;
    completion refused;
    l.async_acquire(taken.handler(nothing));
    l.async_acquire(refused.handler(nothing));
    kit::run(io);
    BOOST_TEST(taken.succeeded());
    BOOST_TEST((refused.error() == errc::rejected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(stats_count_grants_rejections_waits_and_cancellations, P,
                              kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 5), {.count_grants = true});
    BOOST_TEST(l.try_acquire(4));
    BOOST_TEST(!l.try_acquire(2));
    completion waits;
    completion cancelled;
    asio::cancellation_signal signal;
    l.async_acquire(3, waits.handler(nothing));
    l.async_acquire(1, asio::bind_cancellation_slot(signal.slot(), cancelled.handler(nothing)));
    BOOST_TEST(l.stats().waiting == 2U);
    signal.emit(asio::cancellation_type::total);
    pass(io, 200ms);
    const turnstile::rate_limiter_stats s = l.stats();
    BOOST_TEST(s.granted == 7U);
    BOOST_TEST(s.rejected == 1U);
    BOOST_TEST(s.waited == 1U);
    BOOST_TEST(s.cancelled == 1U);
    BOOST_TEST(s.waiting == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_is_called_without_the_lock, P, kit::policies)
{
    kit::drained_context io;
    std::vector<rate_limiter_event> events;
    limiter_of<P> l(io, per_second(10, 2));
    l.add_listener([&](const rate_limiter_event& e) {
        events.push_back(e);
        (void)l.stats(); // would deadlock under the lock
        (void)l.time_until();
    });
    BOOST_TEST(l.try_acquire(2));
    BOOST_TEST(events.empty());

    BOOST_TEST(!l.try_acquire());
    BOOST_TEST_REQUIRE(events.size() == 1U);
    BOOST_TEST(events[0].kind == rate_limiter_event::rejected);
    BOOST_TEST((events[0].code == errc::rate_limited));
    BOOST_TEST(events[0].permits == 1U);
    BOOST_TEST(events[0].retry_after.count() == nanoseconds(100ms).count());

    completion first;
    completion late;
    l.async_acquire(first.handler(nothing));
    l.async_acquire(1, 1ms, late.handler(nothing));
    BOOST_TEST_REQUIRE(events.size() == 3U);
    BOOST_TEST(events[1].kind == rate_limiter_event::throttled);
    BOOST_TEST(events[2].kind == rate_limiter_event::rejected);
    BOOST_TEST(events[2].retry_after.count() == nanoseconds(200ms).count());

    pass(io, 100ms);
    BOOST_TEST(first.succeeded());
    BOOST_TEST_REQUIRE(events.size() == 4U);
    BOOST_TEST(events[3].kind == rate_limiter_event::recovered);

    l.set_limits(per_second(5, 2));
    BOOST_TEST_REQUIRE(events.size() == 5U);
    BOOST_TEST(events[4].kind == rate_limiter_event::limits_changed);

    completion hopeless;
    l.async_acquire(2, 1s, hopeless.handler(nothing));
    l.set_limits(per_second(1, 2));
    pass(io, 0s);
    BOOST_TEST((hopeless.error() == errc::rate_limited));
    BOOST_TEST_REQUIRE(events.size() == 9U);
    BOOST_TEST(events[5].kind == rate_limiter_event::throttled);
    BOOST_TEST(events[6].kind == rate_limiter_event::limits_changed);
    BOOST_TEST(events[7].kind == rate_limiter_event::rejected);
    BOOST_TEST(events[8].kind == rate_limiter_event::recovered);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_that_throws_changes_nothing, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 1), {.max_waiters = 1});
    l.add_listener([](const rate_limiter_event&) { throw std::runtime_error("from a listener"); });
    BOOST_TEST(l.try_acquire());
    BOOST_TEST(!l.try_acquire());
    completion first;
    completion second;
    l.async_acquire(first.handler(nothing));
    l.async_acquire(second.handler(nothing));
    pass(io, 100ms);
    BOOST_TEST(first.succeeded());
    BOOST_TEST((second.error() == errc::rejected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_event_says_why_a_waiter_was_rejected, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 2));
    BOOST_TEST(l.try_acquire(2));
    completion first;
    l.async_acquire(2, first.handler(nothing));
    std::vector<rate_limiter_event> rejected;
    l.add_listener([&](const rate_limiter_event& e) {
        if (e.kind == rate_limiter_event::rejected)
            rejected.push_back(e);
    });
    l.set_limits(per_second(10, 1));
    kit::run(io);
    BOOST_TEST((first.error() == errc::too_large));
    BOOST_TEST_REQUIRE(rejected.size() == 1U);
    BOOST_TEST((rejected[0].code == errc::too_large));
    BOOST_TEST(rejected[0].permits == 2U);
    BOOST_TEST((rejected[0].retry_after == nanoseconds::max()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(events_are_delivered_in_order, P, kit::policies)
{
    kit::drained_context io;
    limiter_of<P> l(io, per_second(10, 1));
    BOOST_TEST(l.try_acquire());
    std::vector<rate_limiter_event::kind_type> kinds;
    l.add_listener([&](const rate_limiter_event& e) { kinds.push_back(e.kind); });
    asio::cancellation_signal signal;
    completion first;
    completion second;
    l.async_acquire(asio::bind_cancellation_slot(signal.slot(), first.handler(nothing)));
    signal.emit(asio::cancellation_type::terminal);
    l.async_acquire(second.handler(nothing)); // waits before the first waiter is delivered
    const std::vector so_far{rate_limiter_event::throttled, rate_limiter_event::recovered,
                             rate_limiter_event::throttled};
    BOOST_TEST((kinds == so_far));
    pass(io, 100ms);
    BOOST_TEST(second.succeeded());
    BOOST_TEST_REQUIRE(kinds.size() == 4U);
    BOOST_TEST(kinds.back() == rate_limiter_event::recovered);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_listener_is_called_after_the_destruction, P, kit::policies)
{
    kit::drained_context io;
    auto l = std::make_unique<limiter_of<P>>(io, per_second(10, 1));
    BOOST_TEST(l->try_acquire());
    bool gone = false;
    l->add_listener([&](const rate_limiter_event&) { BOOST_TEST(!gone); });
    completion waits;
    l->async_acquire(waits.handler(nothing));
    l.reset();
    gone = true;
    kit::run(io);
    BOOST_TEST(waits.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_may_destroy_the_limiter, P, kit::policies)
{
    kit::drained_context io;
    auto l = std::make_unique<limiter_of<P>>(io, per_second(10, 1));
    BOOST_TEST(l->try_acquire());
    completion waits;
    l->async_acquire(waits.handler(nothing));
    l->add_listener([&](const rate_limiter_event&) { l.reset(); });
    BOOST_TEST(!l->try_acquire());
    BOOST_TEST(!l);
    kit::run(io);
    BOOST_TEST(waits.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_removed_listener_is_not_called, P, kit::policies)
{
    asio::io_context io;
    limiter_of<P> l(io, per_second(10, 1));
    int calls = 0;
    const turnstile::listener_id id = l.add_listener([&](const rate_limiter_event&) { ++calls; });
    BOOST_TEST(!l.try_acquire(2));
    BOOST_TEST(l.remove_listener(id));
    BOOST_TEST(!l.remove_listener(id));
    BOOST_TEST(!l.try_acquire(2));
    BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
