// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/serial_executor.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/work/task_group.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <optional>

namespace {

namespace asio = boost::asio;
using turnstile::detail::io_executor;
using turnstile::detail::pool_executor;
using turnstile::detail::serial_executor;
using turnstile::detail::serial_service;

// An any_io_executor stores an executor of three pointers without an allocation.
static_assert(sizeof(serial_executor<io_executor, true>) <= 3 * sizeof(void*));
static_assert(sizeof(serial_executor<pool_executor, true>) <= 3 * sizeof(void*));
static_assert(asio::execution::is_executor<serial_executor<io_executor, true>>::value);

template <class Executor>
void a_tracked_executor_keeps_the_context_running(asio::io_context& io, const Executor& serial)
{
    std::optional work(asio::prefer(serial, asio::execution::outstanding_work.tracked));
    std::optional copy(*work);
    work.reset();
    io.restart();
    io.poll();
    BOOST_TEST(!io.stopped());
    copy.reset();
    io.restart();
    io.poll();
    BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_SUITE(serial_executor_work)

BOOST_AUTO_TEST_CASE(it_tracks_outstanding_work_on_request)
{
    asio::io_context io;
    auto& service = asio::use_service<serial_service>(io);
    const serial_executor<io_executor> serial(service.take(io.get_executor()));
    a_tracked_executor_keeps_the_context_running(io, serial);
    a_tracked_executor_keeps_the_context_running(io, asio::any_io_executor(serial));
    const auto tracked = asio::require(serial, asio::execution::outstanding_work.tracked);
    BOOST_TEST((asio::query(tracked, asio::execution::outstanding_work) ==
                asio::execution::outstanding_work.tracked));
    BOOST_TEST((asio::require(tracked, asio::execution::outstanding_work.untracked) == serial));
}

BOOST_AUTO_TEST_CASE(a_wait_on_the_executor_of_an_ended_child_keeps_the_context_running)
{
    asio::io_context io;
    asio::io_context other;
    turnstile::task_group<> group(io);
    turnstile::event set(other);
    bool ended = false;
    const auto waits = [&]() -> asio::awaitable<void> {
        co_await set.async_wait();
        ended = true;
    };
    group.spawn([&]() -> asio::awaitable<void> {
        asio::co_spawn(co_await asio::this_coro::executor, waits, asio::detached);
    });
    io.poll();
    BOOST_TEST(group.stats().succeeded == 1u);
    BOOST_TEST(!io.stopped());
    set.set();
    other.poll();
    io.run();
    BOOST_TEST(ended);
}

BOOST_AUTO_TEST_CASE(an_object_on_the_executor_of_an_ended_child_keeps_the_context_running)
{
    asio::io_context io;
    turnstile::task_group<> group(io);
    std::optional<turnstile::event> set;
    group.spawn(
        [&]() -> asio::awaitable<void> { set.emplace(co_await asio::this_coro::executor); });
    io.poll();
    bool ended = false;
    set->async_wait([&](turnstile::error_code) { ended = true; });
    io.restart();
    io.poll();
    BOOST_TEST(!io.stopped());
    set->set();
    io.run();
    BOOST_TEST(ended);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
