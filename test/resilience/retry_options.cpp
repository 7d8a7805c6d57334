// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/detail/retry_rules.hpp>
#include <turnstile/resilience/rejection.hpp>
#include <turnstile/resilience/retry_options.hpp>

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <stdexcept>
#include <tuple>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::errc;
using turnstile::error_code;
using turnstile::failure;
using turnstile::nanoseconds;
using turnstile::retry_options;
using turnstile::detail::advise;

const error_code refused = asio::error::connection_refused;

template <class Options>
auto advice(const Options& options, error_code ec, int status = 0)
{
    return advise(options, failure(ec), std::tuple(ec, status));
}

BOOST_AUTO_TEST_SUITE(resilience_retry_options)

BOOST_AUTO_TEST_CASE(by_default_failures_are_retried_and_programming_errors_are_not)
{
    BOOST_TEST(advice(retry_options(), refused).retryable);
    BOOST_TEST(!advice(retry_options(), {}).retryable);
    BOOST_TEST(!advice(retry_options(), errc::invalid_argument).retryable);
    BOOST_TEST(!advice(retry_options(), errc::circuit_open).retryable);
}

BOOST_AUTO_TEST_CASE(by_default_a_rejection_carries_the_delay)
{
    const auto delay = [](const auto& exception) {
        return turnstile::detail::delay_of_rejection(std::make_exception_ptr(exception));
    };
    BOOST_TEST((delay(turnstile::rejection(errc::circuit_open, 3s)) == 3s));
    BOOST_TEST(!delay(turnstile::rejection(errc::rejected, nanoseconds::max())));
    BOOST_TEST(!delay(std::runtime_error("no rejection")));
    BOOST_TEST(!turnstile::detail::delay_of_rejection(error_code(errc::circuit_open)));
}

BOOST_AUTO_TEST_CASE(a_refusal_is_retried_if_its_delay_is_known)
{
    const retry_options options{.retry_after = [](const failure&) { return 2s; }};
    BOOST_TEST(advice(options, errc::circuit_open).retryable);
    BOOST_TEST((advice(options, errc::circuit_open).delay == 2s));
}

BOOST_AUTO_TEST_CASE(a_rule_replaces_the_default_rules)
{
    const retry_options options{.retry_if = [](const failure& f) { return f.code() != refused; }};
    BOOST_TEST(!advice(options, refused).retryable);
    BOOST_TEST(advice(options, errc::circuit_open).retryable);
    BOOST_TEST(!advice(options, {}).retryable); // no failure
}

BOOST_AUTO_TEST_CASE(a_rule_on_results_may_retry_a_success)
{
    const auto options =
        turnstile::retry_on_results({}, [](error_code, int status) { return status >= 500; });
    BOOST_TEST(advice(options, {}, 503).retryable);
    BOOST_TEST(!advice(options, {}, 503).delay);
    BOOST_TEST(!advice(options, refused).retryable);
}

BOOST_AUTO_TEST_CASE(a_generic_rule_on_results_receives_the_results)
{
    std::size_t received = 0;
    const auto options = turnstile::retry_on_results({}, [&](const auto&... results) {
        received = sizeof...(results);
        return false;
    });
    BOOST_TEST(!advice(options, refused).retryable);
    BOOST_TEST(received == 2U); // the error code and the status

    const auto by_code =
        turnstile::retry_on_results({}, [](const auto& ec) { return ec.value() != 0; });
    BOOST_TEST(advise(by_code, failure(refused), std::tuple(refused)).retryable);
}

BOOST_AUTO_TEST_CASE(a_rule_of_either_kind_may_be_combined_with_one_on_results)
{
    const auto options = turnstile::retry_on_results(
        {}, [](const failure&) { return true; },
        [](error_code, int status) { return status == 429 ? std::optional(30s) : std::nullopt; });
    BOOST_TEST((advice(options, {}, 429).delay == 30s));
    BOOST_TEST(!advice(options, {}, 503).delay);
    BOOST_TEST(advice(options, refused).retryable);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
