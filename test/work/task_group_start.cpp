// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/task_group.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <stdexcept>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;

BOOST_AUTO_TEST_SUITE(task_group_start)

BOOST_AUTO_TEST_CASE(an_initiating_function_that_throws_outside_the_context_does_not_stop_it)
{
    asio::io_context io;
    ts::task_group<> group(io, {.policy = ts::join_policy::wait_all});
    group.spawn([](auto token) {
        const auto initiation = [](auto&&) { throw std::runtime_error("not started"); };
        return asio::async_initiate<decltype(token), void(ts::error_code)>(initiation, token);
    });
    bool ran = false;
    group.spawn([&]() -> asio::awaitable<void> {
        ran = true;
        co_return;
    });
    io.run();
    BOOST_TEST(ran);
    BOOST_TEST(group.stats().failed == 1u);
    BOOST_TEST(group.stats().succeeded == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
