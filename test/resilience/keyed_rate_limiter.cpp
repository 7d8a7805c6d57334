// SPDX-License-Identifier: BSL-1.0
#include "resilience/limiters.hpp"

#include <turnstile/resilience/keyed_rate_limiter.hpp>
#include <turnstile/resilience/pipeline.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace limiters;

template <class Key, class Threading>
using keyed_of =
    turnstile::basic_keyed_rate_limiter<Key, std::hash<Key>, std::equal_to<Key>,
                                        asio::any_io_executor, Threading, kit::manual_clock>;

BOOST_AUTO_TEST_SUITE(keyed_rate_limiter)

BOOST_AUTO_TEST_CASE_TEMPLATE(every_key_has_a_bucket_of_its_own, P, kit::policies)
{
    asio::io_context io;
    keyed_of<std::string, P> l(io, per_second(10, 3));
    for (const std::string key : {"ann", "bob", "a key that does not fit into a short string"}) {
        BOOST_TEST(l.try_acquire(key, 3));
        nanoseconds retry_after{};
        BOOST_TEST(!l.try_acquire(key, 1, retry_after));
        BOOST_TEST(retry_after.count() == nanoseconds(100ms).count());
        BOOST_TEST(l.time_until(key, 2).count() == nanoseconds(200ms).count());
    }
    BOOST_TEST(l.size() == 3U);
    BOOST_TEST(l.time_until("new").count() == 0);
    BOOST_TEST(l.size() == 3U);
    kit::manual_clock::shift(100ms - 1ns);
    BOOST_TEST(!l.try_acquire("ann"));
    kit::manual_clock::shift(1ns);
    BOOST_TEST(l.try_acquire("ann"));
    BOOST_TEST(!l.try_acquire("ann"));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nonsense_is_refused_and_makes_no_key, P, kit::policies)
{
    kit::drained_context io;
    BOOST_CHECK_THROW((keyed_of<int, P>(io, per_second(-1))), turnstile::system_error);
    keyed_of<int, P> l(io, per_second(10, 3));
    nanoseconds retry_after{};
    BOOST_TEST(!l.try_acquire(1, 4, retry_after));
    BOOST_TEST((retry_after == nanoseconds::max()));
    BOOST_TEST(!l.try_acquire(1, 0));
    error_code ec;
    BOOST_TEST(!l.try_acquire(1, 4, ec));
    BOOST_TEST((ec == errc::too_large));
    BOOST_TEST(!l.try_acquire(1, 0, ec));
    BOOST_TEST((ec == errc::invalid_argument));
    completion too_many;
    completion none;
    l.async_acquire(1, 4, too_many.handler(nothing));
    l.async_acquire(1, 0, none.handler(nothing));
    kit::run(io);
    BOOST_TEST((too_many.error() == errc::too_large));
    BOOST_TEST((none.error() == errc::invalid_argument));
    BOOST_TEST(l.size() == 0U);
    BOOST_TEST((l.time_until(1, 4) == nanoseconds::max()));
    l.set_limits(per_second(std::numeric_limits<double>::quiet_NaN()), ec);
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_CHECK_THROW(l.set_limits(per_second(1, 0)), turnstile::system_error);
    BOOST_TEST(l.try_acquire(1, 3, ec));
    BOOST_TEST(!ec);
    BOOST_TEST(!l.try_acquire(1, 1, ec));
    BOOST_TEST((ec == errc::rate_limited));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waiters_of_a_key_are_granted_in_order_and_keys_are_independent, P,
                              kit::policies)
{
    kit::drained_context io;
    keyed_of<int, P> l(io, per_second(10, 5));
    for (const int key : {1, 2})
        BOOST_TEST(l.try_acquire(key, 5));
    completion large;
    completion small;
    completion other;
    l.async_acquire(1, 4, large.handler(nothing));
    l.async_acquire(1, 1, small.handler(nothing));
    l.async_acquire(2, 2, other.handler(nothing));
    BOOST_TEST(!l.try_acquire(1));
    BOOST_TEST(l.time_until(1).count() == nanoseconds(600ms).count());
    BOOST_TEST(l.stats().waiting == 3U);
    BOOST_TEST(l.waiting() == 3U);
    pass(io, 200ms);
    BOOST_TEST(other.succeeded());
    BOOST_TEST(!large.done());
    pass(io, 200ms);
    BOOST_TEST(large.succeeded());
    BOOST_TEST(!small.done());
    pass(io, 100ms - 1ns);
    BOOST_TEST(!small.done());
    pass(io, 1ns);
    BOOST_TEST(small.succeeded());
    BOOST_TEST(l.stats().waited == 3U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_any_waiter_moves_the_others_up, P, kit::policies)
{
    for (const std::size_t victim : {0U, 1U, 2U}) {
        kit::drained_context io;
        keyed_of<int, P> l(io, per_second(10, 5));
        BOOST_TEST(l.try_acquire(7, 5));
        std::vector<completion> all(3);
        asio::cancellation_signal signals[3];
        for (std::size_t i = 0; i != 3; ++i)
            l.async_acquire(
                7, 2, asio::bind_cancellation_slot(signals[i].slot(), all[i].handler(nothing)));
        pass(io, 100ms);
        signals[victim].emit(asio::cancellation_type::total);
        pass(io, 300ms - 1ns);
        BOOST_TEST(all[victim].aborted());
        BOOST_TEST(!all[victim == 2 ? 1 : 2].done());
        pass(io, 1ns);
        for (std::size_t i = 0; i != 3; ++i)
            BOOST_TEST(all[i].succeeded() == (i != victim));
        BOOST_TEST(!l.try_acquire(7));
        BOOST_TEST(l.time_until(7).count() == nanoseconds(100ms).count());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_event_has_the_number_of_permits_requested, P, kit::policies)
{
    kit::drained_context io;
    std::vector<std::uint64_t> requested;
    keyed_of<int, P> l(io, per_second(10, 3));
    l.add_listener([&](const auto& event) { requested.push_back(event.permits); });
    BOOST_TEST(!l.try_acquire(1, 4)); // more than the burst
    BOOST_TEST(!l.try_acquire(1, 0));
    BOOST_TEST(l.try_acquire(1, 3));
    BOOST_TEST(!l.try_acquire(1, 2));
    BOOST_TEST(requested == (std::vector<std::uint64_t>{4, 0, 2}),
               boost::test_tools::per_element());
}

// Goes back by `step` with each reading.
struct backward_clock : kit::clock_types<backward_clock> {
    static time_point now() noexcept { return time_point(std::exchange(time, time - step)); }
    static inline duration time = 1h;
    static inline duration step = 0s;
};

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failed_try_has_a_reason_even_if_the_clock_goes_back, P,
                              kit::policies)
{
    asio::io_context io;
    backward_clock::step = 0s;
    turnstile::basic_keyed_rate_limiter<int, std::hash<int>, std::equal_to<int>,
                                        asio::any_io_executor, P, backward_clock>
        l(io, per_second(10, 1));
    BOOST_TEST(l.try_acquire(1));
    backward_clock::time += 100ms;
    backward_clock::step = 50ms;
    error_code ec;
    BOOST_TEST(!l.try_acquire(1, 1, ec));
    BOOST_TEST(ec == errc::rate_limited);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_waiter_that_a_change_refuses_is_reported, P, kit::policies)
{
    kit::drained_context io;
    struct report {
        std::string key;
        errc code;
        nanoseconds retry_after;
    };
    std::vector<report> reports;
    keyed_of<std::string, P> l(io, per_second(10, 5));
    l.add_listener([&](const turnstile::keyed_rate_limiter_event<std::string>& e) {
        reports.push_back({e.key, e.code, e.retry_after});
    });
    BOOST_TEST(l.try_acquire("ann", 5));
    BOOST_TEST(l.try_acquire("bob", 5));
    completion too_large;
    completion too_late;
    l.async_acquire("ann", 5, too_large.handler(nothing));
    l.async_acquire("bob", 1, 1s, too_late.handler(nothing));
    l.set_limits(per_second(0.1, 2));
    kit::run(io);
    BOOST_TEST((too_large.error() == errc::too_large));
    BOOST_TEST((too_late.error() == errc::rate_limited));
    BOOST_TEST_REQUIRE(reports.size() == 2U);
    if (reports[0].key != "ann") // keys are in no order
        std::swap(reports[0], reports[1]);
    BOOST_TEST(reports[0].key == "ann");
    BOOST_TEST((reports[0].code == errc::too_large));
    BOOST_TEST((reports[0].retry_after == nanoseconds::max()));
    BOOST_TEST(reports[1].key == "bob");
    BOOST_TEST((reports[1].code == errc::rate_limited));
    // Five permits are missing from a bucket of two; four of them are earned in 40 s.
    BOOST_TEST(reports[1].retry_after.count() == nanoseconds(40s).count());
    BOOST_TEST(l.stats().rejected == 2U);
}

// The larger burst grants the waiter during the change.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_line_that_a_change_empties_is_converted_once, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<int, P> l(io, per_second(10, 1));
    kit::manual_clock::shift(8s);
    BOOST_TEST(l.try_acquire(1));
    completion waiter;
    l.async_acquire(1, waiter.handler(nothing));
    l.set_limits(per_second(17, 100));
    kit::run(io);
    BOOST_TEST(!waiter.error());
    BOOST_TEST((l.time_until(1, 98) <= 200ms));
}

// A key whose operations call a hook, which may throw and use the limiter.
struct lively_key {
    static inline std::function<void()> on_copy, on_hash, on_compare;
    static void call(std::function<void()> f) // a copy, because it may reset itself
    {
        if (f)
            f();
    }

    explicit lively_key(int v) : value(v) {}
    lively_key(const lively_key& other) : value(other.value) { call(on_copy); }
    lively_key& operator=(const lively_key&) = delete;
    bool operator==(const lively_key& other) const
    {
        call(on_compare);
        return value == other.value;
    }

    int value;
};
struct lively_hash {
    std::size_t operator()(const lively_key&) const // all keys have the same hash
    {
        lively_key::call(lively_key::on_hash);
        return 0;
    }
};

BOOST_AUTO_TEST_CASE_TEMPLATE(code_of_a_key_may_throw_and_use_the_limiter, P, kit::policies)
{
    const lively_key one(1);
    const lively_key two(2);
    for (auto* hook : {&lively_key::on_copy, &lively_key::on_hash, &lively_key::on_compare}) {
        kit::drained_context io;
        turnstile::basic_keyed_rate_limiter<lively_key, lively_hash, std::equal_to<lively_key>,
                                            asio::any_io_executor, P, kit::manual_clock>
            l(io, per_second(10, 2));
        BOOST_TEST(l.try_acquire(one, 2));
        *hook = [] { throw std::bad_alloc(); };
        BOOST_CHECK_THROW((void)l.try_acquire(two), std::bad_alloc);
        BOOST_CHECK_THROW(l.async_acquire(two, [](error_code) {}), std::bad_alloc);
        *hook = nullptr;
        BOOST_TEST(l.size() == 1U);
        *hook = [&, hook] {
            *hook = nullptr;
            BOOST_TEST(l.try_acquire(two)); // adds the key that is being added
            BOOST_TEST(l.size() == 2U);
        };
        BOOST_TEST(l.try_acquire(two));
        BOOST_TEST(!l.try_acquire(two));
        BOOST_TEST(!l.try_acquire(one));
        BOOST_TEST(l.size() == 2U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_late_timer_makes_no_waiter_miss_its_deadline, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<int, P> l(io, per_second(10, 1));
    BOOST_TEST(l.try_acquire(1));
    completion first;
    completion second;
    l.async_acquire(1, 1, 100ms, first.handler(nothing));
    l.async_acquire(1, 1, 200ms, second.handler(nothing));
    pass(io, 150ms);
    BOOST_TEST(first.succeeded());
    pass(io, 50ms);
    BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(listeners_are_called_one_at_a_time, P, kit::policies)
{
    asio::io_context io;
    keyed_of<int, P> l(io, per_second(10, 1));
    int inside = 0;
    std::vector<int> keys;
    const turnstile::listener_id id = l.add_listener([&](const auto& event) {
        BOOST_TEST(++inside == 1);
        keys.push_back(event.key);
        if (event.key < 40)
            BOOST_TEST(!l.try_acquire(event.key + 1, 2)); // keys are in different shards
        --inside;
    });
    BOOST_TEST(!l.try_acquire(1, 2));
    BOOST_TEST(keys.size() == 40U);
    BOOST_TEST(l.dropped_events() == 0U);
    BOOST_TEST(l.remove_listener(id));
    BOOST_TEST(!l.remove_listener(id));
    BOOST_TEST(!l.try_acquire(1, 2));
    BOOST_TEST(keys.size() == 40U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_may_destroy_the_limiter, P, kit::policies)
{
    enum class cause { attempt, change_of_the_limits };
    for (const cause why : {cause::attempt, cause::change_of_the_limits}) {
        kit::drained_context io;
        auto l = std::make_unique<keyed_of<int, P>>(io, per_second(10, 5));
        std::vector<completion> waits(20); // in several shards
        for (int key = 0; key != 20; ++key) {
            BOOST_TEST(l->try_acquire(key, 5));
            l->async_acquire(key, 5, waits[static_cast<std::size_t>(key)].handler(nothing));
        }
        int events = 0;
        l->add_listener([&](const auto&) {
            ++events;
            l.reset();
        });
        if (why == cause::attempt)
            BOOST_TEST(!l->try_acquire(1, 6));
        else
            l->set_limits(per_second(10, 2)); // refuses all waiters
        BOOST_TEST(!l);
        BOOST_TEST(events == 1); // no listener is called after the limiter was destroyed
        kit::run(io);
        for (const completion& w : waits)
            BOOST_TEST((why == cause::attempt ? w.aborted() : w.error() == errc::too_large));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(limits_on_the_wait_hold_for_each_key, P, kit::policies)
{
    kit::drained_context io;
    std::vector<std::pair<int, errc>> reports;
    keyed_of<int, P> l(io, per_second(10, 1), {.max_waiters = 1});
    l.add_listener([&](const auto& event) {
        reports.emplace_back(event.key, event.code);
        (void)l.size(); // would deadlock under the lock
    });
    for (const int key : {1, 2})
        BOOST_TEST(l.try_acquire(key));
    completion first;
    completion second;
    completion third;
    completion late;
    l.async_acquire(1, first.handler(nothing));
    l.async_acquire(1, second.handler(nothing));
    l.async_acquire(2, 1, 99ms, late.handler(nothing));
    l.async_acquire(2, 1, 100ms, third.handler(nothing));
    pass(io, 100ms);
    BOOST_TEST(first.succeeded());
    BOOST_TEST((second.error() == errc::rejected));
    BOOST_TEST((late.error() == errc::rate_limited));
    BOOST_TEST(third.succeeded());
    const std::vector<std::pair<int, errc>> expected{{1, errc::rejected}, {2, errc::rate_limited}};
    BOOST_TEST((reports == expected));
    BOOST_TEST(l.stats().rejected == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(idle_keys_are_forgotten_as_new_ones_come, P, kit::policies)
{
    asio::io_context io;
    keyed_of<int, P> l(io, per_second(10, 1));
    std::size_t most = 0;
    for (int key = 0; key != 50'000; ++key) {
        BOOST_REQUIRE(l.try_acquire(key));
        kit::manual_clock::shift(1ms); // each is full again after a hundred others
        most = std::max(most, l.size());
    }
    BOOST_TEST(most < 5'000U);
    kit::manual_clock::shift(1s);
    const std::size_t left = l.size();
    BOOST_TEST(l.purge() == left);
    BOOST_TEST(l.size() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_clock_that_goes_back_mints_nothing, P, kit::policies)
{
    asio::io_context io;
    keyed_of<int, P> l(io, per_second(1, 5));
    BOOST_TEST(l.try_acquire(7, 5));
    kit::manual_clock::shift(5s);
    BOOST_TEST(l.purge() == 1U);
    kit::manual_clock::shift(-4s);
    BOOST_TEST(l.time_until(7, 2).count() == nanoseconds(1s).count());
    BOOST_TEST(l.try_acquire(7));
    BOOST_TEST(!l.try_acquire(7));
    kit::manual_clock::shift(5s);
    BOOST_TEST(l.try_acquire(7, 5));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_grant_cancelled_before_delivery_does_not_count, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<int, P> l(io, per_second(1, 5));
    asio::cancellation_signal signal;
    completion c;
    l.async_acquire(7, 3, asio::bind_cancellation_slot(signal.slot(), c.handler(nothing)));
    BOOST_TEST(l.stats().granted == 3U);
    signal.emit(asio::cancellation_type::terminal);
    kit::run(io);
    BOOST_TEST(c.aborted());
    BOOST_TEST(l.stats().granted == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(more_permits_than_can_be_counted_are_not_waited_for, P, kit::policies)
{
    constexpr std::uint64_t many = std::uint64_t(1) << 56;
    kit::drained_context io;
    std::optional<keyed_of<int, P>> l;
    l.emplace(io, bandwidth{1'000'000'000, 1s, many});
    BOOST_TEST(l->try_acquire(7, many));
    int rejected = 0;
    for (int i = 0; i != 300; ++i)
        l->async_acquire(7, many, [&](error_code ec) { rejected += ec == errc::rejected ? 1 : 0; });
    l.reset();
    kit::run(io);
    BOOST_TEST(rejected == 300 - 126); // more than the bucket can count
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_key_in_use_is_never_forgotten, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<int, P> l(io, per_second(1, 2));
    BOOST_TEST(l.try_acquire(1, 2));
    BOOST_TEST(l.try_acquire(2, 2));
    completion waits;
    l.async_acquire(2, 2, waits.handler(nothing));
    kit::manual_clock::shift(2s - 1ns);
    BOOST_TEST(l.purge() == 0U);
    BOOST_TEST(!l.try_acquire(1, 2)); // a new key would have two permits
    kit::manual_clock::shift(10s);
    BOOST_TEST(l.purge() == 1U); // not the key with a waiter
    BOOST_TEST(l.size() == 1U);
    pass(io, 0s);
    BOOST_TEST(waits.succeeded());
    BOOST_TEST(!l.try_acquire(2));
    // Nor is the key of a granted operation. Its bucket is full, so the refund is void.
    completion cancelled;
    asio::cancellation_signal signal;
    l.async_acquire(3, 2, asio::bind_cancellation_slot(signal.slot(), cancelled.handler(nothing)));
    kit::manual_clock::shift(10s);
    BOOST_TEST(l.purge() == 1U);
    signal.emit(asio::cancellation_type::total);
    kit::run(io);
    BOOST_TEST(cancelled.aborted());
    BOOST_TEST(l.try_acquire(3, 2));
    BOOST_TEST(!l.try_acquire(3));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_grant_by_an_earlier_limit_is_not_refunded_at_the_new_rate, P,
                              kit::policies)
{
    kit::drained_context io;
    keyed_of<int, P> l(io, bandwidth{1, 1ms, 2});
    asio::cancellation_signal signal;
    completion granted;
    l.async_acquire(7, 1, asio::bind_cancellation_slot(signal.slot(), granted.handler(nothing)));
    kit::manual_clock::shift(2ms);
    l.set_limits(bandwidth{1, 10ms, 2});
    BOOST_TEST(l.try_acquire(7, 2));
    signal.emit(asio::cancellation_type::terminal);
    pass(io, 2ms);
    BOOST_TEST(granted.aborted());
    BOOST_TEST(!l.try_acquire(7));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(changing_the_limit_changes_all_keys, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<int, P> l(io, per_second(1, 10));
    for (int key = 0; key != 100; ++key)
        BOOST_TEST(l.try_acquire(key, 10));
    completion first;
    completion too_many;
    completion too_late;
    completion last;
    l.async_acquire(5, 6, too_many.handler(nothing));
    l.async_acquire(5, 2, first.handler(nothing));
    l.async_acquire(5, 2, 20s, too_late.handler(nothing));
    l.async_acquire(6, 1, last.handler(nothing));
    l.set_limits(per_second(0.1, 5));
    pass(io, 0s);
    BOOST_TEST((too_many.error() == errc::too_large));
    BOOST_TEST((too_late.error() == errc::rate_limited));
    BOOST_TEST(l.stats().waiting == 2U);
    BOOST_TEST(l.time_until(9).count() == nanoseconds(60s).count());
    l.set_limits(per_second(10, 5));
    BOOST_TEST(l.time_until(9).count() == nanoseconds(600ms).count());
    pass(io, 600ms);
    BOOST_TEST(last.succeeded());
    pass(io, 100ms);
    BOOST_TEST(first.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destroying_it_aborts_the_waiters_of_all_keys, P, kit::policies)
{
    kit::drained_context io;
    std::vector<completion> all(40);
    {
        keyed_of<std::string, P> l(io, per_second(1, 1));
        for (std::size_t i = 0; i != all.size(); ++i) {
            const std::string key = "key " + std::to_string(i / 2);
            (void)l.try_acquire(key);
            l.async_acquire(key, all[i].handler(nothing));
        }
    }
    kit::run(io);
    for (auto& c : all)
        BOOST_TEST(c.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(runs_an_operation_with_a_permit_of_the_key, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<std::string, P> l(io, per_second(10, 1));
    int ran = 0;
    std::vector<int> results;
    for (int i = 0; i != 2; ++i)
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                results.push_back(co_await l.async_call("k", [&]() -> asio::awaitable<int> {
                    ++ran;
                    co_return 42;
                }));
            },
            asio::detached);
    pass(io, 0s);
    BOOST_TEST(ran == 1);
    pass(io, 100ms);
    BOOST_TEST(ran == 2);
    BOOST_TEST((results == std::vector{42, 42}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_key_is_a_stage, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<std::string, P> l(io, per_second(1, 1));
    auto ann = l.stage_for("ann");
    const auto p = turnstile::pipeline<kit::manual_clock>(io).stage(ann);
    const auto op = [](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [](auto handler) { handler(error_code()); }, token);
    };
    completion first;
    completion second;
    p.async_call(op, first.handler(nothing));
    p.async_call(op, second.handler(nothing));
    pass(io, 0s);
    BOOST_TEST(first.succeeded());
    BOOST_TEST(!second.done());
    BOOST_TEST(l.try_acquire("bob"));
    pass(io, 1s);
    BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
