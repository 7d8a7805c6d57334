// An upgradable read lock, as a value that unlocks.
#pragma once

#include <turnstile/core/error.hpp>

#include <mutex>
#include <utility>

namespace turnstile {

/// An upgradable read lock on a `Mutex`, unlocked when it goes out of scope: what
/// `std::shared_lock` is to a shared lock. Movable, not copyable. It must not outlive its
/// mutex. Not itself thread safe.
template <class Mutex>
class [[nodiscard]] upgrade_lock {
public:
    using mutex_type = Mutex;

    /// Holds nothing.
    upgrade_lock() noexcept = default;

    /// Takes charge of a lock that the caller has.
    upgrade_lock(Mutex& mutex, std::adopt_lock_t) noexcept : mutex_(&mutex), owns_(true) {}

    /// Locks if that needs no waiting.
    upgrade_lock(Mutex& mutex, std::try_to_lock_t) noexcept
        : mutex_(&mutex), owns_(mutex.try_lock_upgrade())
    {
    }

    upgrade_lock(upgrade_lock&& other) noexcept { swap(other); }
    /// Unlocks what it holds, then takes over what `other` holds.
    upgrade_lock& operator=(upgrade_lock&& other) noexcept
    {
        upgrade_lock(std::move(other)).swap(*this);
        return *this;
    }
    ~upgrade_lock()
    {
        error_code ignored; // somebody else unlocked what was not theirs
        if (owns_)
            mutex_->unlock_upgrade(ignored);
    }

    void swap(upgrade_lock& other) noexcept
    {
        std::swap(mutex_, other.mutex_);
        std::swap(owns_, other.owns_);
    }

    /// Unlocks now. Errors: `system_error` with `errc::not_locked` if it holds no lock.
    void unlock()
    {
        if (!owns_)
            detail::throw_error(errc::not_locked, "upgrade_lock::unlock");
        mutex_->unlock_upgrade();
        owns_ = false;
    }

    /// Lets go without unlocking: the caller is now in charge of the lock.
    Mutex* release() noexcept
    {
        owns_ = false;
        return std::exchange(mutex_, nullptr);
    }

    [[nodiscard]] bool owns_lock() const noexcept { return owns_; }
    explicit operator bool() const noexcept { return owns_; }
    [[nodiscard]] Mutex* mutex() const noexcept { return mutex_; }

private:
    Mutex* mutex_ = nullptr;
    bool owns_ = false;
};

} // namespace turnstile
