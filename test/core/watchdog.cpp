// SPDX-License-Identifier: BSL-1.0
// Disabled: test.core.watchdog runs this case to check that the watchdog ends it.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

namespace {

namespace asio = boost::asio;

BOOST_AUTO_TEST_SUITE(watchdog, *boost::unit_test::disabled())

BOOST_AUTO_TEST_CASE(a_case_that_hangs)
{
    asio::io_context io;
    const auto work = asio::make_work_guard(io);
    io.run();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
