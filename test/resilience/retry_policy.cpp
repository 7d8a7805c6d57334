// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/rejection.hpp>
#include <turnstile/resilience/retry_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>

namespace {

using namespace std::chrono_literals;
using turnstile::backoff;
using turnstile::nanoseconds;
using turnstile::retry_policy;
using turnstile::retry_refusal;
using turnstile::retry_sequence;

const nanoseconds start = 1h;
const retry_policy fixed = retry_policy().backoff(backoff::constant(1s));

BOOST_AUTO_TEST_SUITE(resilience_retry_policy)

BOOST_AUTO_TEST_CASE(attempts_are_counted_from_the_first)
{
    retry_sequence s(fixed.attempts(3).settings(), start, 0);
    BOOST_TEST(s.attempt() == 1U);
    BOOST_TEST((s.failed(start, true, {}).delay == 1s));
    BOOST_TEST(s.attempt() == 2U);
    BOOST_TEST((s.failed(start, true, {}).refusal == retry_refusal::none));
    BOOST_TEST((s.failed(start, true, {}).refusal == retry_refusal::attempts));
    BOOST_TEST(s.attempt() == 3U);
}

BOOST_AUTO_TEST_CASE(one_attempt_or_none_means_no_retry)
{
    for (std::uint32_t n : {0U, 1U}) {
        retry_sequence s(fixed.attempts(n).settings(), start, 0);
        BOOST_TEST((s.failed(start, true, {}).refusal == retry_refusal::attempts));
    }
}

BOOST_AUTO_TEST_CASE(attempts_without_a_limit_go_on)
{
    retry_sequence s(fixed.unlimited_attempts().settings(), start, 0);
    for (int i = 0; i != 5000; ++i)
        BOOST_TEST_REQUIRE((s.failed(start, true, {}).refusal == retry_refusal::none));
}

BOOST_AUTO_TEST_CASE(what_is_not_retryable_is_not_retried)
{
    retry_sequence s(fixed.settings(), start, 0);
    BOOST_TEST((s.failed(start, false, {}).refusal == retry_refusal::not_retryable));
}

BOOST_AUTO_TEST_CASE(a_hint_counts_instead_of_the_delay)
{
    retry_sequence s(fixed.unlimited_attempts().settings(), start, 0);
    BOOST_TEST((s.failed(start, true, 7s).delay == 7s));
    BOOST_TEST((s.failed(start, true, 0s).delay == 0s));
    BOOST_TEST((s.failed(start, true, -1s).delay == 0s));
    BOOST_TEST((s.failed(start, true, {}).delay == 1s));
}

BOOST_AUTO_TEST_CASE(an_attempt_that_could_only_begin_too_late_is_not_waited_for)
{
    retry_sequence s(fixed.attempts(10).timeout_total(5s).settings(), start, 0);
    BOOST_TEST((s.failed(start + 4s - 1ns, true, {}).refusal == retry_refusal::none));
    BOOST_TEST((s.failed(start + 4s, true, {}).refusal == retry_refusal::deadline));
    BOOST_TEST((s.failed(start, true, nanoseconds::max()).refusal == retry_refusal::deadline));
}

BOOST_AUTO_TEST_CASE(an_attempt_may_take_its_time_or_what_is_left)
{
    retry_sequence s(fixed.timeout_each(2s).timeout_total(5s).settings(), start, 0);
    BOOST_TEST((s.limit(start) == 2s));
    BOOST_TEST((s.limit(start + 4s) == 1s));
    retry_sequence total(fixed.timeout_total(-1s).settings(), start, 0);
    BOOST_TEST((total.limit(start) == 0s));
    retry_sequence none(fixed.settings(), start, 0);
    BOOST_TEST((none.limit(start) == nanoseconds::max()));
    retry_sequence endless(fixed.timeout_total(nanoseconds::max()).settings(), start, 0);
    BOOST_TEST((endless.failed(nanoseconds::max(), true, {}).refusal == retry_refusal::none));
}

BOOST_AUTO_TEST_CASE(a_spent_budget_ends_the_retries_of_everybody)
{
    auto budget = std::make_shared<turnstile::retry_budget>(
        turnstile::retry_budget::options{.per_call = 0, .per_second = 0, .capacity = 2});
    const auto policy = fixed.unlimited_attempts().budget(budget);
    retry_sequence a(policy.settings(), start, 0);
    retry_sequence b(policy.settings(), start, 0);
    BOOST_TEST(budget->stats().deposits == 2U);
    BOOST_TEST((a.failed(start, true, {}).refusal == retry_refusal::none));
    BOOST_TEST((b.failed(start, true, {}).refusal == retry_refusal::none));
    BOOST_TEST((a.failed(start, true, {}).refusal == retry_refusal::budget));
    BOOST_TEST((b.failed(start, true, {}).refusal == retry_refusal::budget));
}

BOOST_AUTO_TEST_CASE(a_refused_retry_costs_the_budget_nothing)
{
    auto budget = std::make_shared<turnstile::retry_budget>(
        turnstile::retry_budget::options{.per_call = 0, .per_second = 0, .capacity = 2});
    retry_sequence s(fixed.attempts(2).timeout_total(10s).budget(budget).settings(), start, 0);
    BOOST_TEST((s.failed(start, false, {}).refusal == retry_refusal::not_retryable));
    BOOST_TEST((s.failed(start, true, 1h).refusal == retry_refusal::deadline));
    BOOST_TEST(budget->stats().withdrawals == 0U);
}

BOOST_AUTO_TEST_CASE(a_retry_that_is_taken_back_costs_the_budget_nothing)
{
    auto budget = std::make_shared<turnstile::retry_budget>(
        turnstile::retry_budget::options{.per_call = 0, .per_second = 0, .capacity = 1});
    retry_sequence s(fixed.budget(budget).settings(), start, 0);
    BOOST_TEST((s.failed(start, true, {}).refusal == retry_refusal::none));
    s.take_back();
    BOOST_TEST(s.attempt() == 1U);
    BOOST_TEST(budget->stats().balance == 1.0);
    BOOST_TEST(budget->stats().withdrawals == 0U);
}

BOOST_AUTO_TEST_CASE(a_rejection_says_itself_when_to_come_back)
{
    using turnstile::failure;
    const auto hint = [](const auto& exception) {
        return retry_policy().hint()(failure(std::make_exception_ptr(exception)));
    };
    BOOST_TEST((hint(turnstile::rejection(turnstile::errc::circuit_open, 3s)) == 3s));
    BOOST_TEST(!hint(turnstile::rejection(turnstile::errc::rejected, nanoseconds::max())));
    BOOST_TEST(!hint(std::runtime_error("no rejection")));
    BOOST_TEST(!retry_policy().hint()(turnstile::make_error_code(turnstile::errc::circuit_open)));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
