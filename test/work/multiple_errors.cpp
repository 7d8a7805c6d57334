// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/work/multiple_errors.hpp>

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>

namespace asio = boost::asio;
namespace ts = turnstile;

BOOST_AUTO_TEST_SUITE(multiple_errors_)

BOOST_AUTO_TEST_CASE(the_code_is_that_of_the_first_error_and_the_text_has_all)
{
    const ts::multiple_errors e({std::make_exception_ptr(ts::system_error(asio::error::eof)),
                                 std::make_exception_ptr(std::runtime_error("broken"))});
    BOOST_TEST((e.code() == asio::error::eof));
    BOOST_TEST(e.errors().size() == 2u);
    const std::string text = e.what();
    BOOST_TEST(text.find("2 operations failed") != std::string::npos);
    BOOST_TEST(text.find("broken") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_exception_without_a_code_is_operation_failed)
{
    const ts::multiple_errors e(
        {std::make_exception_ptr(std::runtime_error("a")), std::make_exception_ptr(7)});
    BOOST_TEST((e.code() == ts::errc::operation_failed));
}

BOOST_AUTO_TEST_CASE(a_single_error_stays_itself)
{
    BOOST_TEST(!ts::detail::combined_error({}));
    const auto one = std::make_exception_ptr(std::runtime_error("a"));
    BOOST_TEST((ts::detail::combined_error({one}) == one));
    BOOST_CHECK_THROW(std::rethrow_exception(ts::detail::combined_error({one, one})),
                      ts::multiple_errors);
}

BOOST_AUTO_TEST_SUITE_END()
