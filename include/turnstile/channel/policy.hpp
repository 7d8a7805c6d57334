// SPDX-License-Identifier: BSL-1.0
// What a queue does when it is full, in which order it serves, and how it is closed.
#pragma once

#include <turnstile/core/enum_names.hpp>

#include <cstddef>
#include <limits>

namespace turnstile::inline v0_1 {

/// The capacity of a queue that takes any number of items.
inline constexpr std::size_t unbounded = std::numeric_limits<std::size_t>::max();

/// What becomes of a push that finds no room.
enum class overflow {
    wait,        ///< It waits for room.
    drop_oldest, ///< It enters, and the oldest item is dropped; of `queue` only.
    drop_newest, ///< It succeeds, but its own item is dropped.
    drop_worst,  ///< It enters, and the worst item, maybe itself, is dropped; of `priority_queue`
                 ///< only.
    reject,      ///< It fails with `errc::rejected`.
};

/// Which item of a `queue` is popped first.
enum class order {
    fifo, ///< The oldest.
    lifo, ///< The newest.
};

/// What `close` does with the items that are still there.
enum class closing {
    drain,   ///< They can still be popped.
    discard, ///< They are destroyed.
};

template <>
inline constexpr auto detail::enum_names<overflow> =
    std::to_array<std::string_view>({"wait", "drop_oldest", "drop_newest", "drop_worst", "reject"});
template <>
inline constexpr auto detail::enum_names<order> = std::to_array<std::string_view>({"fifo", "lifo"});
template <>
inline constexpr auto detail::enum_names<closing> = std::to_array<std::string_view>({"drain",
                                                                                     "discard"});

} // namespace turnstile::inline v0_1
