// SPDX-License-Identifier: BSL-1.0
#include <turnstile/channel/queue.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/semaphore.hpp>
#include <turnstile/work/select.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using namespace std::chrono_literals;
using ts::async_select;
using ts::error_code;

// Runs a coroutine on a fresh io_context until it has ended.
template <class Body>
void run(Body body)
{
    asio::io_context io;
    bool ended = false;
    asio::co_spawn(io, body(io), [&](std::exception_ptr e) {
        ended = true;
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
    BOOST_TEST(ended);
}

asio::awaitable<int> fails(const char* text)
{
    co_await asio::post(asio::use_awaitable);
    throw std::runtime_error(text);
}

asio::awaitable<std::string> word()
{
    co_await asio::post(asio::use_awaitable);
    co_return "word";
}

BOOST_AUTO_TEST_SUITE(select_)

BOOST_AUTO_TEST_CASE(the_first_operation_to_succeed_wins_and_the_others_have_taken_nothing)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::queue<int> numbers(io, 4);
        ts::queue<std::string> words(io, 4);
        BOOST_TEST(words.try_push("hello"));
        const auto first = co_await async_select(numbers.async_pop(asio::deferred),
                                                 words.async_pop(asio::deferred));
        BOOST_TEST(first.index() == 1u);
        BOOST_TEST(std::get<1>(first) == "hello");
        BOOST_TEST(numbers.waiting() == 0u);
        BOOST_TEST(numbers.try_push(7));
        BOOST_TEST(numbers.size() == 1u);
    });
}

BOOST_AUTO_TEST_CASE(of_two_ready_queues_exactly_one_item_is_taken)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::queue<int> a(io, 2);
        ts::queue<int> b(io, 2);
        for (int i = 0; i != 100'000; ++i) {
            while (a.size() < 2)
                static_cast<void>(a.try_push(i));
            while (b.size() < 2)
                static_cast<void>(b.try_push(i));
            const auto first =
                co_await async_select(a.async_pop(asio::deferred), b.async_pop(asio::deferred));
            if (first.index() != 0 || a.size() != 1 || b.size() != 2)
                BOOST_FAIL("an item was lost in round " << i);
        }
    });
}

// The completion of the event occupies the strand of the race when those of the queues run.
BOOST_AUTO_TEST_CASE(local_queues_lose_nothing_while_the_strand_of_the_race_is_busy)
{
    asio::io_context io;
    ts::local::queue<int> a(io, 1);
    ts::local::queue<int> b(io, 1);
    ts::event set(io);
    std::size_t calls = 0;
    std::size_t popped = 0;
    async_select(io.get_executor(), set.async_wait(asio::deferred), a.async_pop(asio::deferred),
                 b.async_pop(asio::deferred), [&](std::exception_ptr e, auto first) {
                     ++calls;
                     popped = !e && first.index() != 0 ? 1 : 0;
                 });
    io.poll();
    asio::post(io, [&] {
        BOOST_TEST(a.try_push(1));
        BOOST_TEST(b.try_push(1));
    });
    asio::post(io, [&] { set.set(); });
    io.restart();
    io.run();
    BOOST_TEST(calls == 1U);
    BOOST_TEST(a.size() + b.size() + popped == 2U);
}

BOOST_AUTO_TEST_CASE(in_random_order_each_ready_operation_wins_sometimes)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::event set(io);
        set.set();
        std::vector<int> wins(3);
        for (int i = 0; i != 600; ++i) {
            const auto first = co_await async_select(
                ts::select_order::random, set.async_wait(asio::deferred),
                set.async_wait(asio::deferred), set.async_wait(asio::deferred));
            ++wins[first.index()];
        }
        for (const int n : wins)
            BOOST_TEST(n > 100); // 200 are expected
    });
}

BOOST_AUTO_TEST_CASE(functions_awaitables_and_token_operations_mix)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::event never(io);
        const auto by_function = co_await async_select(never.async_wait(asio::deferred), word);
        BOOST_TEST(std::get<1>(by_function) == "word");
        const auto by_value = co_await async_select(word(), never.async_wait(asio::deferred));
        BOOST_TEST(std::get<0>(by_value) == "word");
        asio::steady_timer timer(io, 1us);
        const auto by_lambda =
            co_await async_select(never.async_wait(asio::deferred),
                                  [&](auto token) { return timer.async_wait(std::move(token)); });
        BOOST_TEST(by_lambda.index() == 1u);
        BOOST_TEST((std::get<1>(by_lambda) == std::monostate()));
    });
}

BOOST_AUTO_TEST_CASE(an_operation_that_fails_does_not_end_the_call)
{
    run([](asio::io_context&) -> asio::awaitable<void> {
        const auto first = co_await async_select(fails("no"), word());
        BOOST_TEST(first.index() == 1u);
    });
}

BOOST_AUTO_TEST_CASE(if_all_fail_all_errors_are_reported)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::queue<int> closed(io, 1);
        closed.close();
        try {
            co_await async_select(closed.async_pop(asio::deferred), fails("second"));
            BOOST_ERROR("no exception");
        } catch (const ts::multiple_errors& e) {
            BOOST_TEST(e.errors().size() == 2u);
            BOOST_TEST((e.code() == ts::errc::closed));
        }
        BOOST_CHECK_THROW(co_await async_select(fails("alone")), std::runtime_error);
    });
}

BOOST_AUTO_TEST_CASE(an_initiating_function_that_throws_is_a_failure_of_its_operation)
{
    run([](asio::io_context&) -> asio::awaitable<void> {
        const auto throwing = [](auto token) {
            return asio::async_initiate<decltype(token), void(error_code)>(
                [](auto) { throw std::logic_error("not started"); }, token);
        };
        const auto first = co_await async_select(throwing, word());
        BOOST_TEST(first.index() == 1u);
        BOOST_CHECK_THROW(co_await async_select(throwing), std::logic_error);
    });
}

BOOST_AUTO_TEST_CASE(after_a_winner_the_rest_is_not_started)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        bool started = false;
        // Completes inside its initiating function, which Asio does not forbid to others.
        const auto at_once = [](auto token) {
            return asio::async_initiate<decltype(token), void(error_code)>(
                [](auto handler) { std::move(handler)(error_code()); }, token);
        };
        const auto later = [&](auto token) {
            started = true;
            return asio::post(io, std::move(token));
        };
        const auto first = co_await async_select(at_once, later);
        BOOST_TEST(first.index() == 0u);
        BOOST_TEST(!started);
    });
}

BOOST_AUTO_TEST_CASE(a_loser_that_ignores_its_cancellation_is_awaited)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::event gate(io);
        bool loser_ended = false;
        const auto stubborn = [&]() -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            co_await gate.async_wait(asio::use_awaitable);
            loser_ended = true;
        };
        asio::steady_timer later(io, 1ms);
        later.async_wait([&](error_code) { gate.set(); });
        const auto first = co_await async_select(stubborn, word());
        BOOST_TEST(loser_ended);
        BOOST_TEST(first.index() == 1u);
    });
}

BOOST_AUTO_TEST_CASE(a_range_of_operations)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::queue<int> a(io, 1);
        ts::queue<int> b(io, 1);
        BOOST_TEST(b.try_push(5));
        std::vector<decltype(a.async_pop(asio::deferred))> pops;
        pops.push_back(a.async_pop(asio::deferred));
        pops.push_back(b.async_pop(asio::deferred));
        const auto first = co_await async_select(std::move(pops));
        BOOST_TEST(first.index == 1u);
        BOOST_TEST(first.value == 5);

        std::vector<asio::awaitable<std::string>> words;
        words.push_back(word());
        const auto only = co_await async_select(std::move(words));
        BOOST_TEST(only.value == "word");
    });
}

BOOST_AUTO_TEST_CASE(an_empty_range_is_an_error)
{
    run([](asio::io_context&) -> asio::awaitable<void> {
        std::vector<asio::awaitable<std::string>> none;
        try {
            co_await async_select(std::move(none));
            BOOST_ERROR("no exception");
        } catch (const ts::system_error& e) {
            BOOST_TEST((e.code() == ts::errc::invalid_argument));
            BOOST_TEST(std::string(e.what()).find("no operations") != std::string::npos);
        }
    });
}

BOOST_AUTO_TEST_CASE(every_token)
{
    asio::io_context io;
    ts::event set(io);
    set.set();
    const auto op = [&] { return set.async_wait(asio::deferred); };
    int called = 0;
    async_select(io.get_executor(), op(), [&](std::exception_ptr e, std::variant<std::monostate>) {
        BOOST_TEST(!e);
        ++called;
    });
    async_select(op(), asio::bind_executor(io, [&](std::exception_ptr,
                                                   std::variant<std::monostate>) { ++called; }));
    BOOST_TEST(called == 0); // never inside the initiating function
    auto future = async_select(io.get_executor(), op(), op(), asio::use_future);
    async_select(io.get_executor(), op(), asio::detached);
    async_select(io.get_executor(), op(), asio::deferred)([&](auto...) { ++called; });
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            auto [e, first] = co_await async_select(op(), asio::as_tuple(asio::use_awaitable));
            BOOST_TEST(!e);
            ++called;
        },
        asio::detached);
    io.run();
    BOOST_TEST(called == 4);
    BOOST_TEST(future.get().index() == 0u);
}

// Cancels after k steps, for every k.
BOOST_AUTO_TEST_CASE(cancelling_at_any_step_loses_nothing)
{
    for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                            asio::cancellation_type::total}) {
        bool completed_before = false;
        for (int k = 0; !completed_before; ++k) {
            asio::io_context io;
            ts::queue<int> a(io, 4);
            ts::queue<int> b(io, 4);
            asio::cancellation_signal signal;
            int calls = 0;
            std::size_t taken = 0;
            async_select(a.async_pop(asio::deferred), b.async_pop(asio::deferred),
                         asio::bind_executor(io, asio::bind_cancellation_slot(
                                                     signal.slot(), [&](std::exception_ptr e,
                                                                        std::variant<int, int>) {
                                                         ++calls;
                                                         taken = e ? 0 : 1;
                                                     })));
            asio::post(io, [&] { BOOST_TEST(b.try_push(2)); });
            asio::post(io, [&] { BOOST_TEST(a.try_push(1)); });
            int steps = 0;
            while (steps != k && io.poll_one() != 0)
                ++steps;
            completed_before = steps != k;
            signal.emit(type);
            io.restart();
            io.run();
            BOOST_TEST(calls == 1);
            BOOST_TEST(a.size() + b.size() + taken == 2u);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_cancelled_call_reports_operation_aborted)
{
    asio::io_context io;
    ts::event never(io);
    asio::cancellation_signal signal;
    std::exception_ptr error;
    async_select(io.get_executor(), never.async_wait(asio::deferred),
                 never.async_wait(asio::deferred),
                 asio::bind_cancellation_slot(signal.slot(),
                                              [&](std::exception_ptr e, auto&&) { error = e; }));
    io.poll();
    BOOST_TEST(!error);
    signal.emit(asio::cancellation_type::terminal);
    io.run();
    BOOST_CHECK_EXCEPTION(
        std::rethrow_exception(error), ts::system_error,
        [](const ts::system_error& e) { return e.code() == asio::error::operation_aborted; });
    BOOST_TEST(never.waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(a_permit_that_a_loser_holds_is_given_back)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::semaphore permits(io, 2);
        {
            const auto first = co_await async_select(permits.async_acquire(asio::deferred),
                                                     permits.async_acquire(asio::deferred));
            BOOST_TEST(first.index() == 0u);
            BOOST_TEST(permits.available() == 1u);
        }
        BOOST_TEST(permits.available() == 2u);
    });
}

BOOST_AUTO_TEST_CASE(a_context_that_is_destroyed_destroys_the_handler)
{
    const auto owned = std::make_shared<int>(0);
    for (const bool started : {false, true}) {
        std::optional<asio::io_context> io(std::in_place);
        auto never = std::make_unique<ts::event>(*io);
        async_select(
            io->get_executor(), never->async_wait(asio::deferred),
            asio::co_spawn(
                io->get_executor(),
                [&]() -> asio::awaitable<void> { co_await never->async_wait(asio::use_awaitable); },
                asio::deferred),
            [owned](std::exception_ptr, auto&&) { BOOST_ERROR("called"); });
        if (started)
            io->poll();
        io.reset();
        BOOST_TEST(owned.use_count() == 1);
    }
}

BOOST_AUTO_TEST_CASE(the_handler_is_called_on_its_strand)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        const auto strand = asio::make_strand(io);
        ts::queue<int> a(io, 1);
        BOOST_TEST(a.try_push(1));
        const auto on_a_strand = [&]() -> asio::awaitable<int> {
            const auto first = co_await async_select(a.async_pop(asio::deferred), word());
            BOOST_TEST(strand.running_in_this_thread());
            co_return std::get<0>(first);
        };
        BOOST_TEST(co_await asio::co_spawn(strand, on_a_strand, asio::use_awaitable) == 1);
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
