// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/rejection.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <exception>

namespace {

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(rejection)

BOOST_AUTO_TEST_CASE(a_rejection_is_a_system_error_that_knows_when_to_try_again)
{
    const auto thrown =
        std::make_exception_ptr(turnstile::rejection(turnstile::errc::circuit_open, 5ms));
    try {
        std::rethrow_exception(thrown);
    } catch (const turnstile::system_error& e) {
        BOOST_TEST((e.code() == turnstile::errc::circuit_open));
        const auto* as_rejection = dynamic_cast<const turnstile::rejection*>(&e);
        BOOST_TEST_REQUIRE(as_rejection);
        BOOST_TEST((as_rejection->retry_after() == 5ms));
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
