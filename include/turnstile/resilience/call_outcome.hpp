// SPDX-License-Identifier: BSL-1.0
// What the end of a call says about the service that was called.
#pragma once

#include <turnstile/core/enum_names.hpp>

#include <cstdint>

namespace turnstile::inline v0_1 {

/// Success and failure are counted; what is ignored says nothing (a cancelled call, a bad
/// request).
enum class call_outcome : unsigned char { success, failure, ignored };

template <>
inline constexpr auto detail::enum_names<call_outcome> =
    std::to_array<std::string_view>({"success", "failure", "ignored"});

/// A number of calls, and how many of them failed or were slow.
struct call_tally {
    std::uint64_t calls = 0;
    std::uint64_t failures = 0;
    std::uint64_t slow = 0;

    friend bool operator==(const call_tally&, const call_tally&) = default;
};

} // namespace turnstile::inline v0_1
