// SPDX-License-Identifier: BSL-1.0
// Awaitable operators and parallel groups: an operation that loses a race has taken nothing.
#include "contract/subject.hpp"
#include "kit/run.hpp"

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/test/unit_test.hpp>

namespace {

using namespace contract;
using namespace asio::experimental::awaitable_operators;

void spawn_and_finish(asio::io_context& io, std::function<asio::awaitable<void>()> coroutine)
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

// Counts a success; the result is dropped at the end.
asio::awaitable<void> take(subject& s, int& taken)
{
    const auto result = co_await s.wait(by::as_tuple);
    if (!result.error())
        ++taken;
}

// Checks that the loser of a race has not taken its grant, if a grant completes one wait.
void check_loser(const kind& kind, const subject& a, const subject& b, std::size_t winner)
{
    const subject& loser = winner == 0 ? b : a;
    if (!kind.is_broadcast && kind.keeps_grants)
        BOOST_TEST(loser.available() == 1U, "the loser took its grant");
}

BOOST_AUTO_TEST_SUITE(operators)

CONTRACT(losing_to_a_timer_loses_nothing)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    spawn_and_finish(io, [&]() -> asio::awaitable<void> {
        asio::steady_timer due(io, asio::steady_timer::time_point::min());
        // The timer is ready and the operation is not.
        auto first = co_await (s->wait(by::use_awaitable) || due.async_wait(asio::use_awaitable));
        BOOST_TEST(first.index() == 1U);
        BOOST_TEST(s->available() == 0U);

        // Both become ready in the same turn. Whichever wins, the grant is still available or in
        // the result.
        asio::post(io, [&] { s->grant(); });
        due.expires_at(asio::steady_timer::time_point::min());
        std::size_t winner = 0;
        {
            auto second =
                co_await (s->wait(by::use_awaitable) || due.async_wait(asio::use_awaitable));
            winner = second.index();
        }
        // A dropped lock or permit is released; a dropped signal of a won race is used up.
        if (winner == 1 && kind.keeps_grants)
            BOOST_TEST(s->available() == 1U, "the loser took the grant");
    });
}

CONTRACT_WHERE(two_ready_operations_take_exactly_one, kind.keeps_grants)
{
    kit::drained_context io;
    auto a = kind.make(io.get_executor());
    auto b = kind.make(io.get_executor());
    a->grant();
    b->grant();
    spawn_and_finish(io, [&]() -> asio::awaitable<void> {
        auto result = co_await (a->wait(by::use_awaitable) || b->wait(by::use_awaitable));
        if (!kind.is_broadcast)
            BOOST_TEST((result.index() == 0 ? a : b)->available() == 0U);
        check_loser(kind, *a, *b, result.index());
    });
}

CONTRACT(two_waiting_operations_take_exactly_one)
{
    kit::drained_context io;
    auto a = kind.make(io.get_executor());
    auto b = kind.make(io.get_executor());
    spawn_and_finish(io, [&]() -> asio::awaitable<void> {
        asio::post(io, [&] {
            a->grant();
            b->grant();
        });
        auto result = co_await (a->wait(by::use_awaitable) || b->wait(by::use_awaitable));
        check_loser(kind, *a, *b, result.index());
    });
}

CONTRACT(both_of_two_complete)
{
    kit::drained_context io;
    auto a = kind.make(io.get_executor());
    auto b = kind.make(io.get_executor());
    if (kind.keeps_grants)
        b->grant();
    spawn_and_finish(io, [&]() -> asio::awaitable<void> {
        asio::post(io, [&] {
            a->grant();
            if (!kind.keeps_grants)
                b->grant();
        });
        int taken = 0;
        co_await (take(*a, taken) && take(*b, taken));
        BOOST_TEST(taken == 2);
    });
}

CONTRACT(a_cancelled_coroutine_takes_nothing)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    int taken = 0;
    asio::cancellation_signal signal;
    asio::co_spawn(io, take(*s, taken),
                   asio::bind_cancellation_slot(signal.slot(), asio::detached));
    kit::poll_leaves_work(io);
    asio::post(io, [&] {
        s->grant();
        signal.emit(asio::cancellation_type::terminal); // granted and posted, but not yet run
    });
    kit::run(io);
    BOOST_TEST(taken == 0);
    if (kind.keeps_grants)
        BOOST_TEST(s->available() == 1U, "the grant is lost");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
