// SPDX-License-Identifier: BSL-1.0
// A shared lock, as a value that unlocks.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/sync/detail/lock_handle.hpp>

namespace turnstile::inline v0_1 {

/// A shared lock on a `shared_mutex`, unlocked when it goes out of scope. Its interface is that of
/// `std::shared_lock`. Movable, not copyable, not itself thread safe.
///
/// It may outlive its mutex: then unlocking it has no effect on anything else, and `mutex()` is
/// null.
template <class Mutex>
class [[nodiscard]] shared_lock
    : public detail::lock_handle<Mutex, typename detail::lock_holds<Mutex>::shared> {
    using base = detail::lock_handle<Mutex, typename detail::lock_holds<Mutex>::shared>;

public:
    using base::base;
    shared_lock(shared_lock&&) noexcept = default;
    shared_lock& operator=(shared_lock&&) noexcept = default;
    TURNSTILE_HOT ~shared_lock() = default; // a coroutine destroys what it has moved from, too
};

template <class Mutex, class How>
shared_lock(Mutex&, How) -> shared_lock<Mutex>;

} // namespace turnstile::inline v0_1
