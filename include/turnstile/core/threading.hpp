// SPDX-License-Identifier: BSL-1.0
// Who may touch an object's state: any thread, or one strand.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/policy_atomic.hpp>
#include <turnstile/detail/util/spin_mutex.hpp>

namespace turnstile::inline v0_1 {
namespace detail {

struct no_mutex {
    void lock() noexcept {}
    void unlock() noexcept {}
};

} // namespace detail

/// Any thread may call any function of the object. Operations that need not wait are a
/// compare-and-swap; waiting takes a short internal lock, never held while a handler runs.
struct TURNSTILE_EXPORT thread_safe {
    static constexpr bool is_confined = false;
    using mutex_type = detail::spin_mutex;
    template <class T>
    using atomic_type = detail::shared_atomic<T>;
};

/// All calls come from one strand: an explicit `asio::strand`, or the implicit one of a
/// context run by a single thread. No atomics, no locks, and one posted wake-up completes
/// every waiter that is ready. The destructor counts as a call.
struct TURNSTILE_EXPORT strand_confined {
    static constexpr bool is_confined = true;
    using mutex_type = detail::no_mutex;
    template <class T>
    using atomic_type = detail::confined_atomic<T>;
};

} // namespace turnstile::inline v0_1
