// SPDX-License-Identifier: BSL-1.0
// The rule by which a full cache chooses the entries that it evicts. It is a header of its own
// because cache_options and the eviction machine both need it.
#pragma once

#include <turnstile/core/enum_names.hpp>

#include <array>
#include <string_view>

namespace turnstile::inline v0_1 {

/// The rule by which a full `cache` chooses the entries that it evicts.
enum class eviction_policy : unsigned char {
    /// A new entry stays only if it is used more often than the entry that it would displace. The
    /// part of the cache that is reserved for new entries, the window, adapts to the hit ratio. The
    /// hit ratio is close to that of `lru` or above it: scans and loops that are larger than the
    /// cache do not displace its entries.
    w_tiny_lfu,

    /// The entry that has not been used for the longest time.
    lru,
};

template <>
inline constexpr auto
    detail::enum_names<eviction_policy> = std::to_array<std::string_view>({"w_tiny_lfu", "lru"});

} // namespace turnstile::inline v0_1
