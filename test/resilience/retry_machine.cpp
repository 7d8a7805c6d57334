// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/retry_machine.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace {

using namespace std::chrono_literals;
using turnstile::backoff;
using turnstile::nanoseconds;
using turnstile::retry_machine;
using turnstile::retry_options;
using turnstile::retry_stop_reason;

const nanoseconds start = 1h;
const backoff fixed = backoff::constant(1s);

BOOST_AUTO_TEST_SUITE(resilience_retry_machine)

BOOST_AUTO_TEST_CASE(attempts_are_counted_from_the_first)
{
    retry_machine s({.max_attempts = 3, .backoff = fixed}, start, 0);
    BOOST_TEST(s.attempt() == 1U);
    BOOST_TEST((s.failed(start, true, {}).delay == 1s));
    BOOST_TEST(s.attempt() == 2U);
    BOOST_TEST((s.failed(start, true, {}).stop == retry_stop_reason::none));
    BOOST_TEST((s.failed(start, true, {}).stop == retry_stop_reason::exhausted));
    BOOST_TEST(s.attempt() == 3U);
}

BOOST_AUTO_TEST_CASE(one_attempt_means_no_retry)
{
    retry_machine s({.max_attempts = 1}, start, 0);
    BOOST_TEST((s.failed(start, true, {}).stop == retry_stop_reason::exhausted));
}

BOOST_AUTO_TEST_CASE(wrong_options_are_an_error)
{
    for (const retry_options& wrong :
         {retry_options{.max_attempts = 0}, retry_options{.attempt_timeout = -1ns},
          retry_options{.total_timeout = -1ns}})
        BOOST_CHECK_EXCEPTION(
            retry_machine(wrong, start, 0), turnstile::system_error,
            [](const auto& e) { return e.code() == turnstile::errc::invalid_argument; });
}

BOOST_AUTO_TEST_CASE(attempts_without_a_limit_go_on)
{
    retry_machine s({.max_attempts = retry_options::unlimited, .backoff = fixed}, start, 0);
    for (int i = 0; i != 5000; ++i)
        BOOST_TEST_REQUIRE((s.failed(start, true, {}).stop == retry_stop_reason::none));
}

BOOST_AUTO_TEST_CASE(what_is_not_retryable_is_not_retried)
{
    retry_machine s({.backoff = fixed}, start, 0);
    BOOST_TEST((s.failed(start, false, {}).stop == retry_stop_reason::not_retryable));
}

BOOST_AUTO_TEST_CASE(a_hint_counts_instead_of_the_delay)
{
    retry_machine s({.max_attempts = retry_options::unlimited, .backoff = fixed}, start, 0);
    BOOST_TEST((s.failed(start, true, 7s).delay == 7s));
    BOOST_TEST((s.failed(start, true, 0s).delay == 0s));
    BOOST_TEST((s.failed(start, true, -1s).delay == 0s));
    BOOST_TEST((s.failed(start, true, {}).delay == 1s));
}

BOOST_AUTO_TEST_CASE(an_attempt_that_could_only_begin_too_late_is_not_waited_for)
{
    retry_machine s({.max_attempts = 10, .backoff = fixed, .total_timeout = 5s}, start, 0);
    BOOST_TEST((s.failed(start + 4s - 1ns, true, {}).stop == retry_stop_reason::none));
    BOOST_TEST((s.failed(start + 4s, true, {}).stop == retry_stop_reason::out_of_time));
    BOOST_TEST((s.failed(start, true, nanoseconds::max()).stop == retry_stop_reason::out_of_time));
}

BOOST_AUTO_TEST_CASE(an_attempt_may_take_its_time_or_what_is_left)
{
    retry_machine s({.attempt_timeout = 2s, .total_timeout = 5s}, start, 0);
    BOOST_TEST((s.limit(start) == 2s));
    BOOST_TEST((s.limit(start + 4s) == 1s));
    retry_machine total({.total_timeout = 0s}, start, 0);
    BOOST_TEST((total.limit(start) == 0s));
    retry_machine none({}, start, 0);
    BOOST_TEST((none.limit(start) == nanoseconds::max()));
    retry_machine endless({.total_timeout = nanoseconds::max()}, start, 0);
    BOOST_TEST((endless.failed(nanoseconds::max(), true, {}).stop == retry_stop_reason::none));
}

BOOST_AUTO_TEST_CASE(a_spent_budget_ends_the_retries_of_everybody)
{
    auto budget = std::make_shared<turnstile::retry_budget>(
        turnstile::retry_budget_options{.per_call = 0, .per_second = 0, .capacity = 2});
    const retry_options options{.max_attempts = retry_options::unlimited, .budget = budget};
    retry_machine a(options, start, 0);
    retry_machine b(options, start, 0);
    BOOST_TEST(budget->stats().deposits == 2U);
    BOOST_TEST((a.failed(start, true, {}).stop == retry_stop_reason::none));
    BOOST_TEST((b.failed(start, true, {}).stop == retry_stop_reason::none));
    BOOST_TEST((a.failed(start, true, {}).stop == retry_stop_reason::over_budget));
    BOOST_TEST((b.failed(start, true, {}).stop == retry_stop_reason::over_budget));
}

BOOST_AUTO_TEST_CASE(a_refused_retry_costs_the_budget_nothing)
{
    auto budget = std::make_shared<turnstile::retry_budget>(
        turnstile::retry_budget_options{.per_call = 0, .per_second = 0, .capacity = 2});
    retry_machine s({.max_attempts = 2, .total_timeout = 10s, .budget = budget}, start, 0);
    BOOST_TEST((s.failed(start, false, {}).stop == retry_stop_reason::not_retryable));
    BOOST_TEST((s.failed(start, true, 1h).stop == retry_stop_reason::out_of_time));
    BOOST_TEST(budget->stats().withdrawals == 0U);
}

BOOST_AUTO_TEST_CASE(a_retry_that_is_taken_back_costs_the_budget_nothing)
{
    auto budget = std::make_shared<turnstile::retry_budget>(
        turnstile::retry_budget_options{.per_call = 0, .per_second = 0, .capacity = 1});
    retry_machine s({.budget = budget}, start, 0);
    BOOST_TEST((s.failed(start, true, {}).stop == retry_stop_reason::none));
    s.take_back();
    BOOST_TEST(s.attempt() == 1U);
    BOOST_TEST(budget->stats().balance == 1.0);
    BOOST_TEST(budget->stats().withdrawals == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
