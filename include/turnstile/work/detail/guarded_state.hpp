// SPDX-License-Identifier: BSL-1.0
// The states of guarded and shared_guarded: the state of a mutex or of a shared_mutex, with the
// value that it guards. guarded_handle is the base of their handles.
//
// Invariant: the value lives as long as the state. A handle that is held keeps the state, so the
// value exists for as long as a handle refers to it, also after its object was destroyed.
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>
#include <turnstile/sync/detail/shared_mutex_state.hpp>
#include <turnstile/sync/lock.hpp>
#include <turnstile/sync/lock_preference.hpp>

#include <boost/assert.hpp>

#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class T, class Threading>
class guarded_state final : public semaphore_state<Threading> {
public:
    template <class Executor, class... Args>
    explicit guarded_state(const Executor& executor, Args&&... args)
        : semaphore_state<Threading>(executor, 1, 1), value(std::forward<Args>(args)...)
    {
    }

    T value;
};

template <class T, class Threading>
class shared_guarded_state final : public shared_mutex_state<Threading> {
public:
    template <class Executor, class... Args>
    explicit shared_guarded_state(const Executor& executor, lock_preference preference,
                                  Args&&... args)
        : shared_mutex_state<Threading>(executor, preference), value(std::forward<Args>(args)...)
    {
    }

    T value;
};

// How a handle of a Guarded reaches its value and gives it back; specialised next to each object.
// It has a member type for each kind of handle (exclusive, shared), each with
//   value_type              the type that the handle refers to: T, or const T
//   state_type, base_type   the state, and its base, by which requests know it
//   release(state_type&)    releases the lock of a handle
template <class Guarded>
struct guarded_operations;

// A pointer to the value of a Guarded that owns the lock. `state_` is set exactly while it does.
template <class Operations>
class guarded_handle {
    using state_type = typename Operations::state_type;

public:
    /// The type of the value, const for a handle that only reads.
    using element_type = typename Operations::value_type;

    /// Owns no lock.
    guarded_handle() noexcept = default;
    guarded_handle(guarded_handle&& other) noexcept : state_(std::exchange(other.state_, nullptr))
    {
    }
    /// Unlocks the value it refers to, then takes over the lock of `other`.
    guarded_handle& operator=(guarded_handle&& other) noexcept
    {
        guarded_handle(std::move(other)).swap(*this);
        return *this;
    }
    TURNSTILE_HOT ~guarded_handle()
    {
        if (state_)
            Operations::release(*state_);
    }

    void swap(guarded_handle& other) noexcept { std::swap(state_, other.state_); }
    friend void swap(guarded_handle& a, guarded_handle& b) noexcept { a.swap(b); }

    /// The value. Requires that the handle owns the lock.
    [[nodiscard]] element_type& operator*() const noexcept
    {
        BOOST_ASSERT_MSG(state_, "a handle without a lock was dereferenced");
        return state_->value;
    }
    [[nodiscard]] element_type* operator->() const noexcept { return &**this; }
    /// The address of the value; null if the handle owns no lock.
    [[nodiscard]] element_type* get() const noexcept { return state_ ? &state_->value : nullptr; }

    /// Unlocks. The handle is empty afterwards.
    ///
    /// @par Errors
    /// `errc::not_locked` if it owns no lock.
    void unlock(error_code& ec) noexcept
    {
        ec = state_ ? error_code() : make_error_code(errc::not_locked);
        guarded_handle().swap(*this);
    }
    /// Equivalent to `unlock(ec)`; throws `system_error` where that sets `ec`.
    void unlock()
    {
        if (!state_) [[unlikely]]
            throw_error(errc::not_locked, "unlock");
        // The release of the last handle may destroy the state.
        Operations::release(*std::exchange(state_, nullptr));
    }

    /// Whether it owns the lock. Destroying the guarded object does not change that.
    [[nodiscard]] bool owns_lock() const noexcept { return state_ != nullptr; }
    explicit operator bool() const noexcept { return owns_lock(); }

private:
    friend struct lock_access;

    // For a lock whose handle the state has counted already.
    template <class Guarded>
    TURNSTILE_HOT guarded_handle(Guarded*, typename Operations::base_type* state) noexcept
        : state_(static_cast<state_type*>(state))
    {
    }

    state_type* state_ = nullptr;
};

} // namespace turnstile::inline v0_1::detail
