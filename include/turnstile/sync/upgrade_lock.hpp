// SPDX-License-Identifier: BSL-1.0
// An upgradable read lock, as a value that unlocks.
#pragma once

#include <turnstile/sync/detail/lock_handle.hpp>

namespace turnstile::inline v0_1 {

/// An upgradable read lock on a `shared_mutex`, unlocked when it goes out of scope: what
/// `shared_lock` is to a shared lock. Movable, not copyable, not itself thread safe.
///
/// It may outlive its mutex: then unlocking it has no effect on anything else, and `mutex()` is
/// null.
template <class Mutex>
class [[nodiscard]] upgrade_lock
    : public detail::lock_handle<Mutex, typename detail::lock_holds<Mutex>::upgradable> {
    using base = detail::lock_handle<Mutex, typename detail::lock_holds<Mutex>::upgradable>;

public:
    using base::base;
};

template <class Mutex, class How>
upgrade_lock(Mutex&, How) -> upgrade_lock<Mutex>;

} // namespace turnstile::inline v0_1
