// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/failing_allocator.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/sync/latch.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;

template <class Threading>
using latch_of = turnstile::basic_latch<asio::any_io_executor, Threading>;

static_assert(!std::is_move_constructible_v<turnstile::latch>);

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
const auto nothing = [] {};

BOOST_AUTO_TEST_SUITE(latch)

BOOST_AUTO_TEST_CASE_TEMPLATE(opens_when_the_count_is_zero_and_stays_open, P, kit::policies)
{
    kit::drained_context io;
    latch_of<P> l(io, 3);
    std::vector<completion> waiting(3);
    for (auto& c : waiting)
        l.async_wait(c.handler(nothing));
    l.count_down();
    BOOST_TEST(!l.try_wait());
    BOOST_TEST(l.count() == 2U);
    BOOST_TEST(kit::poll_leaves_work(io));
    l.count_down(2);
    BOOST_TEST(l.try_wait());
    BOOST_TEST(!waiting[0].done(), "completed inside count_down");
    completion late;
    l.async_wait(late.handler(nothing));
    kit::run(io);
    for (auto& c : waiting)
        BOOST_TEST(c.succeeded());
    BOOST_TEST(waiting[0].before(waiting[1]));
    BOOST_TEST(waiting[1].before(waiting[2]));
    BOOST_TEST(late.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_latch_of_zero_is_open, P, kit::policies)
{
    kit::drained_context io;
    latch_of<P> l(io, 0);
    BOOST_TEST(l.try_wait());
    completion c;
    l.async_wait(c.handler(nothing));
    kit::run(io);
    BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(counting_too_far_is_an_error_and_changes_nothing, P, kit::policies)
{
    kit::drained_context io;
    latch_of<P> l(io, 2);
    error_code ec;
    for (std::uint64_t n : {std::uint64_t(3), huge}) {
        l.count_down(n, ec);
        BOOST_TEST((ec == errc::negative_count));
        BOOST_CHECK_THROW(l.count_down(n), turnstile::system_error);
        completion c;
        l.async_arrive_and_wait(n, c.handler(nothing));
        kit::run(io);
        BOOST_TEST((c.error() == errc::negative_count));
        BOOST_TEST(l.count() == 2U);
        BOOST_TEST(!l.try_wait());
    }
    l.count_down(0, ec); // no arrival is no error
    BOOST_TEST(!ec);
    BOOST_TEST(l.count() == 2U);
    l.count_down(2, ec);
    BOOST_TEST(!ec);
    l.count_down(1, ec);
    BOOST_TEST((ec == errc::negative_count));
    l.count_down(0, ec);
    BOOST_TEST(!ec);
    BOOST_TEST(l.try_wait());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_largest_count_works, P, kit::policies)
{
    asio::io_context io;
    latch_of<P> l(io, huge);
    l.count_down(huge - 1);
    BOOST_TEST(!l.try_wait());
    l.count_down();
    BOOST_TEST(l.try_wait());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(each_arrival_waits_for_the_last, P, kit::policies)
{
    kit::drained_context io;
    latch_of<P> l(io, 4);
    std::vector<completion> all(3);
    l.async_arrive_and_wait(all[0].handler(nothing));
    l.async_arrive_and_wait(2, all[1].handler(nothing));
    BOOST_TEST(l.count() == 1U);
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(!all[0].done());
    l.async_arrive_and_wait(all[2].handler(nothing));
    BOOST_TEST(l.try_wait());
    BOOST_TEST(!all[2].done(), "completed inside the initiating function");
    kit::run(io);
    for (auto& c : all)
        BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_arrival_stands_when_its_wait_is_cancelled, P, kit::policies)
{
    kit::drained_context io;
    latch_of<P> l(io, 2);
    asio::cancellation_signal signal;
    completion gives_up;
    completion waits;
    l.async_arrive_and_wait(asio::bind_cancellation_slot(signal.slot(), gives_up.handler(nothing)));
    l.async_wait(waits.handler(nothing));
    signal.emit(asio::cancellation_type::total);
    kit::poll_leaves_work(io);
    BOOST_TEST(gives_up.aborted());
    BOOST_TEST(l.count() == 1U);
    l.count_down();
    kit::run(io);
    BOOST_TEST(waits.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_last_arrival_stands_when_it_is_cancelled_after_its_grant, P,
                              kit::policies)
{
    kit::drained_context io;
    latch_of<P> l(io, 1);
    asio::cancellation_signal signal;
    completion last;
    completion waits;
    l.async_wait(waits.handler(nothing));
    l.async_arrive_and_wait(asio::bind_cancellation_slot(signal.slot(), last.handler(nothing)));
    signal.emit(asio::cancellation_type::total);
    kit::run(io);
    BOOST_TEST(last.aborted());
    BOOST_TEST(waits.succeeded());
    BOOST_TEST(l.try_wait());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_that_cannot_be_started_has_not_arrived, P, kit::policies)
{
    kit::drained_context io;
    latch_of<P> l(io, 1);
    kit::allocation_plan plan;
    plan.fail = true;
    completion lost(kit::dropping::is_expected);
    BOOST_CHECK_THROW(l.async_arrive_and_wait(asio::bind_allocator(
                          kit::failing_allocator<void*>(plan), lost.handler(nothing))),
                      std::bad_alloc);
    BOOST_TEST(l.count() == 1U);
    BOOST_TEST(!l.try_wait());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_that_opens_it_does_not_suspend, P, kit::policies)
{
    kit::drained_context io;
    int suspended = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int round = 0; round != 2; ++round) {
                latch_of<P> l(io, 3);
                l.count_down(2);
                bool posted_ran = false;
                asio::post(io, [&] { posted_ran = true; });
                co_await l.async_arrive_and_wait();
                suspended += posted_ran ? 1 : 0;
                co_await asio::post(asio::use_awaitable);
            }
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(suspended <= 1); // one, if the coop budget of the thread was used up
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_that_counts_too_far_gets_an_error, P, kit::policies)
{
    kit::drained_context io;
    latch_of<P> l(io, 1);
    error_code ec;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            std::tie(ec) = co_await l.async_arrive_and_wait(2, asio::as_tuple(asio::use_awaitable));
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST((ec == errc::negative_count));
    BOOST_TEST(l.count() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
