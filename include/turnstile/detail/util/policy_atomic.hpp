// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/lone_thread.hpp>

#include <atomic>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A word of an object's state that changes without the object's lock. update() lets a function
// change(T&) alter it, again if somebody else was faster. If that returns false, nothing is
// altered, and update() returns false, too.

// For state that one strand owns: plain memory.
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

// For state that any thread may touch. A lone thread reads and writes instead of locking the bus,
// twice for each operation that need not wait: a sixth of its time.
template <class T>
class shared_atomic {
    // Of atomic<bool>, GCC 12 calls the functions at -O2: 22 instructions for a load.
    using value_type = std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>;

public:
    constexpr shared_atomic() noexcept = default;
    constexpr explicit shared_atomic(T value) noexcept : value_(value) {}

    // All inlined, or GCC 12 looks at run time what the order asks for.
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
        return is_lone_thread() ? replace([n](T now) { return now + n; })
                                : value_.fetch_add(n, order);
    }
    TURNSTILE_HOT T fetch_sub(T n, std::memory_order order) noexcept
    {
        return is_lone_thread() ? replace([n](T now) { return now - n; })
                                : value_.fetch_sub(n, order);
    }

    // Whatever comes of it, the caller sees what was done before the value was written.
    template <class Change>
    TURNSTILE_HOT bool update(Change change, std::memory_order order) noexcept
    {
        value_type now = value_.load(std::memory_order_acquire);
        for (;;) {
            value_type next = now;
            if (!change(next))
                return false;
            if (is_lone_thread()) [[likely]] {
                value_.store(next, std::memory_order_relaxed);
                return true;
            }
            if (value_.compare_exchange_weak(now, next, order, std::memory_order_acquire))
                return true;
        }
    }

private:
    template <class F>
    TURNSTILE_HOT T replace(F f) noexcept
    {
        const T before = value_.load(std::memory_order_relaxed);
        value_.store(f(before), std::memory_order_relaxed);
        return before;
    }

    std::atomic<value_type> value_{};
};

// The atomic of a threading policy.
template <class Threading, class T>
using policy_atomic = typename Threading::template atomic_type<T>;

// Sets those bits, if they are not set; returns what was there before.
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

} // namespace turnstile::inline v0_1::detail
