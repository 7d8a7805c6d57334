// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/retry_budget.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using turnstile::nanoseconds;
using turnstile::retry_budget;
using turnstile::retry_budget_options;

// Withdraws until a withdrawal is refused.
int drain(retry_budget& b, nanoseconds now)
{
    int n = 0;
    while (b.withdraw(now))
        ++n;
    return n;
}

BOOST_AUTO_TEST_SUITE(resilience_retry_budget)

BOOST_AUTO_TEST_CASE(a_full_budget_gives_its_capacity_and_then_nothing)
{
    retry_budget b({.per_call = 0, .per_second = 0, .capacity = 3});
    BOOST_TEST(drain(b, 1s) == 3);
    BOOST_TEST(drain(b, 1h) == 0);
    BOOST_TEST(b.stats().withdrawals == 3U);
    BOOST_TEST(b.stats().refusals == 2U);
    BOOST_TEST(b.stats().balance == 0.0);
}

BOOST_AUTO_TEST_CASE(each_call_adds_its_part)
{
    retry_budget b({.per_call = 0.2, .per_second = 0, .capacity = 10});
    drain(b, 0s);
    for (int i = 0; i != 4; ++i)
        b.deposit(0s);
    BOOST_TEST(!b.withdraw(0s));
    b.deposit(0s);
    BOOST_TEST(b.withdraw(0s));
    BOOST_TEST(!b.withdraw(0s));
    BOOST_TEST(b.stats().deposits == 5U);
}

BOOST_AUTO_TEST_CASE(a_token_that_was_not_needed_goes_back)
{
    retry_budget b({.per_call = 0, .per_second = 0, .capacity = 1});
    std::vector<turnstile::retry_budget_event> told;
    b.add_listener([&](const turnstile::retry_budget_event& e) { told.push_back(e); });
    BOOST_TEST(drain(b, 0s) == 1);
    b.refund();
    BOOST_TEST(b.stats().withdrawals == 0U);
    BOOST_TEST(told.size() == 2U);
    BOOST_TEST((told.back() == turnstile::retry_budget_event::available));
    BOOST_TEST(b.withdraw(0s));
}

// In steps that are less than a millionth of a token, or not a whole number of them.
BOOST_AUTO_TEST_CASE(time_adds_and_nothing_is_rounded_away)
{
    struct pace {
        double per_second;
        nanoseconds step;
        int steps;
        int tokens;
    };
    for (const pace& p :
         {pace{3, 10ms, 1000, 30}, pace{1, 600ns, 5'000'000, 3}, pace{7, 333ns, 3'003'004, 7}}) {
        retry_budget b({.per_call = 0, .per_second = p.per_second, .capacity = 100});
        nanoseconds now = 1s;
        drain(b, now);
        int retries = 0;
        for (int i = 0; i != p.steps; ++i) {
            now += p.step;
            retries += b.withdraw(now) ? 1 : 0;
        }
        BOOST_TEST(retries == p.tokens);
    }
}

BOOST_AUTO_TEST_CASE(it_never_holds_more_than_its_capacity)
{
    retry_budget b({.per_call = 5, .per_second = 100, .capacity = 2});
    for (int i = 0; i != 10; ++i)
        b.deposit(0s);
    BOOST_TEST(drain(b, 0s) == 2);
    BOOST_TEST(drain(b, nanoseconds::max()) == 2);
}

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back_adds_nothing)
{
    retry_budget b({.per_call = 0, .per_second = 1, .capacity = 5});
    drain(b, 100s);
    BOOST_TEST(drain(b, 50s) == 0);
    BOOST_TEST(drain(b, 100s) == 0);
    BOOST_TEST(drain(b, 101s) == 1);
}

BOOST_AUTO_TEST_CASE(senseless_figures_are_refused)
{
    const auto is_invalid = [](const turnstile::system_error& e) {
        return e.code() == turnstile::errc::invalid_argument;
    };
    BOOST_CHECK_EXCEPTION(retry_budget b({0, 0, 0.5}), turnstile::system_error, [](const auto& e) {
        return std::string(e.what()).find("retry_budget: capacity must be 1 or more") == 0;
    });
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const retry_budget_options& o :
         {retry_budget_options{-1, 0, 1}, retry_budget_options{0, -1, 1},
          retry_budget_options{0, 0, 0.5}, retry_budget_options{nan, 0, 1}})
        BOOST_CHECK_EXCEPTION(retry_budget b(o), turnstile::system_error, is_invalid);
    retry_budget huge({1e300, 1e300, 1e300});
    huge.deposit(0s);
    BOOST_TEST(huge.withdraw(1s));
}

BOOST_AUTO_TEST_CASE(listeners_are_told_when_it_is_exhausted_and_when_it_is_not)
{
    turnstile::retry_budget budget({.per_call = 0.5, .per_second = 0, .capacity = 1});
    std::vector<turnstile::retry_budget_event> told;
    const turnstile::listener_id id =
        budget.add_listener([&](const turnstile::retry_budget_event& e) {
            told.push_back(e);
            (void)budget.stats(); // would deadlock under the lock
        });
    BOOST_TEST(budget.withdraw(0s));
    BOOST_TEST(told.empty());
    BOOST_TEST(!budget.withdraw(0s));
    BOOST_TEST(!budget.withdraw(0s)); // no event
    BOOST_TEST_REQUIRE(told.size() == 1U);
    BOOST_TEST((told.back() == turnstile::retry_budget_event::exhausted));
    budget.deposit(0s);
    BOOST_TEST(told.size() == 1U); // half a token
    budget.deposit(0s);
    BOOST_TEST_REQUIRE(told.size() == 2U);
    BOOST_TEST((told.back() == turnstile::retry_budget_event::available));
    BOOST_TEST(budget.remove_listener(id));
    BOOST_TEST(budget.withdraw(0s));
    BOOST_TEST(!budget.withdraw(0s));
    BOOST_TEST(told.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_listener_may_destroy_the_budget)
{
    using turnstile::retry_budget_event;
    const retry_budget_options options{.per_call = 1, .per_second = 0, .capacity = 1};
    for (const int step : {0, 1, 2}) {
        auto budget = std::make_unique<retry_budget>(options);
        BOOST_TEST(budget->withdraw(0s));
        if (step != 0)
            BOOST_TEST(!budget->withdraw(0s));
        budget->add_listener([&](const retry_budget_event&) { budget.reset(); });
        budget->add_listener([](const retry_budget_event&) {
            BOOST_ERROR("called after the budget was destroyed");
        });
        if (step == 0)
            BOOST_TEST(!budget->withdraw(0s));
        else if (step == 1)
            budget->deposit(0s);
        else
            budget->refund();
        BOOST_TEST(!budget);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
