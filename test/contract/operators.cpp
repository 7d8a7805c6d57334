// Awaitable operators and parallel groups: whatever loses a race has consumed nothing.
#include "contract/subjects.hpp"
#include "kit/run.hpp"

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/test/unit_test.hpp>

namespace {

using namespace contract;
using namespace asio::experimental::awaitable_operators;

template <class S, class Coroutine>
void spawn_and_finish(asio::io_context& io, Coroutine coroutine)
{
    bool finished = false;
    asio::co_spawn(io, std::move(coroutine), [&](std::exception_ptr e) {
        finished = true;
        if (e)
            std::rethrow_exception(e);
    });
    kit::run(io);
    BOOST_TEST(finished);
}

// Waits for either; counts a success only if the result is kept to the end.
template <class S>
asio::awaitable<void> take(S& s, int& taken)
{
    auto result = co_await s.async_op(asio::as_tuple(asio::use_awaitable));
    if (!std::get<0>(result))
        ++taken;
}

BOOST_AUTO_TEST_SUITE(operators)

BOOST_AUTO_TEST_CASE_TEMPLATE(losing_to_a_timer_loses_nothing, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    spawn_and_finish<S>(io, [&]() -> asio::awaitable<void> {
        asio::steady_timer due(io, asio::steady_timer::time_point::min());
        // The timer is ready and the operation is not.
        auto first =
            co_await (s.async_op(asio::use_awaitable) || due.async_wait(asio::use_awaitable));
        BOOST_TEST(first.index() == 1U);
        BOOST_TEST(s.available() == 0U);

        // Both become ready in the same turn; whoever wins, the grant is still there, or
        // it is in the result.
        asio::post(io, [&] { s.grant(); });
        due.expires_at(asio::steady_timer::time_point::min());
        std::size_t winner = 0;
        {
            auto second =
                co_await (s.async_op(asio::use_awaitable) || due.async_wait(asio::use_awaitable));
            winner = second.index();
        }
        // A dropped lock or permit gives back; a dropped signal of a won race is used up.
        if (winner == 1)
            BOOST_TEST(s.available() == 1U, "the loser took the grant with it");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(two_ready_operations_take_exactly_one, S, subjects)
{
    kit::drained_context io;
    S a(io.get_executor());
    S b(io.get_executor());
    a.grant();
    b.grant();
    spawn_and_finish<S>(io, [&]() -> asio::awaitable<void> {
        auto result = co_await (a.async_op(asio::use_awaitable) || b.async_op(asio::use_awaitable));
        if constexpr (!S::is_broadcast) {
            auto& winner = result.index() == 0 ? a : b;
            auto& loser = result.index() == 0 ? b : a;
            BOOST_TEST(winner.available() == 0U);
            BOOST_TEST(loser.available() == 1U, "the loser took its grant with it");
        }
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(two_waiting_operations_take_exactly_one, S, subjects)
{
    kit::drained_context io;
    S a(io.get_executor());
    S b(io.get_executor());
    spawn_and_finish<S>(io, [&]() -> asio::awaitable<void> {
        asio::post(io, [&] {
            a.grant();
            b.grant();
        });
        auto result = co_await (a.async_op(asio::use_awaitable) || b.async_op(asio::use_awaitable));
        if constexpr (!S::is_broadcast) {
            auto& loser = result.index() == 0 ? b : a;
            BOOST_TEST(loser.available() == 1U, "the loser took its grant with it");
        }
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(both_of_two_complete, S, subjects)
{
    kit::drained_context io;
    S a(io.get_executor());
    S b(io.get_executor());
    b.grant();
    spawn_and_finish<S>(io, [&]() -> asio::awaitable<void> {
        asio::post(io, [&] { a.grant(); });
        int taken = 0;
        co_await (take(a, taken) && take(b, taken));
        BOOST_TEST(taken == 2);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_coroutine_consumes_nothing, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    int taken = 0;
    asio::cancellation_signal signal;
    asio::co_spawn(io, take(s, taken), asio::bind_cancellation_slot(signal.slot(), asio::detached));
    kit::poll_leaves_work(io);
    asio::post(io, [&] {
        s.grant();
        signal.emit(asio::cancellation_type::terminal); // granted and posted, but not yet run
    });
    kit::run(io);
    BOOST_TEST(taken == 0);
    BOOST_TEST(s.available() == 1U, "the grant is lost");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
