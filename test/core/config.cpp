// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/config.hpp>
#include <turnstile/version.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_CASE(the_version_is_one_number_in_all_its_forms)
{
    BOOST_TEST(std::string(TURNSTILE_VERSION_STRING) ==
               std::to_string(TURNSTILE_VERSION_MAJOR) + "." +
                   std::to_string(TURNSTILE_VERSION_MINOR) + "." +
                   std::to_string(TURNSTILE_VERSION_PATCH));
}

BOOST_AUTO_TEST_CASE(features_follow_the_version_of_boost)
{
    BOOST_TEST(TURNSTILE_HAS_IMMEDIATE_EXECUTOR == (BOOST_VERSION >= 108200 ? 1 : 0));
}
