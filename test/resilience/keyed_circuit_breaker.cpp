// SPDX-License-Identifier: BSL-1.0
#include "kit/manual_clock.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/keyed_circuit_breaker.hpp>
#include <turnstile/resilience/pipeline.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::manual_clock;
using turnstile::call_outcome;
using turnstile::circuit_state;
using turnstile::errc;
using turnstile::error_code;
using turnstile::nanoseconds;

template <class Key, class Threading>
using keyed_of =
    turnstile::basic_keyed_circuit_breaker<Key, std::hash<Key>, std::equal_to<Key>,
                                           asio::any_io_executor, Threading, manual_clock>;

static_assert(!std::is_move_constructible_v<turnstile::keyed_circuit_breaker<int>>);
static_assert(
    std::is_nothrow_move_constructible_v<turnstile::keyed_circuit_breaker<int>::permit_type>);

turnstile::circuit_breaker_options two_in_a_row()
{
    return {.window = turnstile::consecutive_failures{2}, .open_for = 50ms};
}

// An operation that completes at once with `ec`.
auto answer(error_code ec = {})
{
    return asio::async_initiate<const asio::deferred_t, void(error_code, int)>(
        [ec](auto handler) {
            asio::post([h = std::move(handler), ec]() mutable { std::move(h)(ec, 7); });
        },
        asio::deferred);
}

template <class Breaker, class Key>
void fail(Breaker& b, const Key& key, int times)
{
    for (int i = 0; i != times; ++i)
        b.try_acquire(key).failure();
}

std::string text(const std::exception& e) { return e.what(); }

BOOST_AUTO_TEST_SUITE(keyed_circuit_breaker)

BOOST_AUTO_TEST_CASE_TEMPLATE(every_key_has_a_circuit_of_its_own, P, kit::policies)
{
    asio::io_context io;
    keyed_of<std::string, P> b(io, two_in_a_row());
    BOOST_TEST((b.state("ann") == circuit_state::closed));
    BOOST_TEST(b.size() == 0U);
    fail(b, "ann", 2);
    fail(b, "bob", 1);
    BOOST_TEST((b.state("ann") == circuit_state::open));
    BOOST_TEST((b.state("bob") == circuit_state::closed));
    BOOST_TEST(b.size() == 2U);

    error_code ec;
    const auto refused = b.try_acquire("ann", ec);
    BOOST_TEST(!refused);
    BOOST_TEST((ec == errc::circuit_open));
    BOOST_TEST(refused.retry_after().count() == nanoseconds(50ms).count());
    BOOST_TEST(b.retry_after("ann").count() == nanoseconds(50ms).count());
    BOOST_TEST(b.retry_after("bob").count() == 0);
    BOOST_TEST(bool(b.try_acquire("bob", ec)));
    BOOST_TEST(!ec);

    manual_clock::shift(50ms);
    BOOST_TEST((b.state("ann") == circuit_state::half_open));
    auto probe = b.try_acquire("ann");
    BOOST_TEST(probe.is_probe());
    BOOST_TEST(!b.try_acquire("ann"));
    probe.success();
    BOOST_TEST((b.state("ann") == circuit_state::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(calls_are_counted_for_their_key, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<int, P> b(io, two_in_a_row());
    const auto call = [&](int key, error_code with = {}) {
        std::optional<error_code> result;
        b.async_call(key, answer(with),
                     asio::bind_executor(io, [&](error_code ec, int) { result = ec; }));
        io.restart();
        while (!result)
            io.run_one();
        return *result;
    };
    BOOST_TEST(!call(1));
    BOOST_TEST((call(1, asio::error::connection_reset) == asio::error::connection_reset));
    BOOST_TEST((call(1, asio::error::operation_aborted) == asio::error::operation_aborted));
    BOOST_TEST((call(1, asio::error::connection_reset) == asio::error::connection_reset));
    BOOST_TEST((call(1) == errc::circuit_open));
    BOOST_TEST(!call(2));

    const auto stats = b.stats();
    BOOST_TEST(stats.keys == 2U);
    BOOST_TEST(stats.successes == 2U);
    BOOST_TEST(stats.failures == 2U);
    BOOST_TEST(stats.ignored == 1U);
    BOOST_TEST(stats.rejected == 1U);
    BOOST_TEST(stats.opened == 1U);
    BOOST_TEST(stats.late == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_call_may_have_a_classifier_of_its_own, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<int, P> b(io, two_in_a_row());
    int done = 0;
    for (int i = 0; i != 2; ++i)
        b.async_call(
            1, answer(),
            [](error_code, int n) {
                return n == 7 ? call_outcome::failure : call_outcome::success;
            },
            asio::bind_executor(io, [&](error_code, int) { ++done; }));
    while (done != 2)
        io.run_one();
    BOOST_TEST((b.state(1) == circuit_state::open));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_key_is_a_stage_of_a_pipeline, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<std::string, P> b(io, two_in_a_row());
    b.force_open("down");
    auto up = b.stage_for("up");
    auto down = b.stage_for("down");
    std::optional<error_code> first, second;
    const auto op = [](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, int)>(
            [](auto handler) { handler(error_code(), 7); }, token);
    };
    turnstile::pipeline<manual_clock>(io).stage(up).async_call(
        op, asio::bind_executor(io, [&](error_code ec, int) { first = ec; }));
    turnstile::pipeline<manual_clock>(io).stage(down).async_call(
        op, asio::bind_executor(io, [&](error_code ec, int) { second = ec; }));
    while (!first || !second)
        io.run_one();
    BOOST_TEST(!*first);
    BOOST_TEST((*second == errc::circuit_open));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(circuits_that_remember_nothing_are_forgotten, P, kit::policies)
{
    asio::io_context io;
    keyed_of<int, P> b(io, two_in_a_row());
    for (int key = 0; key != 10'000; ++key)
        b.try_acquire(key).success();
    BOOST_TEST(b.size() < 1000U);
    b.purge();
    BOOST_TEST(b.size() == 0U);

    auto out = b.try_acquire(1);
    fail(b, 2, 1);
    fail(b, 3, 2);
    b.force_closed(4);
    BOOST_TEST(b.purge() == 0U);
    out.success();
    BOOST_TEST(b.purge() == 1U);
    b.reset(3);
    BOOST_TEST(b.purge() == 1U);
    b.reset(4);
    BOOST_TEST(b.purge() == 1U);
    BOOST_TEST(b.size() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(circuits_that_are_not_used_are_forgotten, P, kit::policies)
{
    asio::io_context io;
    auto rules = two_in_a_row();
    rules.open_for = 2min;
    keyed_of<int, P> b(io, rules, {.forget_after = 1min});
    fail(b, 1, 1);
    fail(b, 2, 2);
    b.force_open(3);
    manual_clock::shift(1min - 1ns);
    BOOST_TEST(b.purge() == 0U);
    manual_clock::shift(1ns);
    BOOST_TEST((b.state(1) == circuit_state::closed)); // is no use
    BOOST_TEST(b.purge() == 1U);
    BOOST_TEST((b.state(2) == circuit_state::open));
    manual_clock::shift(1min);
    BOOST_TEST(b.purge() == 1U); // its open time is over
    BOOST_TEST((b.state(2) == circuit_state::closed));
    BOOST_TEST((b.state(3) == circuit_state::open));
    BOOST_TEST(b.size() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(listeners_are_told_the_key, P, kit::policies)
{
    asio::io_context io;
    keyed_of<std::string, P> b(io, two_in_a_row());
    std::string log;
    const auto id = b.add_listener([&](const auto& e) {
        log += e.key + ' ' + std::string(to_string(e.from)) + ' ' + std::string(to_string(e.to)) +
               '\n';
        static_cast<void>(b.state(e.key)); // may use the breaker
        throw std::runtime_error("is ignored");
    });
    fail(b, "ann", 2);
    manual_clock::shift(50ms);
    b.try_acquire("ann").success();
    b.force_open("bob");
    b.force_open("bob");
    BOOST_TEST(log ==
               "ann closed open\nann open half_open\nann half_open closed\nbob closed open\n");
    BOOST_TEST(b.remove_listener(id));
    BOOST_TEST(!b.remove_listener(id));
    b.reset("bob");
    BOOST_TEST(b.dropped_events() == 0U);
    BOOST_TEST(log.size() == 72U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_may_destroy_the_breaker, P, kit::policies)
{
    asio::io_context io;
    std::optional<keyed_of<int, P>> b;
    b.emplace(io, two_in_a_row());
    b->add_listener([&](const auto&) { b.reset(); });
    auto one = b->try_acquire(1);
    auto two = b->try_acquire(1);
    one.failure();
    two.failure();
    BOOST_TEST(!b);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_open_time_may_be_a_function, P, kit::policies)
{
    asio::io_context io;
    auto rules = two_in_a_row();
    std::optional<keyed_of<int, P>> b;
    int asked = 0;
    rules.break_duration = [&](const turnstile::break_info& info) {
        ++asked;
        BOOST_TEST(info.calls.failures == 2U);
        static_cast<void>(b->size()); // without a lock
        return info.attempt * nanoseconds(10ms);
    };
    b.emplace(io, rules);
    fail(*b, 1, 2);
    BOOST_TEST(asked == 1);
    BOOST_TEST(b->retry_after(1).count() == nanoseconds(10ms).count());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(permits_and_calls_may_outlive_the_breaker, P, kit::policies)
{
    kit::drained_context io;
    std::optional<keyed_of<std::string, P>> b;
    b.emplace(io, two_in_a_row());
    bool told = false;
    b->add_listener([&](const auto&) { told = true; });
    auto permit = b->try_acquire("a key that does not fit into a short string");
    auto other = b->try_acquire("a key that does not fit into a short string");
    std::optional<error_code> result;
    b->async_call("a", answer(asio::error::eof),
                  asio::bind_executor(io, [&](error_code ec, int) { result = ec; }));
    b.reset();
    permit.failure();
    other.failure();
    while (!result)
        io.run_one();
    BOOST_TEST((*result == asio::error::eof));
    BOOST_TEST(!told);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bad_options_are_refused_by_name, P, kit::policies)
{
    asio::io_context io;
    auto rules = two_in_a_row();
    rules.probes = 0;
    BOOST_CHECK_EXCEPTION((keyed_of<int, P>(io, rules)), turnstile::system_error,
                          [](const auto& e) { return text(e).find("probes") != text(e).npos; });
    for (const nanoseconds d : {nanoseconds(0), nanoseconds(-1)})
        BOOST_CHECK_EXCEPTION(
            (keyed_of<int, P>(io, {}, {.forget_after = d})), turnstile::system_error,
            [](const auto& e) { return text(e).find("forget_after") != text(e).npos; });
}

// A hash or a comparison that throws changes nothing.
struct picky {
    int value;
    bool throws = false;
    friend bool operator==(const picky& a, const picky& b)
    {
        if (a.throws || b.throws)
            throw std::runtime_error("compare");
        return a.value == b.value;
    }
};
struct same_hash {
    std::size_t operator()(const picky&) const noexcept { return 1; }
};

BOOST_AUTO_TEST_CASE_TEMPLATE(keys_may_throw_and_collide, P, kit::policies)
{
    asio::io_context io;
    turnstile::basic_keyed_circuit_breaker<picky, same_hash, std::equal_to<>, asio::any_io_executor,
                                           P, manual_clock>
        b(io, two_in_a_row());
    for (int i = 0; i != 5; ++i)
        b.force_open({i});
    BOOST_TEST(b.size() == 5U);
    BOOST_CHECK_THROW(static_cast<void>(b.try_acquire({7, true})), std::runtime_error);
    BOOST_TEST(b.size() == 5U);
    BOOST_TEST((b.state({3}) == circuit_state::open));
    BOOST_TEST((b.state({5}) == circuit_state::closed));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
