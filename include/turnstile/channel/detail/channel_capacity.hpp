// SPDX-License-Identifier: BSL-1.0
// Checks the capacity that is passed to the constructor of a channel.
//
// The constructors of queue, priority_queue and broadcast take any integral type, so that a
// negative number reaches this check instead of becoming a huge std::size_t. A huge number is
// refused as well: it is a negative number that was converted by the caller. `unbounded` is the
// only exception, and only for queues.
#pragma once

#include <turnstile/core/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace turnstile::inline v0_1::detail {

// Whether n is a number of items that a channel can hold.
template <std::integral Count>
constexpr bool is_capacity(Count n) noexcept
{
    if constexpr (std::is_signed_v<Count>) {
        if (n < 0)
            return false;
    }
    return static_cast<std::uintmax_t>(n) <= static_cast<std::uintmax_t>(PTRDIFF_MAX);
}

// Returns the capacity as a std::size_t. Throws `errc::invalid_argument` with the text `rule`,
// which names the channel and the argument, if n is not valid.
template <std::integral Count>
std::size_t checked_capacity(Count n, bool is_valid, const char* rule)
{
    throw_if_wrong(is_valid ? nullptr : rule);
    return static_cast<std::size_t>(n);
}

} // namespace turnstile::inline v0_1::detail
