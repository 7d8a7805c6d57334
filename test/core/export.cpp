// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_CASE(an_exported_object_has_one_address_in_library_and_program)
{
    BOOST_TEST(&turnstile::error_category() == &turnstile::make_error_code({}).category());
}
