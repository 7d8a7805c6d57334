// SPDX-License-Identifier: BSL-1.0
// The order in which a shared_mutex grants its locks to readers and writers that wait. It is a
// header of its own because shared_mutex and its state both need it.
#pragma once

#include <turnstile/core/enum_names.hpp>

#include <array>
#include <string_view>

namespace turnstile::inline v0_1 {

/// The order in which a `shared_mutex` grants locks to waiting readers and writers.
///
/// A reader requests a shared or an upgradable lock, a writer the exclusive one. An upgrade
/// precedes every other waiter, whatever the preference is.
///
/// It is given at construction: `shared_mutex m(io, lock_preference::prefer_readers);`. The default
/// is `fair`. Prefer readers only where writers are rare, and writers only where readers can wait:
/// either choice lets the other side starve.
enum class lock_preference : unsigned char {
    /// A request waits only for earlier, incompatible requests: a waiting writer holds back later
    /// readers, and when a writer unlocks, all readers up to the next writer are granted. Neither
    /// side starves.
    fair,

    /// Readers do not wait for waiting writers, only for the writer that holds the lock. A steady
    /// flow of readers starves the writers.
    prefer_readers,

    /// Readers wait as long as any writer waits. A steady flow of writers starves the readers.
    prefer_writers,
};

template <>
inline constexpr auto detail::enum_names<lock_preference> =
    std::to_array<std::string_view>({"fair", "prefer_readers", "prefer_writers"});

} // namespace turnstile::inline v0_1
