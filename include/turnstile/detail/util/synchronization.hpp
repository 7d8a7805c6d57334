// SPDX-License-Identifier: BSL-1.0
// The two means by which a state is protected: policy_atomic, for the words that change without the
// lock, and spin_mutex, the lock. core/threading.hpp chooses between them and plain memory.
#pragma once

#include <turnstile/core/export.hpp>

#include <atomic>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A word of an object's state that changes without the object's lock: policy_atomic<Threading, T>.
// For thread_safe it is a std::atomic, for strand_confined plain memory with the same interface.
// Beside that of std::atomic it has update(change, order): change(T&) alters a copy of the value,
// which is then stored, and is called again if another thread was faster. If change returns false,
// update() stores nothing and returns false.

// The atomic of strand_confined.
template <class T>
class confined_atomic {
public:
    constexpr confined_atomic() noexcept = default;
    constexpr explicit confined_atomic(T value) noexcept : value_(value) {}

    T load(std::memory_order) const noexcept { return value_; }
    void store(T value, std::memory_order) noexcept { value_ = value; }
    T fetch_add(T n, std::memory_order) noexcept { return std::exchange(value_, value_ + n); }
    T fetch_sub(T n, std::memory_order) noexcept { return std::exchange(value_, value_ - n); }

    template <class Change>
    TURNSTILE_HOT bool update(Change change, std::memory_order) noexcept
    {
        T next = value_;
        if (!change(next))
            return false;
        value_ = next;
        return true;
    }

private:
    T value_{};
};

// The atomic of thread_safe.
template <class T>
class shared_atomic {
    // GCC 12 calls the functions of atomic<bool> at -O2: 22 instructions for a load.
    using value_type = std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>;

public:
    constexpr shared_atomic() noexcept = default;
    constexpr explicit shared_atomic(T value) noexcept : value_(value) {}

    // Always inlined: otherwise GCC 12 inspects the memory order at run time.
    TURNSTILE_HOT T load(std::memory_order order) const noexcept
    {
        return static_cast<T>(value_.load(order));
    }
    TURNSTILE_HOT void store(T value, std::memory_order order) noexcept
    {
        value_.store(value, order);
    }
    TURNSTILE_HOT T fetch_add(T n, std::memory_order order) noexcept
    {
        return value_.fetch_add(n, order);
    }
    TURNSTILE_HOT T fetch_sub(T n, std::memory_order order) noexcept
    {
        return value_.fetch_sub(n, order);
    }

    // The value is read with acquire order, also if nothing is stored.
    template <class Change>
    TURNSTILE_HOT bool update(Change change, std::memory_order order) noexcept
    {
        value_type now = value_.load(std::memory_order_acquire);
        for (;;) {
            value_type next = now;
            if (!change(next))
                return false;
            if (value_.compare_exchange_weak(now, next, order, std::memory_order_acquire))
                return true;
        }
    }

private:
    std::atomic<value_type> value_{};
};

// The atomic of a threading policy.
template <class Threading, class T>
using policy_atomic = typename Threading::template atomic_type<T>;

// Sets the bits that are not set yet; returns the value before.
template <class Atomic, class T>
TURNSTILE_HOT T set_bits(Atomic& atomic, T bits) noexcept
{
    T before{};
    const auto set = [&](T& value) noexcept {
        before = value;
        value |= bits;
        return value != before;
    };
    atomic.update(set, std::memory_order_acq_rel);
    return before;
}

// The lock of every thread_safe object: a mutex for sections of a few instructions. Locking is one
// exchange, unlocking a plain store; together they take a tenth of the instructions of std::mutex.
// The store does not know whether a thread waits, so it wakes none: a thread that finds the mutex
// locked spins, then yields, and then sleeps for short periods until it is unlocked.
//
// Invariant: no handler is invoked, posted or destroyed while the mutex is locked.
class spin_mutex {
public:
    TURNSTILE_HOT void lock() noexcept
    {
        if (!try_lock()) [[unlikely]]
            lock_contended();
    }

    // Touches nothing after the store: the next thread that locks the mutex may free its memory.
    void unlock() noexcept { locked_.store(0, std::memory_order_release); }

private:
    bool try_lock() noexcept { return locked_.exchange(1, std::memory_order_acquire) == 0; }
    TURNSTILE_COLD TURNSTILE_EXPORT void lock_contended() noexcept;

    std::atomic<int> locked_{0};
};

} // namespace turnstile::inline v0_1::detail
