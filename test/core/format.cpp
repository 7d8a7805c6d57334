// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/format.hpp>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_CASE(an_error_formats_as_its_message)
{
    BOOST_TEST(fmt::format("{}", turnstile::errc::closed) == "the object is closed");
    BOOST_TEST(fmt::format("{:>22}", turnstile::errc::closed) == "  the object is closed");
}
