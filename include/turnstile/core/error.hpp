// SPDX-License-Identifier: BSL-1.0
// What can go wrong, other than a cancellation (asio::error::operation_aborted).
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>

#include <string_view>
#include <type_traits>

namespace turnstile::inline v0_1 {

/// Every error Turnstile itself reports. Each compares equal to the `std::errc` /
/// `boost::system::errc` condition that fits it best.
enum class errc {
    closed = 1,       ///< The object was closed; it takes no more operations.
    timed_out,        ///< The time allowed for the operation ran out.
    broken,           ///< The barrier was broken by another party.
    over_release,     ///< The release would exceed the maximum; nothing was released.
    not_locked,       ///< The mutex is not locked, so it cannot be unlocked or waited with.
    negative_count,   ///< The count would fall below its lower bound; it was left as it was.
    too_large,        ///< More was asked for than the object can ever give.
    invalid_argument, ///< An argument is out of its range; the call did nothing.
    rejected,         ///< There is no room for this operation, and its policy is not to wait.
    rate_limited,     ///< The rate limit leaves no room for this operation now.
    circuit_open,     ///< The circuit breaker is open.
    over_count,       ///< The count would rise above its upper bound; it was left as it was.
    predicate_failed, ///< The predicate that was waited for threw an exception.
    sender_gone,      ///< The sending end is gone, and has sent nothing.
    upgrade_conflict, ///< Another upgrade waits already; both would wait for each other.
    operation_failed, ///< The operation threw an exception that carries no error code.
    context_mismatch, ///< The mutex and the condition are of different execution contexts.
};

/// The category of `errc`, named "turnstile".
TURNSTILE_EXPORT const boost::system::error_category& error_category() noexcept;

/// The message of an error, as `make_error_code(code).message()` gives it.
TURNSTILE_EXPORT std::string_view to_string(errc code) noexcept;

inline error_code make_error_code(errc code) noexcept
{
    return {static_cast<int>(code), error_category()};
}

namespace detail {

// The two ways of reporting an error from a synchronous function, written once: the
// overload without an error_code& calls the one with it through this.
TURNSTILE_EXPORT void throw_if(const error_code& ec, const char* where);
// For what is known to be an error.
[[noreturn]] TURNSTILE_COLD TURNSTILE_EXPORT void throw_error(errc code, const char* where);
// For options: throws `errc::invalid_argument` with a text that names the member and its rule, if
// there is one.
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
