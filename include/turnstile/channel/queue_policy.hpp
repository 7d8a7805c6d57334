// SPDX-License-Identifier: BSL-1.0
// The choices that a user of `queue` and `priority_queue` makes: the capacity, the policy of a full
// queue, the order of the items, and the treatment of the remaining items when the queue is closed.
#pragma once

#include <turnstile/core/enum_names.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <string_view>

namespace turnstile::inline v0_1 {

/// The capacity of a queue without a limit.
inline constexpr std::size_t unbounded = std::numeric_limits<std::size_t>::max();

/// The effect of a push that finds no room.
enum class overflow {
    wait,        ///< The push waits for room.
    drop_oldest, ///< The item enters, and the oldest item is dropped; only for `queue`.
    drop_newest, ///< The push succeeds, and its own item is dropped.
    drop_worst,  ///< The item enters, and the item with the worst priority, which may be the new
                 ///< one, is dropped; only for `priority_queue`.
    reject,      ///< The push fails with `errc::rejected`.
};

/// The item of a `queue` that is popped first.
enum class queue_order {
    fifo, ///< The oldest item.
    lifo, ///< The newest item.
};

/// The effect of `close` on the items that are still in the queue.
enum class close_mode {
    drain,   ///< They can still be popped.
    discard, ///< They are destroyed.
};

template <>
inline constexpr auto detail::enum_names<overflow> =
    std::to_array<std::string_view>({"wait", "drop_oldest", "drop_newest", "drop_worst", "reject"});
template <>
inline constexpr auto detail::enum_names<queue_order> = std::to_array<std::string_view>({"fifo",
                                                                                         "lifo"});
template <>
inline constexpr auto detail::enum_names<close_mode> = std::to_array<std::string_view>({"drain",
                                                                                        "discard"});

} // namespace turnstile::inline v0_1
