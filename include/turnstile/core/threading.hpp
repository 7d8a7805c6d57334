// SPDX-License-Identifier: BSL-1.0
// The threading policies. A policy is a template parameter of every object, and decides which
// threads may call it: any thread at any time, or one strand only.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/synchronization.hpp>

namespace turnstile::inline v0_1 {
namespace detail {

// The mutex of strand_confined.
struct no_mutex {
    void lock() noexcept {}
    void unlock() noexcept {}
};

} // namespace detail

/// Any thread may call any function of the object, at the same time as other threads. An operation
/// that need not wait is a compare-and-swap. An operation that waits takes an internal lock for a
/// short time; no handler runs under this lock.
struct TURNSTILE_EXPORT thread_safe {
    static constexpr bool is_confined = false;
    using mutex_type = detail::spin_mutex;
    template <class T>
    using atomic_type = detail::shared_atomic<T>;
};

/// All calls of the object, including its destructor, come from one strand: an explicit
/// `asio::strand`, or the implicit strand of an execution context that a single thread runs. The
/// object uses neither atomics nor locks, and one posted task completes all waiters that are ready.
struct TURNSTILE_EXPORT strand_confined {
    static constexpr bool is_confined = true;
    using mutex_type = detail::no_mutex;
    template <class T>
    using atomic_type = detail::confined_atomic<T>;
};

} // namespace turnstile::inline v0_1
