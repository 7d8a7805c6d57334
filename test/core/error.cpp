// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>

#include <boost/test/unit_test.hpp>

#include <set>
#include <string>
#include <system_error>

namespace {

using turnstile::errc;
using turnstile::error_code;

constexpr errc all_errors[] = {
    errc::closed,           errc::timed_out,      errc::broken,           errc::over_release,
    errc::not_locked,       errc::negative_count, errc::too_large,        errc::invalid_argument,
    errc::rejected,         errc::rate_limited,   errc::circuit_open,     errc::over_count,
    errc::predicate_failed, errc::sender_gone,    errc::upgrade_conflict, errc::operation_failed,
    errc::context_mismatch,
};

BOOST_AUTO_TEST_SUITE(error)

BOOST_AUTO_TEST_CASE(every_error_has_a_message_of_its_own)
{
    std::set<std::string> messages;
    for (errc code : all_errors) {
        const std::string message = turnstile::make_error_code(code).message();
        BOOST_TEST(message.find("unknown") == std::string::npos);
        messages.insert(message);
    }
    BOOST_TEST(messages.size() == std::size(all_errors));
    BOOST_TEST(error_code(999, turnstile::error_category()).message() ==
               "unknown turnstile error 999");
}

BOOST_AUTO_TEST_CASE(every_error_is_true)
{
    for (errc code : all_errors)
        BOOST_TEST(bool(error_code(code)));
    BOOST_TEST(std::string(turnstile::error_category().name()) == "turnstile");
}

BOOST_AUTO_TEST_CASE(errors_compare_equal_to_the_matching_conditions)
{
    const auto same = [](errc code, std::errc condition) {
        return error_code(code) == boost::system::errc::make_error_condition(
                                       static_cast<boost::system::errc::errc_t>(condition)) &&
               std::error_code(error_code(code)) == condition;
    };
    BOOST_TEST(same(errc::closed, std::errc::broken_pipe));
    BOOST_TEST(same(errc::timed_out, std::errc::timed_out));
    BOOST_TEST(same(errc::broken, std::errc::state_not_recoverable));
    BOOST_TEST(same(errc::over_release, std::errc::result_out_of_range));
    BOOST_TEST(same(errc::not_locked, std::errc::operation_not_permitted));
    BOOST_TEST(same(errc::negative_count, std::errc::result_out_of_range));
    BOOST_TEST(same(errc::too_large, std::errc::invalid_argument));
    BOOST_TEST(same(errc::invalid_argument, std::errc::invalid_argument));
    BOOST_TEST(same(errc::rejected, std::errc::resource_unavailable_try_again));
    BOOST_TEST(same(errc::rate_limited, std::errc::resource_unavailable_try_again));
    BOOST_TEST(same(errc::circuit_open, std::errc::connection_refused));
    BOOST_TEST(same(errc::over_count, std::errc::result_out_of_range));
    BOOST_TEST(same(errc::sender_gone, std::errc::broken_pipe));
    BOOST_TEST(same(errc::upgrade_conflict, std::errc::resource_deadlock_would_occur));
    BOOST_TEST(same(errc::predicate_failed, std::errc::invalid_argument));
    BOOST_TEST(same(errc::operation_failed, std::errc::io_error));
    BOOST_TEST(same(errc::context_mismatch, std::errc::invalid_argument));
    BOOST_TEST(!same(errc::closed, std::errc::timed_out));
}

BOOST_AUTO_TEST_CASE(throw_if_throws_the_error_with_its_location)
{
    turnstile::detail::throw_if(error_code(), "nowhere");
    BOOST_CHECK_EXCEPTION(turnstile::detail::throw_if(errc::closed, "somewhere"),
                          turnstile::system_error, [](const auto& e) {
                              return e.code() == errc::closed &&
                                     std::string(e.what()).find("somewhere") == 0;
                          });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
