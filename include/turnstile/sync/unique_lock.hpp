// SPDX-License-Identifier: BSL-1.0
// An exclusive lock, as a value that unlocks.
#pragma once

#include <turnstile/sync/detail/lock_handle.hpp>

namespace turnstile::inline v0_1 {

/// An exclusive lock on a `mutex` or a `shared_mutex`, unlocked when it goes out of scope. Its
/// interface is that of `std::unique_lock`. Movable, not copyable, not itself thread safe.
///
/// It may outlive its mutex: then unlocking it has no effect on anything else, and `mutex()` is
/// null. As long as it owns the lock, `unlock` on the mutex itself fails with `errc::not_locked`.
template <class Mutex>
class [[nodiscard]] unique_lock
    : public detail::lock_handle<Mutex, typename detail::lock_holds<Mutex>::exclusive> {
    using base = detail::lock_handle<Mutex, typename detail::lock_holds<Mutex>::exclusive>;

public:
    using base::base;
};

template <class Mutex, class How>
unique_lock(Mutex&, How) -> unique_lock<Mutex>;

} // namespace turnstile::inline v0_1
