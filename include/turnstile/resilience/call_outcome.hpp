// SPDX-License-Identifier: BSL-1.0
// The outcome of a call as circuit breakers and bulkheads count it.
#pragma once

#include <turnstile/core/enum_names.hpp>

#include <cstdint>

namespace turnstile::inline v0_1 {

/// The outcome of a call, as evidence about the service that was called.
enum class call_outcome : unsigned char {
    success, ///< The service works.
    failure, ///< The service does not work.
    ignored, ///< No evidence about the service: a cancelled call, or an invalid request.
};

template <>
inline constexpr auto detail::enum_names<call_outcome> =
    std::to_array<std::string_view>({"success", "failure", "ignored"});

/// A number of calls, with the numbers of failed and of slow calls among them. A call may be both.
struct call_tally {
    std::uint64_t calls = 0;    ///< All calls, except ignored ones.
    std::uint64_t failures = 0; ///< Calls that failed.
    std::uint64_t slow = 0;     ///< Calls that took too long.

    /// Compares all members.
    friend bool operator==(const call_tally&, const call_tally&) = default;
};

} // namespace turnstile::inline v0_1
