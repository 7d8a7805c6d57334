// SPDX-License-Identifier: BSL-1.0
// Every public enumeration of every layer has names.
#include <turnstile/turnstile.hpp>

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace {

using namespace turnstile;

template <class E>
void has_names(std::initializer_list<std::pair<E, std::string_view>> names)
{
    int next = 0;
    for (const auto& [value, name] : names) {
        BOOST_TEST(to_string(value) == name);
        BOOST_TEST(fmt::format("{}", value) == name);
        BOOST_TEST(fmt::format("{:>20}", value) == fmt::format("{:>20}", name));
        BOOST_TEST(static_cast<int>(value) == next++); // no enumerator is left out
    }
    BOOST_TEST(to_string(static_cast<E>(next)) == "unknown");
}

BOOST_AUTO_TEST_SUITE(enum_names)

BOOST_AUTO_TEST_CASE(the_enumerations_of_locks_and_barriers_have_names)
{
    has_names<lock_preference>({{lock_preference::fair, "fair"},
                                {lock_preference::prefer_readers, "prefer_readers"},
                                {lock_preference::prefer_writers, "prefer_writers"}});
    has_names<cancelled_party>({{cancelled_party::withdraws, "withdraws"},
                                {cancelled_party::breaks_barrier, "breaks_barrier"}});
}

BOOST_AUTO_TEST_CASE(the_enumerations_of_channels_have_names)
{
    has_names<overflow>({{overflow::wait, "wait"},
                         {overflow::drop_oldest, "drop_oldest"},
                         {overflow::drop_newest, "drop_newest"},
                         {overflow::drop_worst, "drop_worst"},
                         {overflow::reject, "reject"}});
    has_names<queue_order>({{queue_order::fifo, "fifo"}, {queue_order::lifo, "lifo"}});
    has_names<close_mode>({{close_mode::drain, "drain"}, {close_mode::discard, "discard"}});
}

BOOST_AUTO_TEST_CASE(the_enumerations_of_the_work_layer_have_names)
{
    has_names<select_order>({{select_order::written, "written"}, {select_order::random, "random"}});
    has_names<reuse_order>(
        {{reuse_order::newest_first, "newest_first"}, {reuse_order::oldest_first, "oldest_first"}});
    has_names<eviction_reason>({{eviction_reason::idle_timeout, "idle_timeout"},
                                {eviction_reason::max_lifetime, "max_lifetime"},
                                {eviction_reason::max_uses, "max_uses"},
                                {eviction_reason::check_failed, "check_failed"},
                                {eviction_reason::reset_failed, "reset_failed"},
                                {eviction_reason::discarded, "discarded"},
                                {eviction_reason::detached, "detached"},
                                {eviction_reason::requested, "requested"},
                                {eviction_reason::resized, "resized"},
                                {eviction_reason::closed, "closed"}});
    has_names<resource_pool_event_kind>(
        {{resource_pool_event_kind::created, "created"},
         {resource_pool_event_kind::create_failed, "create_failed"},
         {resource_pool_event_kind::recovered, "recovered"},
         {resource_pool_event_kind::evicted, "evicted"},
         {resource_pool_event_kind::lease_overdue, "lease_overdue"}});
}

BOOST_AUTO_TEST_CASE(the_enumerations_of_stages_have_names)
{
    has_names<circuit_state>({{circuit_state::closed, "closed"},
                              {circuit_state::open, "open"},
                              {circuit_state::half_open, "half_open"}});
    has_names<call_outcome>({{call_outcome::success, "success"},
                             {call_outcome::failure, "failure"},
                             {call_outcome::ignored, "ignored"}});
    has_names<retry_stop_reason>({{retry_stop_reason::none, "none"},
                                  {retry_stop_reason::not_retryable, "not_retryable"},
                                  {retry_stop_reason::exhausted, "exhausted"},
                                  {retry_stop_reason::out_of_time, "out_of_time"},
                                  {retry_stop_reason::over_budget, "over_budget"}});
    has_names<retry_budget_event>({{retry_budget_event::exhausted, "exhausted"},
                                   {retry_budget_event::available, "available"}});
    has_names<hedge_event::kind_type>(
        {{hedge_event::started, "started"}, {hedge_event::won, "won"}});
    has_names<shaping>({{shaping::bursty, "bursty"}, {shaping::smooth, "smooth"}});
    has_names<rate_limiter_event::kind_type>(
        {{rate_limiter_event::rejected, "rejected"},
         {rate_limiter_event::throttled, "throttled"},
         {rate_limiter_event::recovered, "recovered"},
         {rate_limiter_event::limits_changed, "limits_changed"}});
}

BOOST_AUTO_TEST_CASE(the_name_of_an_error_is_its_message)
{
    for (int value = 1; value <= static_cast<int>(errc::context_mismatch); ++value) {
        const auto code = static_cast<errc>(value);
        BOOST_TEST(to_string(code) == make_error_code(code).message());
        BOOST_TEST(fmt::format("{}", code) == make_error_code(code).message());
        BOOST_TEST(to_string(code).find("unknown") == std::string_view::npos);
    }
    BOOST_TEST(to_string(errc{}) == "unknown turnstile error");
}

BOOST_AUTO_TEST_CASE(names_are_constant_expressions)
{
    static_assert(to_string(circuit_state::half_open) == "half_open");
    static_assert(!detail::named_enum<detail::lock_mode>);
    static_assert(!detail::named_enum<int>);
    BOOST_TEST(fmt::format("{} -> {}", circuit_state::closed, circuit_state::open) ==
               "closed -> open");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
