// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/scope.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <exception>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;

BOOST_AUTO_TEST_SUITE(scope_cancellation)

BOOST_AUTO_TEST_CASE(a_later_cancellation_of_another_type_reaches_the_children)
{
    asio::io_context io;
    asio::steady_timer never(io, asio::steady_timer::time_point::max());
    const auto ends_only_if_terminal = [&]() -> asio::awaitable<void> {
        co_await never.async_wait(asio::use_awaitable); // co_spawn passes terminal only
    };
    const auto scope = [&]() -> asio::awaitable<void> {
        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
        const auto body = [&](ts::task_group<>& group) -> asio::awaitable<void> {
            group.spawn(ends_only_if_terminal);
            co_return;
        };
        co_await ts::async_scope(body);
    };
    asio::cancellation_signal signal;
    int ends = 0;
    asio::co_spawn(io, scope,
                   asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) {
                       ++ends;
                       BOOST_CHECK_THROW(std::rethrow_exception(e), ts::system_error);
                   }));
    io.poll();
    signal.emit(asio::cancellation_type::total);
    io.poll();
    BOOST_TEST(ends == 0);
    signal.emit(asio::cancellation_type::terminal);
    io.poll();
    BOOST_TEST(ends == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
