// SPDX-License-Identifier: BSL-1.0
// The errors that Turnstile itself reports, as an error code enumeration with its own category. A
// cancelled operation is not among them: it completes with asio::error::operation_aborted.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>

#include <string_view>
#include <type_traits>

namespace turnstile::inline v0_1 {

/// The errors that Turnstile reports. Each one compares equal to the condition of `std::errc` and
/// `boost::system::errc` that fits it best. A call that an object refuses leaves the state of the
/// object unchanged.
enum class errc {
    closed = 1,       ///< The object is closed, and accepts no further operation.
    timed_out,        ///< The operation did not complete within its time limit.
    broken,           ///< The barrier is broken.
    over_release,     ///< The release would exceed the maximum of the semaphore.
    not_locked,       ///< The caller does not hold the lock that the call needs.
    negative_count,   ///< The count would fall below its lower bound.
    too_large,        ///< The request exceeds the amount that the object can ever grant.
    invalid_argument, ///< An argument or an option is out of range.
    rejected,         ///< The object has no room for the operation, which may not wait.
    rate_limited,     ///< The rate limiter cannot grant the request in time.
    circuit_open,     ///< The circuit breaker is open, and does not start the operation.
    over_count,       ///< The count would rise above its upper bound.
    predicate_failed, ///< The predicate of the wait threw an exception.
    sender_gone,      ///< The sender was destroyed without sending.
    upgrade_conflict, ///< Another upgrade is waiting; the two would wait for each other forever.
    operation_failed, ///< The operation threw an exception that carries no error code.
    context_mismatch, ///< The mutex and the condition belong to different execution contexts.
};

/// Returns the category of `errc`. Its name is "turnstile".
TURNSTILE_EXPORT const boost::system::error_category& error_category() noexcept;

/// Returns the message of an error, the same as `make_error_code(code).message()`.
TURNSTILE_EXPORT std::string_view to_string(errc code) noexcept;

/// Makes an error code in the category of `errc`; Boost.System finds it when an `errc` is
/// converted.
inline error_code make_error_code(errc code) noexcept
{
    return {static_cast<int>(code), error_category()};
}

namespace detail {

// Throws system_error if `ec` is set. The throwing form of a synchronous function calls the form
// with an error_code&, and passes the result to this function.
TURNSTILE_EXPORT void throw_if(const error_code& ec, const char* where);
// Throws system_error with `code`.
[[noreturn]] TURNSTILE_COLD TURNSTILE_EXPORT void throw_error(errc code, const char* where);
// Reports the result of a check of options: `rule` is null, or a text that names the member and its
// rule, which is thrown with errc::invalid_argument.
inline void throw_if_wrong(const char* rule)
{
    if (rule)
        throw_error(errc::invalid_argument, rule);
}

} // namespace detail
} // namespace turnstile::inline v0_1

template <>
struct boost::system::is_error_code_enum<turnstile::errc> : std::true_type {
};
template <>
struct std::is_error_code_enum<turnstile::errc> : std::true_type {
};
