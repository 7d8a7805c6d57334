// SPDX-License-Identifier: BSL-1.0
// Checks the capacity that is passed to the constructor of a channel.
//
// The constructors of queue, priority_queue and broadcast take any integral type, so that a
// negative number reaches this check instead of becoming a huge std::size_t. A huge number is
// refused as well: it is most likely a negative number that the caller has converted. `unbounded`
// is the only exception, and only for queues.
//
// `rule` is the text of the exception; it names the channel and the argument.
#pragma once

#include <turnstile/channel/queue_policy.hpp>
#include <turnstile/core/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace turnstile::inline v0_1::detail {

// Whether a channel can hold n items.
template <std::integral Count>
constexpr bool is_number_of_items(Count n) noexcept
{
    if constexpr (std::is_signed_v<Count>) {
        if (n < 0)
            return false;
    }
    return static_cast<std::uintmax_t>(n) <= static_cast<std::uintmax_t>(PTRDIFF_MAX);
}

template <std::integral Count>
std::size_t checked_queue_capacity(Count n, const char* rule)
{
    // A signed -1 is not `unbounded`, although it would become that number if it were converted.
    const bool is_unbounded =
        std::unsigned_integral<Count> && static_cast<std::uintmax_t>(n) == unbounded;
    throw_if_wrong(is_unbounded || is_number_of_items(n) ? nullptr : rule);
    return static_cast<std::size_t>(n);
}

// A broadcast allocates a pointer for each value that it can keep.
template <std::integral Count>
std::size_t checked_broadcast_capacity(Count n, const char* rule)
{
    constexpr std::uintmax_t most = static_cast<std::uintmax_t>(PTRDIFF_MAX) / sizeof(void*);
    const bool is_possible =
        n != 0 && is_number_of_items(n) && static_cast<std::uintmax_t>(n) <= most;
    throw_if_wrong(is_possible ? nullptr : rule);
    return static_cast<std::size_t>(n);
}

} // namespace turnstile::inline v0_1::detail
