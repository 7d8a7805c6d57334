// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>

#include <mutex>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// How the locks of a Mutex hold it; specialised next to each mutex. A member for each kind of lock
// (exclusive, shared, upgradable) names a struct with
//   state_type                   the mutex's state
//   try_take(state_type&)        takes the lock for a handle, if that needs no waiting
//   give(state_type&, handle)    returns the lock of this handle; false if it is not held
//   adopt(state_type&)           counts a handle for a lock held without one; false if none is
//   detach(state_type&, handle)  leaves the lock of this handle held without one
template <class Mutex>
struct lock_holds;

// A lock on a Mutex as a value, with the interface of std::unique_lock: the base of unique_lock,
// shared_lock and upgrade_lock. It refers to the mutex's state, not to the mutex: the state counts
// the handles that are out, and lives until the last of them is returned.
//
// It owns its lock exactly if `held_` is set.
template <class Mutex, class Hold>
class lock_handle {
    using state_type = typename Hold::state_type;

public:
    /// The mutex's type.
    using mutex_type = Mutex;

    /// Refers to no mutex.
    lock_handle() noexcept = default;

    /// Refers to `mutex`, without a lock.
    lock_handle(Mutex& mutex, std::defer_lock_t) noexcept : mutex_(&mutex) {}

    /// Takes charge of a lock that the caller has taken with a `try_` function of the mutex, or
    /// kept with `release`. If there is no such lock, it owns nothing.
    lock_handle(Mutex& mutex, std::adopt_lock_t) noexcept : mutex_(&mutex)
    {
        state_type& state = mutex.state();
        if (Hold::adopt(state))
            held_ = &state;
    }

    /// Locks if that needs no waiting.
    lock_handle(Mutex& mutex, std::try_to_lock_t) noexcept : mutex_(&mutex) { take(); }

    lock_handle(lock_handle&& other) noexcept
        : mutex_(std::exchange(other.mutex_, nullptr)), held_(std::exchange(other.held_, nullptr))
    {
    }
    /// Unlocks what it owns, then takes over what `other` owns.
    lock_handle& operator=(lock_handle&& other) noexcept
    {
        lock_handle(std::move(other)).swap(*this);
        return *this;
    }
    TURNSTILE_HOT ~lock_handle()
    {
        if (held_)
            Hold::give(*held_, this);
    }

    void swap(lock_handle& other) noexcept
    {
        std::swap(mutex_, other.mutex_);
        std::swap(held_, other.held_);
    }
    friend void swap(lock_handle& a, lock_handle& b) noexcept { a.swap(b); }

    /// Does not compile: it would block the thread. Await the mutex's `async_` function instead.
    template <class Never = void>
    void lock()
    {
        static_assert(!std::is_void_v<Never>, "a lock of Turnstile does not block the thread: "
                                              "use co_await mutex.async_lock(), or try_lock()");
    }

    /// Locks if that needs no waiting; returns whether it did. The mutex must exist.
    /// Errors: `system_error` with `errc::invalid_argument` if it refers to no mutex, or owns a
    /// lock already.
    bool try_lock()
    {
        if (!mutex_ || held_)
            throw_error(errc::invalid_argument, "try_lock");
        return take();
    }

    /// Unlocks now. Errors: `errc::not_locked` if it owns no lock, or if an upgrade of this lock
    /// was granted and has not completed; the lock is unchanged.
    void unlock(error_code& ec) noexcept
    {
        ec = give() ? error_code() : make_error_code(errc::not_locked);
    }

    /// The same, throwing `system_error`.
    void unlock()
    {
        if (!give()) [[unlikely]]
            throw_error(errc::not_locked, "unlock");
    }

    /// Lets go without unlocking: the caller is now in charge of the lock. Returns what `mutex`
    /// would.
    Mutex* release() noexcept
    {
        Mutex* const was = mutex();
        mutex_ = nullptr;
        if (state_type* const held = std::exchange(held_, nullptr))
            Hold::detach(*held, this);
        return was;
    }

    /// Whether it owns a lock. It does so also when the mutex is destroyed.
    [[nodiscard]] bool owns_lock() const noexcept { return held_ != nullptr; }
    explicit operator bool() const noexcept { return owns_lock(); }

    /// The mutex; null if there is none, or if it was destroyed while this lock is owned.
    [[nodiscard]] Mutex* mutex() const noexcept
    {
        return held_ && held_->is_orphaned() ? nullptr : mutex_;
    }

private:
    friend struct lock_access;

    // Of a lock for which the gate has counted a handle.
    TURNSTILE_HOT lock_handle(Mutex* mutex, state_type* held) noexcept : mutex_(mutex), held_(held)
    {
    }

    bool take() noexcept
    {
        state_type& state = mutex_->state();
        if (!Hold::try_take(state))
            return false;
        held_ = &state;
        return true;
    }

    // The state may be destroyed with the last handle, so nothing is read from it afterwards.
    TURNSTILE_HOT bool give() noexcept
    {
        if (!held_ || !Hold::give(*held_, this)) [[unlikely]]
            return false;
        held_ = nullptr;
        return true;
    }

    Mutex* mutex_ = nullptr;
    state_type* held_ = nullptr;
};

// What operations do with locks: the gate has counted the handle already, or is yet to count it
// off.
struct lock_access {
    template <class Lock, class Mutex, class Gate>
    TURNSTILE_HOT static Lock make(Mutex* mutex, Gate& held) noexcept
    {
        return Lock(mutex, &held);
    }
    // The gate, if the lock is owned.
    template <class Lock>
    static auto* state_of(const Lock& lock) noexcept
    {
        return lock.held_;
    }
    // Leaves the lock empty, and its handle to the caller; returns the mutex, of which only make()
    // must hear again.
    template <class Lock>
    static auto* let_go(Lock& lock) noexcept
    {
        lock.held_ = nullptr;
        return std::exchange(lock.mutex_, nullptr);
    }
};

} // namespace turnstile::inline v0_1::detail
