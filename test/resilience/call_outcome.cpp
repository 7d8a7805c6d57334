// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/operation.hpp>
#include <turnstile/resilience/call_outcome.hpp>
#include <turnstile/resilience/detail/admitted_call.hpp>

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>

namespace {

namespace asio = boost::asio;
using turnstile::call_outcome;
using turnstile::call_tally;
using turnstile::error_code;
using turnstile::failure;
using turnstile::detail::classify_failure;

BOOST_AUTO_TEST_SUITE(call_outcomes)

BOOST_AUTO_TEST_CASE(a_tally_starts_at_nothing)
{
    BOOST_TEST((call_tally() == call_tally{0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(tallies_are_equal_if_all_their_figures_are)
{
    BOOST_TEST((call_tally{3, 2, 1} == call_tally{3, 2, 1}));
    BOOST_TEST((call_tally{3, 2, 1} != call_tally{4, 2, 1}));
    BOOST_TEST((call_tally{3, 2, 1} != call_tally{3, 1, 1}));
    BOOST_TEST((call_tally{3, 2, 1} != call_tally{3, 2, 0}));
}

BOOST_AUTO_TEST_CASE(without_a_rule_a_cancelled_call_is_ignored)
{
    const auto usual = [](const error_code& ec) { return classify_failure(failure(ec), nullptr); };
    BOOST_TEST((usual({}) == call_outcome::success));
    BOOST_TEST((usual(asio::error::connection_refused) == call_outcome::failure));
    BOOST_TEST((usual(asio::error::operation_aborted) == call_outcome::ignored));
}

BOOST_AUTO_TEST_CASE(a_rule_is_asked_of_failures_only)
{
    int asked = 0;
    const std::function<call_outcome(const failure&)> rule = [&](const failure& f) {
        ++asked;
        return f.is_cancelled() ? call_outcome::failure : call_outcome::ignored;
    };
    const auto ruled = [&](const error_code& ec) { return classify_failure(failure(ec), rule); };
    BOOST_TEST((ruled({}) == call_outcome::success));
    BOOST_TEST(asked == 0);
    BOOST_TEST((ruled(asio::error::connection_refused) == call_outcome::ignored));
    BOOST_TEST((ruled(asio::error::operation_aborted) == call_outcome::failure));
    BOOST_TEST(asked == 2);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
