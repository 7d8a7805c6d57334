// SPDX-License-Identifier: BSL-1.0
#include <turnstile/channel/queue.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/work/all.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using ts::async_all;
using ts::error_code;

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

asio::awaitable<int> number(int n)
{
    co_await asio::post(asio::use_awaitable);
    co_return n;
}

asio::awaitable<std::string> fails(const char* text)
{
    co_await asio::post(asio::use_awaitable);
    throw std::runtime_error(text);
}

BOOST_AUTO_TEST_SUITE(all_)

BOOST_AUTO_TEST_CASE(all_results_come_in_the_written_order)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::queue<std::string> words(io, 1);
        BOOST_TEST(words.try_push("w"));
        const auto [n, text, nothing] = co_await async_all(
            number(3), words.async_pop(asio::deferred), asio::post(io, asio::deferred));
        BOOST_TEST(n == 3);
        BOOST_TEST(text == "w");
        BOOST_TEST((nothing == std::monostate()));
    });
}

BOOST_AUTO_TEST_CASE(the_operations_run_at_the_same_time)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::event a(io);
        ts::event b(io);
        const auto first = [&]() -> asio::awaitable<void> {
            a.set();
            co_await b.async_wait(asio::use_awaitable);
        };
        const auto second = [&]() -> asio::awaitable<void> {
            co_await a.async_wait(asio::use_awaitable);
            b.set();
        };
        co_await async_all(first, second);
    });
}

BOOST_AUTO_TEST_CASE(the_first_failure_cancels_the_others_and_is_reported_alone)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::event never(io);
        BOOST_CHECK_THROW(co_await async_all(never.async_wait(asio::deferred), fails("no")),
                          std::runtime_error);
        BOOST_TEST(never.waiting() == 0u);
    });
}

BOOST_AUTO_TEST_CASE(further_failures_are_reported_with_the_first)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        ts::event never(io);
        const auto fails_while_it_ends = [&]() -> asio::awaitable<void> {
            try {
                co_await never.async_wait(asio::use_awaitable);
            } catch (const ts::system_error&) {
                throw std::runtime_error("clean-up failed");
            }
        };
        try {
            co_await async_all(fails_while_it_ends, fails("first"));
            BOOST_ERROR("no exception");
        } catch (const ts::multiple_errors& e) {
            BOOST_TEST(e.errors().size() == 2u);
            BOOST_CHECK_THROW(std::rethrow_exception(e.errors()[0]), std::runtime_error);
        }
    });
}

BOOST_AUTO_TEST_CASE(a_range_gives_a_vector_in_its_order)
{
    run([](asio::io_context&) -> asio::awaitable<void> {
        std::vector<asio::awaitable<int>> numbers;
        for (int i = 0; i != 5; ++i)
            numbers.push_back(number(i));
        const auto values = co_await async_all(std::move(numbers));
        BOOST_TEST(values == (std::vector<int>{0, 1, 2, 3, 4}), boost::test_tools::per_element());
    });
}

BOOST_AUTO_TEST_CASE(an_empty_range_is_an_error)
{
    run([](asio::io_context&) -> asio::awaitable<void> {
        std::vector<asio::awaitable<int>> none;
        auto [e, values] = co_await async_all(std::move(none), asio::as_tuple(asio::use_awaitable));
        BOOST_CHECK_EXCEPTION(std::rethrow_exception(e), ts::system_error,
                              [](const ts::system_error& error) {
                                  return error.code() == ts::errc::invalid_argument;
                              });
    });
}

BOOST_AUTO_TEST_CASE(cancelling_at_any_step_completes_once)
{
    bool completed_before = false;
    for (int k = 0; !completed_before; ++k) {
        asio::io_context io;
        ts::event a(io);
        ts::event b(io);
        asio::cancellation_signal signal;
        int calls = 0;
        async_all(io.get_executor(), a.async_wait(asio::deferred), b.async_wait(asio::deferred),
                  asio::bind_cancellation_slot(
                      signal.slot(), [&](std::exception_ptr,
                                         std::tuple<std::monostate, std::monostate>) { ++calls; }));
        asio::post(io, [&] { a.set(); });
        asio::post(io, [&] { b.set(); });
        int steps = 0;
        while (steps != k && io.poll_one() != 0)
            ++steps;
        completed_before = steps != k;
        signal.emit(asio::cancellation_type::terminal);
        io.restart();
        io.run();
        BOOST_TEST(calls == 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
