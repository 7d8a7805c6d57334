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
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
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
            const auto executor = asio::get_associated_executor(handler);
            asio::post(executor, [h = std::move(handler), ec]() mutable { std::move(h)(ec, 7); });
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

// A key that tells what is done with it.
struct watched_key {
    int value = 0;
    static inline std::function<void(std::string_view)> told;

    static void tell(std::string_view what)
    {
        if (told)
            told(what);
    }
    explicit watched_key(int v) : value(v) {}
    watched_key(const watched_key& other) : value(other.value) { tell("copy"); }
    watched_key& operator=(const watched_key&) = delete;
    ~watched_key() { tell("destroy"); }

    friend bool operator==(const watched_key& a, const watched_key& b)
    {
        tell("compare");
        return a.value == b.value;
    }
    struct hash {
        std::size_t operator()(const watched_key& k) const
        {
            tell("hash");
            return static_cast<std::size_t>(k.value % 10);
        }
    };
};

template <class Threading>
using watched_breaker =
    turnstile::basic_keyed_circuit_breaker<watched_key, watched_key::hash, std::equal_to<>,
                                           asio::any_io_executor, Threading, manual_clock>;

BOOST_AUTO_TEST_CASE_TEMPLATE(code_of_a_key_may_use_the_breaker, P, kit::policies)
{
    asio::io_context io;
    watched_breaker<P> b(io, two_in_a_row());
    std::string seen;
    watched_key::told = [&, is_inside = false](std::string_view what) mutable {
        if (std::exchange(is_inside, true))
            return;
        seen += what.front();
        b.force_open(watched_key(12)); // in the same place of the table
        b.try_acquire(watched_key(100 + int(seen.size()))).success();
        b.purge();
        is_inside = false;
    };
    {
        const watched_key two(2);
        b.try_acquire(two).success();
        BOOST_TEST((b.state(two) == circuit_state::closed));
    }
    b.purge();
    watched_key::told = nullptr;
    for (const char what : {'h', 'c', 'd'}) // copied, compared
        BOOST_TEST(seen.find(what) != seen.npos);
    b.purge();
    BOOST_TEST(b.size() == 1U);
    BOOST_TEST((b.state(watched_key(12)) == circuit_state::open));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_key_that_throws_changes_nothing_and_starts_nothing, P,
                              kit::policies)
{
    kit::drained_context io;
    watched_breaker<P> b(io, two_in_a_row());
    b.force_open(watched_key(12));
    bool started = false;
    const auto op = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [&](auto) { started = true; }, token);
    };
    for (const std::string_view when : {"hash", "compare", "copy"}) {
        const watched_key two(2);
        watched_key::told = [&](std::string_view what) {
            if (what == when)
                throw std::runtime_error("as asked");
        };
        BOOST_CHECK_THROW(static_cast<void>(b.try_acquire(two)), std::runtime_error);
        BOOST_CHECK_THROW(b.async_call(two, op, [](error_code) {}), std::runtime_error);
        BOOST_CHECK_THROW(
            static_cast<void>(b.async_call(
                two, []() -> asio::awaitable<void> { co_return; }, asio::use_awaitable)),
            std::runtime_error);
        BOOST_CHECK_THROW(b.force_open(two), std::runtime_error);
        watched_key::told = nullptr;
        BOOST_TEST(b.size() == 1U);
        BOOST_TEST((b.state(two) == circuit_state::closed));
    }
    BOOST_TEST(!started);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_calls_a_coroutine, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<std::string, P> b(io, two_in_a_row());
    int started = 0;
    const auto answer_with = [&](error_code ec) {
        return [&started, ec]() -> asio::awaitable<int> {
            ++started;
            co_await asio::post(asio::use_awaitable);
            if (ec)
                throw turnstile::system_error(ec);
            co_return 7;
        };
    };
    bool ended = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const auto call = [&](std::string key,
                                  error_code ec = {}) -> asio::awaitable<error_code> {
                try {
                    BOOST_TEST(co_await b.async_call(key, answer_with(ec), asio::use_awaitable) ==
                               7);
                } catch (const turnstile::rejection& r) {
                    BOOST_TEST(r.retry_after().count() == nanoseconds(50ms).count());
                    co_return r.code();
                } catch (const turnstile::system_error& e) {
                    co_return e.code();
                }
                co_return error_code();
            };
            BOOST_TEST(!co_await call("ann"));
            BOOST_TEST(b.purge() == 1U); // the call refers to its key no longer
            BOOST_TEST((co_await call("ann", asio::error::eof) == asio::error::eof));
            BOOST_TEST((co_await call("ann", asio::error::eof) == asio::error::eof));
            BOOST_TEST(started == 3);
            BOOST_TEST((co_await call("ann") == errc::circuit_open));
            BOOST_TEST(started == 3);
            BOOST_TEST(!co_await call("bob"));
            // A classifier of its own.
            const auto bad = [](const std::exception_ptr&, int) { return call_outcome::failure; };
            for (int i = 0; i != 2; ++i)
                co_await b.async_call("bob", answer_with({}), bad, asio::use_awaitable);
            BOOST_TEST((b.state("bob") == circuit_state::open));
            ended = true;
        },
        [](std::exception_ptr e) { BOOST_TEST(!e); });
    kit::run(io);
    BOOST_TEST(ended);
    const auto stats = b.stats();
    BOOST_TEST(stats.successes == 2U);
    BOOST_TEST(stats.failures == 4U);
    BOOST_TEST(stats.rejected == 1U);
}

// Starts a coroutine that calls, for the key, a coroutine that ends only if it is cancelled.
template <class Breaker, class Key>
void call_for_ever(asio::io_context& io, Breaker& b, const Key& key,
                   asio::cancellation_signal& signal, std::optional<turnstile::failure>& failed)
{
    const auto never = [&io]() -> asio::awaitable<void> {
        asio::steady_timer timer(io, asio::steady_timer::time_point::max());
        co_await timer.async_wait(asio::use_awaitable);
    };
    asio::co_spawn(
        io, b.async_call(key, never, asio::use_awaitable),
        asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) { failed = e; }));
    kit::poll_leaves_work(io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_caller_makes_room_for_another_probe, P, kit::policies)
{
    kit::drained_context io;
    keyed_of<int, P> b(io, two_in_a_row());
    fail(b, 1, 2);
    manual_clock::shift(50ms);
    asio::cancellation_signal signal;
    std::optional<turnstile::failure> failed;
    call_for_ever(io, b, 1, signal, failed);
    BOOST_TEST(!b.try_acquire(1));
    BOOST_TEST(b.purge() == 0U);
    signal.emit(asio::cancellation_type::terminal);
    kit::run(io);
    BOOST_TEST_REQUIRE(failed.has_value());
    BOOST_TEST(failed->is_cancelled());
    BOOST_TEST(b.stats().ignored == 1U);
    BOOST_TEST(b.try_acquire(1).is_probe());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_may_outlive_the_breaker, P, kit::policies)
{
    const auto key = std::make_shared<int>();
    auto rules = two_in_a_row();
    bool asked = false;
    rules.classify = [&](const turnstile::failure&) {
        asked = true;
        return call_outcome::failure;
    };
    for (const bool is_cancelled : {true, false}) {
        asio::cancellation_signal signal;
        std::optional<turnstile::failure> failed;
        asio::io_context io;
        std::optional<keyed_of<std::shared_ptr<int>, P>> b;
        b.emplace(io, rules);
        call_for_ever(io, *b, key, signal, failed);
        b.reset();
        BOOST_TEST(key.use_count() == 2);
        if (is_cancelled) {
            signal.emit(asio::cancellation_type::terminal);
            kit::run(io);
            BOOST_TEST(failed.has_value());
            BOOST_TEST(key.use_count() == 1);
        }
    }
    BOOST_TEST(!asked);
    BOOST_TEST(key.use_count() == 1);
}

// An event owns the circuit, which owns the listeners.
BOOST_AUTO_TEST_CASE_TEMPLATE(events_that_are_not_delivered_free_their_keys, P, kit::policies)
{
    const auto one = std::make_shared<int>();
    const auto two = std::make_shared<int>();
    {
        asio::io_context io;
        std::optional<keyed_of<std::shared_ptr<int>, P>> b;
        b.emplace(io, two_in_a_row());
        auto permit = b->try_acquire(two);
        int told = 0;
        b->add_listener([&](const auto& e) {
            ++told;
            b->force_open(two); // queued behind this event
            b.reset();
            permit.failure();
            BOOST_TEST(e.key == one);
        });
        b->force_open(one);
        BOOST_TEST(told == 1);
    }
    BOOST_TEST(one.use_count() == 1);
    BOOST_TEST(two.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
