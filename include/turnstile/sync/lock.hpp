// SPDX-License-Identifier: BSL-1.0
// The locks of mutex and shared_mutex as values that unlock in their destructor: unique_lock,
// shared_lock and upgrade_lock, with the interface of std::unique_lock.
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>

#include <mutex>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {
namespace detail {

// The operations of a lock on the state of a Mutex; specialised next to each mutex. It has one
// member type for each kind of lock (exclusive, shared, upgradable), each with
//   state_type                    the state of the mutex
//   try_acquire(state_type&)      acquires the lock for a handle if that needs no waiting
//   release(state_type&, handle)  releases the lock of this handle; false if it is not held
//   adopt(state_type&)            counts a handle for a lock that is held without one; false if
//                                 there is no such lock
//   detach(state_type&, handle)   leaves the lock of this handle held without one
template <class Mutex>
struct lock_operations;

// The base of unique_lock, shared_lock and upgrade_lock: a lock on a Mutex as a value.
//
// It refers to the state of the mutex, not to the mutex, and may outlive the mutex: the state
// counts its handles, and lives until the last of them is returned. `state_` is set exactly while
// the handle owns a lock.
template <class Mutex, class Operations>
class lock_handle {
    using state_type = typename Operations::state_type;

public:
    /// The type of the mutex.
    using mutex_type = Mutex;

    /// Refers to no mutex and owns no lock.
    lock_handle() noexcept = default;

    /// Refers to `mutex` and owns no lock.
    lock_handle(Mutex& mutex, std::defer_lock_t) noexcept : mutex_(&mutex) {}

    /// Takes ownership of a lock that the caller has acquired with a `try_` function of the mutex,
    /// or detached with `release`. Owns no lock if there is no such lock.
    lock_handle(Mutex& mutex, std::adopt_lock_t) noexcept : mutex_(&mutex)
    {
        state_type& state = mutex.state();
        if (Operations::adopt(state))
            state_ = &state;
    }

    /// Acquires the lock if that needs no waiting.
    lock_handle(Mutex& mutex, std::try_to_lock_t) noexcept : mutex_(&mutex) { try_acquire(); }

    lock_handle(lock_handle&& other) noexcept
        : mutex_(std::exchange(other.mutex_, nullptr)), state_(std::exchange(other.state_, nullptr))
    {
    }
    /// Unlocks the lock it owns, then takes over the lock of `other`.
    lock_handle& operator=(lock_handle&& other) noexcept
    {
        lock_handle(std::move(other)).swap(*this);
        return *this;
    }
    TURNSTILE_HOT ~lock_handle()
    {
        if (state_)
            Operations::release(*state_, this);
    }

    void swap(lock_handle& other) noexcept
    {
        std::swap(mutex_, other.mutex_);
        std::swap(state_, other.state_);
    }
    friend void swap(lock_handle& a, lock_handle& b) noexcept { a.swap(b); }

    /// Does not compile, because it would block the thread. Await the `async_` function of the
    /// mutex instead.
    template <class Never = void>
    void lock()
    {
        static_assert(!std::is_void_v<Never>, "a lock of Turnstile does not block the thread: "
                                              "use co_await mutex.async_lock(), or try_lock()");
    }

    /// Acquires the lock if that needs no waiting, and returns whether it did. The mutex must
    /// still exist.
    ///
    /// @par Errors
    /// `errc::invalid_argument` if it refers to no mutex, or owns a lock already.
    bool try_lock(error_code& ec) noexcept
    {
        const bool is_valid = mutex_ && !state_;
        ec = is_valid ? error_code() : make_error_code(errc::invalid_argument);
        return is_valid && try_acquire();
    }
    /// Equivalent to `try_lock(ec)`; throws `system_error` where that sets `ec`.
    bool try_lock()
    {
        if (!mutex_ || state_)
            throw_error(errc::invalid_argument, "try_lock");
        return try_acquire();
    }

    /// Unlocks.
    ///
    /// @par Errors
    /// `errc::not_locked` if it owns no lock, or if an upgrade of this lock was granted and has
    /// not completed. The lock is unchanged then.
    void unlock(error_code& ec) noexcept
    {
        ec = try_unlock() ? error_code() : make_error_code(errc::not_locked);
    }
    /// Equivalent to `unlock(ec)`; throws `system_error` where that sets `ec`.
    void unlock()
    {
        if (!try_unlock()) [[unlikely]]
            throw_error(errc::not_locked, "unlock");
    }

    /// Gives up ownership without unlocking, as `std::unique_lock` does: the caller has to unlock
    /// the mutex. Returns the value of `mutex()` before the call.
    Mutex* release() noexcept
    {
        Mutex* const released = mutex();
        mutex_ = nullptr;
        if (state_type* const state = std::exchange(state_, nullptr))
            Operations::detach(*state, this);
        return released;
    }

    /// Whether it owns a lock. Destroying the mutex does not change that.
    [[nodiscard]] bool owns_lock() const noexcept { return state_ != nullptr; }
    explicit operator bool() const noexcept { return owns_lock(); }

    /// The mutex. Null if it refers to none, or if the mutex was destroyed while this lock was
    /// owned.
    [[nodiscard]] Mutex* mutex() const noexcept
    {
        return state_ && state_->is_orphaned() ? nullptr : mutex_;
    }

private:
    friend struct lock_access;

    // For a lock whose handle the state has counted already.
    TURNSTILE_HOT lock_handle(Mutex* mutex, state_type* state) noexcept
        : mutex_(mutex), state_(state)
    {
    }

    bool try_acquire() noexcept
    {
        state_type& state = mutex_->state();
        if (!Operations::try_acquire(state))
            return false;
        state_ = &state;
        return true;
    }

    // The release of the last handle may destroy the state, which must not be read afterwards.
    TURNSTILE_HOT bool try_unlock() noexcept
    {
        if (!state_ || !Operations::release(*state_, this)) [[unlikely]]
            return false;
        state_ = nullptr;
        return true;
    }

    Mutex* mutex_ = nullptr;
    state_type* state_ = nullptr;
};

// The part of a lock_handle that only operations use: they create locks that the state has
// granted, and take locks apart without releasing them.
struct lock_access {
    // A lock whose handle the state has counted already.
    template <class Lock, class Mutex, class State>
    TURNSTILE_HOT static Lock make(Mutex* mutex, State& state) noexcept
    {
        return Lock(mutex, &state);
    }
    // The state of an owned lock, else null.
    template <class Lock>
    static auto* state_of(const Lock& lock) noexcept
    {
        return lock.state_;
    }
    // Empties `lock`. Its handle stays counted and becomes the caller's. Returns the mutex, which
    // may be destroyed already, for a later make().
    template <class Lock>
    static auto* disown(Lock& lock) noexcept
    {
        lock.state_ = nullptr;
        return std::exchange(lock.mutex_, nullptr);
    }
};

} // namespace detail

/// An exclusive lock on a `mutex` or a `shared_mutex`, unlocked in its destructor. It has the
/// interface of `std::unique_lock`, and is movable, but not copyable.
///
/// It may outlive its mutex: `mutex()` is null then, and unlocking has no further effect. While it
/// owns the lock, `unlock` on the mutex itself fails with `errc::not_locked`.
///
/// @par Thread safety
/// Distinct objects: safe. Shared objects: unsafe. The lock may be unlocked on another thread than
/// the one that acquired it.
template <class Mutex>
class [[nodiscard]] unique_lock
    : public detail::lock_handle<Mutex, typename detail::lock_operations<Mutex>::exclusive> {
    using base = detail::lock_handle<Mutex, typename detail::lock_operations<Mutex>::exclusive>;

public:
    using base::base;
};

template <class Mutex, class Strategy>
unique_lock(Mutex&, Strategy) -> unique_lock<Mutex>;

/// A shared lock on a `shared_mutex`, unlocked in its destructor. It has the interface of
/// `std::shared_lock`, and is movable, but not copyable.
///
/// It may outlive its mutex: `mutex()` is null then, and unlocking has no further effect.
///
/// @par Thread safety
/// As `unique_lock`.
template <class Mutex>
class [[nodiscard]] shared_lock
    : public detail::lock_handle<Mutex, typename detail::lock_operations<Mutex>::shared> {
    using base = detail::lock_handle<Mutex, typename detail::lock_operations<Mutex>::shared>;

public:
    using base::base;
    shared_lock(shared_lock&&) noexcept = default;
    shared_lock& operator=(shared_lock&&) noexcept = default;
    TURNSTILE_HOT ~shared_lock() = default; // inlined where a coroutine destroys moved-from locks
};

template <class Mutex, class Strategy>
shared_lock(Mutex&, Strategy) -> shared_lock<Mutex>;

/// An upgradable lock on a `shared_mutex`, unlocked in its destructor. It has the interface of
/// `std::shared_lock`, and is movable, but not copyable.
///
/// It may outlive its mutex: `mutex()` is null then, and unlocking has no further effect.
///
/// @par Thread safety
/// As `unique_lock`.
template <class Mutex>
class [[nodiscard]] upgrade_lock
    : public detail::lock_handle<Mutex, typename detail::lock_operations<Mutex>::upgradable> {
    using base = detail::lock_handle<Mutex, typename detail::lock_operations<Mutex>::upgradable>;

public:
    using base::base;
};

template <class Mutex, class Strategy>
upgrade_lock(Mutex&, Strategy) -> upgrade_lock<Mutex>;

} // namespace turnstile::inline v0_1
