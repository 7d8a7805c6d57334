// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;

template <class Threading>
using semaphore_of = turnstile::basic_semaphore<asio::any_io_executor, Threading>;

static_assert(!std::is_move_constructible_v<turnstile::semaphore>);

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
const auto keep = [](auto permit) { (void)permit.detach(); };

BOOST_AUTO_TEST_SUITE(semaphore)

BOOST_AUTO_TEST_CASE_TEMPLATE(bad_construction_is_refused, P, kit::policies)
{
    asio::io_context io;
    const auto refused = [&](std::uint64_t initial, std::uint64_t maximum) {
        try {
            semaphore_of<P> s(io, initial, maximum);
        } catch (const turnstile::system_error& e) {
            return e.code() == errc::invalid_argument;
        }
        return false;
    };
    BOOST_TEST(refused(0, 0));
    BOOST_TEST(refused(2, 1));
    BOOST_TEST(refused(1, huge));
    BOOST_TEST(!refused(0, 1));
    BOOST_TEST(!refused(5, 5));
    BOOST_TEST((semaphore_of<P>(io, 3).maximum() == semaphore_of<P>::unlimited));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(try_acquire_takes_all_or_nothing, P, kit::policies)
{
    asio::io_context io;
    semaphore_of<P> s(io, 3, 3);
    BOOST_TEST(!s.try_acquire(4));
    BOOST_TEST(!s.try_acquire(0));
    BOOST_TEST(!s.try_acquire(huge));
    {
        auto two = s.try_acquire(2);
        BOOST_TEST(two.count() == 2U);
        BOOST_TEST(!s.try_acquire(2));
        BOOST_TEST(bool(s.try_acquire()));
        BOOST_TEST(s.available() == 1U);
    }
    BOOST_TEST(s.available() == 3U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(release_over_the_maximum_is_an_error, P, kit::policies)
{
    asio::io_context io;
    semaphore_of<P> s(io, 1, 3);
    error_code ec;
    for (std::uint64_t n : {std::uint64_t(3), std::uint64_t(100), huge}) {
        s.release(n, ec);
        BOOST_TEST((ec == errc::over_release));
        BOOST_TEST(s.available() == 1U);
    }
    s.release(0, ec);
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_CHECK_THROW(s.release(3), turnstile::system_error);
    s.release(2, ec);
    BOOST_TEST(!ec);
    BOOST_TEST(s.available() == 3U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(over_release_is_noticed_while_others_wait, P, kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 0, 3);
    completion big;
    s.async_acquire(3, big.handler(keep));
    s.release(2);
    error_code ec;
    s.release(4, ec);
    BOOST_TEST((ec == errc::over_release));
    BOOST_TEST(s.available() == 2U);
    s.release(1);
    kit::run(io);
    BOOST_TEST(big.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bad_amounts_are_refused_at_once, P, kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 1, 3);
    completion none;
    completion too_many;
    s.async_acquire(0, none.handler(keep));
    s.async_acquire(4, too_many.handler(keep));
    BOOST_TEST(!none.done(), "completed inside the initiating function");
    BOOST_TEST(!too_many.done(), "completed inside the initiating function");
    kit::run(io);
    BOOST_TEST((none.error() == errc::invalid_argument));
    BOOST_TEST((too_many.error() == errc::too_large));
    BOOST_TEST(s.available() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_refused_coroutine_gets_the_error, P, kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 1, 3);
    std::vector<error_code> thrown;
    const auto acquire = [&](std::uint64_t n) -> asio::awaitable<void> {
        try {
            auto permit = co_await s.async_acquire(n);
        } catch (const turnstile::system_error& e) {
            thrown.push_back(e.code());
        }
    };
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            co_await acquire(0);
            co_await acquire(4);
            s.close();
            co_await acquire(1);
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST_REQUIRE(thrown.size() == 3U);
    BOOST_TEST((thrown[0] == errc::invalid_argument));
    BOOST_TEST((thrown[1] == errc::too_large));
    BOOST_TEST((thrown[2] == errc::closed));
    BOOST_TEST(s.available() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(try_acquire_reports_whether_waiting_would_help, P, kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 1, 3);
    error_code ec;
    BOOST_TEST(!s.try_acquire(0, ec));
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_TEST(!s.try_acquire(4, ec));
    BOOST_TEST((ec == errc::too_large));
    BOOST_TEST(!s.try_acquire(2, ec));
    BOOST_TEST(!ec); // waiting would help
    {
        const auto permit = s.try_acquire(1, ec);
        BOOST_TEST(!ec);
        BOOST_TEST(permit.count() == 1U);
    }
    s.close();
    BOOST_TEST(!s.try_acquire(1, ec));
    BOOST_TEST((ec == errc::closed));
    BOOST_TEST(s.available() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_small_request_does_not_overtake_a_large_one, P, kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 0);
    completion large;
    completion small;
    s.async_acquire(3, large.handler(keep));
    s.async_acquire(1, small.handler(keep));
    s.release(2);
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(!small.done());
    s.release(2);
    kit::run(io);
    BOOST_TEST(large.before(small));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_a_large_first_waiter_grants_the_small_ones, P,
                              kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 2);
    asio::cancellation_signal signal;
    completion large;
    std::vector<completion> small(3);
    s.async_acquire(3, asio::bind_cancellation_slot(signal.slot(), large.handler(keep)));
    for (auto& c : small)
        s.async_acquire(1, c.handler(keep));
    signal.emit(asio::cancellation_type::total);
    kit::poll_leaves_work(io);
    BOOST_TEST(large.aborted());
    BOOST_TEST(small[0].succeeded());
    BOOST_TEST(small[1].succeeded());
    BOOST_TEST(!small[2].done());
    s.release();
    kit::run(io);
    BOOST_TEST(small[2].succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_large_grant_given_back_serves_several, P, kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 0);
    asio::cancellation_signal signal;
    completion large;
    std::vector<completion> small(3);
    s.async_acquire(3, asio::bind_cancellation_slot(signal.slot(), large.handler(keep)));
    for (auto& c : small)
        s.async_acquire(1, c.handler(keep));
    s.release(3);
    signal.emit(asio::cancellation_type::total); // granted, but the handler has not run
    kit::run(io);
    BOOST_TEST(large.aborted());
    for (auto& c : small)
        BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(close_ends_every_wait_and_every_later_one, P, kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 1, 4);
    std::vector<completion> waiting(3);
    for (auto& c : waiting)
        s.async_acquire(2, c.handler(keep));
    s.close();
    s.close();
    BOOST_TEST(s.is_closed());
    BOOST_TEST(!s.try_acquire());
    completion late;
    s.async_acquire(late.handler(keep));
    BOOST_TEST(!late.done(), "completed inside the initiating function");
    kit::run(io);
    for (auto& c : waiting)
        BOOST_TEST((c.error() == errc::closed));
    BOOST_TEST((late.error() == errc::closed));
    error_code ec;
    s.release(3, ec); // acquired permits can be released
    BOOST_TEST(!ec);
    s.release(1, ec);
    BOOST_TEST((ec == errc::over_release));
    BOOST_TEST(s.available() == 4U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(close_does_not_take_a_grant_back, P, kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 0);
    completion granted;
    s.async_acquire(granted.handler(keep));
    s.release();
    s.close();
    kit::run(io);
    BOOST_TEST(granted.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(growing_grants_waiters, P, kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 0, 1);
    std::vector<completion> waiting(3);
    for (auto& c : waiting)
        s.async_acquire(c.handler(keep));
    s.resize(3);
    kit::poll_leaves_work(io);
    BOOST_TEST(waiting[1].succeeded());
    BOOST_TEST(!waiting[2].done());
    BOOST_TEST(s.maximum() == 3U);
    s.release();
    kit::run(io);
    BOOST_TEST(waiting[2].succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(shrinking_withholds_released_permits, P, kit::policies)
{
    asio::io_context io;
    semaphore_of<P> s(io, 5, 5);
    auto held = s.try_acquire(4);
    s.resize(2); // four are acquired, two more than allowed
    BOOST_TEST(s.available() == 0U);
    BOOST_TEST(!s.try_acquire());
    held.split(1).release();
    held.split(1).release();
    BOOST_TEST(s.available() == 0U);
    held.split(1).release();
    BOOST_TEST(s.available() == 1U);
    held.release();
    BOOST_TEST(s.available() == 2U);
    error_code ec;
    s.release(1, ec);
    BOOST_TEST((ec == errc::over_release));
    BOOST_TEST(s.try_acquire(2).count() == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(growing_again_first_settles_withheld_permits, P, kit::policies)
{
    asio::io_context io;
    semaphore_of<P> s(io, 4, 4);
    auto held = s.try_acquire(4);
    s.resize(1);
    s.resize(3);
    BOOST_TEST(s.available() == 0U);
    s.resize(6);
    BOOST_TEST(s.available() == 2U);
    held.release();
    BOOST_TEST(s.available() == 6U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(shrinking_fails_waiters_that_need_too_much, P, kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 2, 5);
    completion too_many;
    completion fits;
    s.async_acquire(4, too_many.handler(keep));
    s.async_acquire(1, fits.handler(keep));
    s.resize(4);
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(!too_many.done());
    s.resize(3);
    kit::poll_leaves_work(io);
    BOOST_TEST((too_many.error() == errc::too_large));
    BOOST_TEST(!fits.done()); // all three permits are acquired
    s.release(1);
    kit::run(io);
    BOOST_TEST(fits.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_bad_size_is_refused, P, kit::policies)
{
    asio::io_context io;
    semaphore_of<P> s(io, 1, 2);
    error_code ec;
    s.resize(0, ec);
    BOOST_TEST((ec == errc::invalid_argument));
    s.resize(huge, ec);
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_TEST(s.maximum() == 2U);
    semaphore_of<P> without_maximum(io, 1);
    BOOST_CHECK_THROW(without_maximum.resize(5), turnstile::system_error);
    s.resize(2, ec);
    BOOST_TEST(!ec);
    BOOST_TEST(s.available() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(limits_how_many_run_at_once, P, kit::policies)
{
    kit::drained_context io;
    semaphore_of<P> s(io, 3, 3);
    int running = 0;
    int most = 0;
    const auto task = [&]() -> asio::awaitable<void> {
        auto permit = co_await s.async_acquire();
        most = std::max(most, ++running);
        for (int i = 0; i != 5; ++i)
            co_await asio::post(asio::use_awaitable);
        --running;
    };
    for (int i = 0; i != 10; ++i)
        asio::co_spawn(io, task(), asio::detached);
    kit::run(io);
    BOOST_TEST(most == 3);
    BOOST_TEST(s.available() == 3U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
