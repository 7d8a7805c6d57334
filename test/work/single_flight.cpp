// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/operations.hpp"
#include "kit/run.hpp"

#include <turnstile/sync/event.hpp>
#include <turnstile/work/single_flight.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using ts::error_code;

using flights_types =
    std::tuple<ts::single_flight<std::string, int>, ts::local::single_flight<std::string, int>>;

using value_ptr = std::shared_ptr<const int>;

struct caller {
    error_code error;
    value_ptr value;
    kit::completion done{};
    asio::cancellation_signal signal{};
    auto handler()
    {
        return asio::bind_cancellation_slot(
            signal.slot(), [this, w = done.watched()](error_code ec, value_ptr v) mutable {
                w.called(ec);
                error = ec;
                value = std::move(v);
            });
    }
};

struct fixture {
    kit::drained_context io;
    kit::scripted_operation load{io.get_executor()};
    void poll() { kit::poll_leaves_work(io); }
};

BOOST_AUTO_TEST_SUITE(single_flight)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_hundred_callers_share_one_load, Flights, flights_types)
{
    fixture f;
    Flights flights(f.io);
    std::vector<caller> callers(100);
    for (caller& c : callers)
        flights.async_do("key", f.load, c.handler());
    f.poll();
    BOOST_TEST(f.load.started() == 1U);
    BOOST_TEST(flights.waiting() == 100U);
    f.load.succeed(0, 7);
    f.poll();
    for (const caller& c : callers) {
        BOOST_TEST_REQUIRE(c.value);
        BOOST_TEST(*c.value == 7);
        BOOST_TEST(c.value == callers[0].value);
    }
    const ts::single_flight_stats s = flights.stats();
    BOOST_TEST(s.started == 1U);
    BOOST_TEST(s.joined == 99U);
    BOOST_TEST(s.succeeded == 1U);
    BOOST_TEST(s.loading == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failure_reaches_all_callers_and_is_not_kept, Flights, flights_types)
{
    fixture f;
    Flights flights(f.io);
    std::vector<caller> callers(3);
    for (caller& c : callers)
        flights.async_do("key", f.load, c.handler());
    f.load.fail(0, ts::errc::closed);
    f.poll();
    for (const caller& c : callers)
        BOOST_TEST(c.error == ts::errc::closed);
    BOOST_TEST(flights.stats().failed == 1U);
    caller next;
    flights.async_do("key", f.load, next.handler());
    BOOST_TEST(f.load.started() == 2U);
    f.load.succeed(1, 1);
    f.poll();
    BOOST_TEST(next.done.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_caller_does_not_disturb_the_others, Flights,
                              flights_types)
{
    fixture f;
    Flights flights(f.io);
    std::vector<caller> callers(100);
    for (caller& c : callers)
        flights.async_do("key", f.load, c.handler());
    f.poll();
    callers[0].signal.emit(asio::cancellation_type::partial);
    f.poll();
    BOOST_TEST(callers[0].done.aborted());
    BOOST_TEST(!f.load.was_cancelled(0));
    f.load.succeed(0, 7);
    f.poll();
    for (std::size_t i = 1; i != callers.size(); ++i)
        BOOST_TEST(callers[i].done.succeeded());
    BOOST_TEST(f.load.started() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_load_without_callers_is_cancelled_and_the_next_caller_loads_anew,
                              Flights, flights_types)
{
    fixture f;
    f.load.ignore_cancellation(); // it unwinds slowly
    Flights flights(f.io);
    std::vector<caller> callers(2);
    for (caller& c : callers)
        flights.async_do("key", f.load, c.handler());
    f.poll();
    for (caller& c : callers)
        c.signal.emit(asio::cancellation_type::terminal);
    f.poll();
    BOOST_TEST((f.load.cancelled(0) == asio::cancellation_type::terminal));
    caller late;
    flights.async_do("key", f.load, late.handler());
    BOOST_TEST(f.load.started() == 2U);
    f.load.fail(0, asio::error::operation_aborted);
    f.poll();
    BOOST_TEST(!late.done.done());
    f.load.succeed(1, 2);
    f.poll();
    BOOST_TEST_REQUIRE(late.value);
    BOOST_TEST(*late.value == 2);
    BOOST_TEST(flights.stats().cancelled == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(keys_do_not_wait_for_each_other, Flights, flights_types)
{
    fixture f;
    Flights flights(f.io);
    caller a;
    caller b;
    flights.async_do("a", f.load, a.handler());
    flights.async_do("b", f.load, b.handler());
    BOOST_TEST(f.load.started() == 2U);
    f.load.succeed(1, 2);
    f.poll();
    BOOST_TEST(b.done.succeeded());
    BOOST_TEST(!a.done.done());
    f.load.succeed(0, 1);
    f.poll();
    BOOST_TEST(a.done.succeeded());
}

// As in the documentation of the layer.
BOOST_AUTO_TEST_CASE(a_coroutine_loads_by_the_key)
{
    kit::drained_context io;
    ts::single_flight<std::string, std::string> flights(io);
    int loads = 0;
    const auto load = [&](const std::string& key) -> asio::awaitable<std::string> {
        ++loads;
        co_await asio::post(asio::use_awaitable);
        co_return "the value of " + key;
    };
    int seen = 0;
    const auto run = [&]() -> asio::awaitable<void> {
        auto v = co_await flights.async_do("user:123", load);
        BOOST_TEST(*v == "the value of user:123");
        ++seen;
    };
    for (int i = 0; i != 100; ++i)
        asio::co_spawn(io, run, asio::detached);
    kit::run(io);
    BOOST_TEST(seen == 100);
    BOOST_TEST(loads == 1);
}

BOOST_AUTO_TEST_CASE(coroutines_are_thrown_the_exception_of_the_load)
{
    kit::drained_context io;
    ts::single_flight<int, int> flights(io);
    int caught = 0;
    const auto run = [&]() -> asio::awaitable<void> {
        try {
            co_await flights.async_do(1, []() -> asio::awaitable<int> {
                co_await asio::post(asio::use_awaitable);
                throw std::logic_error("the load");
            });
        } catch (const std::logic_error& e) {
            caught += std::string(e.what()) == "the load" ? 1 : 0;
        }
        try { // a loader that throws before it makes an operation
            co_await flights.async_do(
                1, [](int) -> asio::awaitable<int> { throw std::out_of_range("no operation"); });
        } catch (const std::out_of_range&) {
            ++caught;
        }
    };
    asio::co_spawn(io, run, asio::detached);
    asio::co_spawn(io, run, asio::detached);
    kit::run(io);
    BOOST_TEST(caught == 4);
}

BOOST_AUTO_TEST_CASE(values_need_not_be_copyable)
{
    kit::drained_context io;
    ts::single_flight<int, std::unique_ptr<int>> flights(io);
    std::shared_ptr<const std::unique_ptr<int>> got;
    flights.async_do(
        1,
        [p = std::make_unique<int>(5)]() mutable -> asio::awaitable<std::unique_ptr<int>> {
            return [](std::unique_ptr<int> q) -> asio::awaitable<std::unique_ptr<int>> {
                co_return std::move(q);
            }(std::move(p));
        },
        [&](error_code ec, auto v) {
            BOOST_TEST(!ec);
            got = std::move(v);
        });
    kit::run(io);
    BOOST_TEST_REQUIRE(got);
    BOOST_TEST(**got == 5);
}

BOOST_AUTO_TEST_CASE(a_forgotten_load_serves_its_callers_and_no_others)
{
    fixture f;
    ts::single_flight<std::string, int> flights(f.io);
    BOOST_TEST(!flights.forget("key"));
    caller first;
    caller second;
    flights.async_do("key", f.load, first.handler());
    BOOST_TEST(flights.forget("key"));
    flights.async_do("key", f.load, second.handler());
    BOOST_TEST(f.load.started() == 2U);
    f.load.succeed(0, 1);
    f.load.succeed(1, 2);
    f.poll();
    BOOST_TEST(*first.value == 1);
    BOOST_TEST(*second.value == 2);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destruction_aborts_the_callers_and_cancels_the_loads, Flights,
                              flights_types)
{
    fixture f;
    std::optional<Flights> flights(std::in_place, f.io);
    caller c;
    flights->async_do("key", f.load, c.handler());
    f.poll();
    flights.reset();
    f.poll();
    BOOST_TEST(c.done.aborted());
    BOOST_TEST(f.load.was_cancelled(0));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_load_may_destroy_the_object_and_complete_at_once, Flights,
                              flights_types)
{
    fixture f;
    std::optional<Flights> flights(std::in_place, f.io);
    caller c;
    flights->async_do(
        "key",
        [&](auto token) {
            return asio::async_initiate<decltype(token), void(error_code, int)>(
                [&](auto handler) {
                    flights.reset();
                    std::move(handler)(error_code(), 1);
                },
                token);
        },
        c.handler());
    f.poll();
    BOOST_TEST(c.done.aborted());
}

BOOST_AUTO_TEST_CASE(cancel_ends_all_loads)
{
    fixture f;
    ts::single_flight<std::string, int> flights(f.io);
    std::vector<caller> callers(2);
    flights.async_do("a", f.load, callers[0].handler());
    flights.async_do("b", f.load, callers[1].handler());
    f.poll();
    flights.cancel();
    f.poll();
    for (const caller& c : callers)
        BOOST_TEST(c.done.aborted());
    BOOST_TEST(flights.stats().cancelled == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_context_may_be_destroyed_first, Flights, flights_types)
{
    kit::completion done(kit::dropping::is_expected);
    std::optional<asio::io_context> io(std::in_place);
    {
        const auto load = [&]() -> asio::awaitable<int> {
            co_await asio::steady_timer(*io, std::chrono::hours(1)).async_wait(asio::use_awaitable);
            co_return 1;
        };
        Flights flights(*io);
        flights.async_do("key", load, done.handler([](auto) {}));
        io.reset();
        BOOST_TEST(done.dropped());
    }
}

// A key whose hash collides, and whose functions throw or call the object.
struct odd_key {
    int id = 0;
    std::function<void()>* hook = nullptr;
    bool operator==(const odd_key& other) const
    {
        for (auto* h : {hook, other.hook}) {
            if (h && *h)
                (*h)();
        }
        return id == other.id;
    }
};
struct odd_hash {
    std::size_t operator()(const odd_key&) const noexcept { return 1; }
};

BOOST_AUTO_TEST_CASE(keys_may_collide_throw_and_call_the_object)
{
    fixture f;
    ts::single_flight<odd_key, int, odd_hash> flights(f.io);
    std::function<void()> hook;
    std::vector<caller> callers(4);
    flights.async_do(odd_key{1, &hook}, f.load, callers[0].handler());
    flights.async_do(odd_key{2}, f.load, callers[1].handler());
    BOOST_TEST(f.load.started() == 2U);
    hook = [] { throw std::runtime_error("comparison"); };
    kit::completion unused(kit::dropping::is_expected);
    BOOST_CHECK_THROW(flights.async_do(odd_key{2}, f.load, unused.handler([](auto) {})),
                      std::runtime_error);
    bool once = true;
    hook = [&] {
        if (std::exchange(once, false))
            flights.async_do(odd_key{2}, f.load, callers[2].handler());
    };
    flights.async_do(odd_key{2}, f.load, callers[3].handler());
    BOOST_TEST(f.load.started() == 2U);
    f.load.succeed(0, 1);
    f.load.succeed(1, 2);
    f.poll();
    BOOST_TEST(*callers[0].value == 1);
    for (int i : {1, 2, 3})
        BOOST_TEST(*callers[static_cast<std::size_t>(i)].value == 2);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
