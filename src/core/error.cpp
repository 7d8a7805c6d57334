// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>

#include <string>
#include <string_view>

namespace turnstile::inline v0_1 {
namespace {

namespace conditions = boost::system::errc;

class category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "turnstile"; }

    std::string message(int value) const override
    {
        const std::string_view text = to_string(static_cast<errc>(value));
        const bool is_known = text != to_string(errc{});
        return is_known ? std::string(text) : std::string(text) + " " + std::to_string(value);
    }

    boost::system::error_condition default_error_condition(int value) const noexcept override
    {
        switch (static_cast<errc>(value)) {
        case errc::closed:
            return conditions::make_error_condition(conditions::broken_pipe);
        case errc::timed_out:
            return conditions::make_error_condition(conditions::timed_out);
        case errc::broken:
            return conditions::make_error_condition(conditions::state_not_recoverable);
        case errc::not_locked:
            return conditions::make_error_condition(conditions::operation_not_permitted);
        case errc::over_release:
        case errc::negative_count:
        case errc::over_count:
            return conditions::make_error_condition(conditions::result_out_of_range);
        case errc::too_large:
        case errc::invalid_argument:
        case errc::predicate_failed:
        case errc::context_mismatch:
            return conditions::make_error_condition(conditions::invalid_argument);
        case errc::rejected:
        case errc::rate_limited:
            return conditions::make_error_condition(conditions::resource_unavailable_try_again);
        case errc::circuit_open:
            return conditions::make_error_condition(conditions::connection_refused);
        case errc::operation_failed:
            return conditions::make_error_condition(conditions::io_error);
        case errc::sender_gone:
            return conditions::make_error_condition(conditions::broken_pipe);
        case errc::upgrade_conflict:
            return conditions::make_error_condition(conditions::resource_deadlock_would_occur);
        }
        return {value, *this};
    }
};

} // namespace

std::string_view to_string(errc code) noexcept
{
    switch (code) {
    case errc::closed:
        return "the object is closed";
    case errc::timed_out:
        return "the operation timed out";
    case errc::broken:
        return "the barrier is broken";
    case errc::over_release:
        return "the release would exceed the maximum";
    case errc::not_locked:
        return "the caller does not hold the lock";
    case errc::negative_count:
        return "the count would fall below its lower bound";
    case errc::too_large:
        return "the request exceeds the amount that the object can ever grant";
    case errc::invalid_argument:
        return "an argument is out of range";
    case errc::rejected:
        return "the operation was rejected because the object has no room for it";
    case errc::rate_limited:
        return "the rate limit is exceeded";
    case errc::circuit_open:
        return "the circuit breaker is open";
    case errc::over_count:
        return "the count would rise above its upper bound";
    case errc::predicate_failed:
        return "the predicate threw an exception";
    case errc::sender_gone:
        return "the sender was destroyed without sending";
    case errc::upgrade_conflict:
        return "another upgrade of the lock is already waiting";
    case errc::operation_failed:
        return "the operation threw an exception without an error code";
    case errc::context_mismatch:
        return "the mutex and the condition belong to different execution contexts";
    }
    return "unknown turnstile error";
}

const boost::system::error_category& error_category() noexcept
{
    static const category instance;
    return instance;
}

void detail::throw_if(const error_code& ec, const char* where)
{
    if (ec)
        throw system_error(ec, where);
}

void detail::throw_error(errc code, const char* where) { throw system_error(code, where); }

} // namespace turnstile::inline v0_1
