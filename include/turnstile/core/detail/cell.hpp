#pragma once

#include <turnstile/core/detail/lone_thread.hpp>
#include <turnstile/core/export.hpp>

#include <atomic>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

// What is needed of std::atomic, over plain memory: for state that one strand owns.
template <class T>
class plain_cell {
public:
    constexpr plain_cell() noexcept = default;
    constexpr explicit plain_cell(T value) noexcept : value_(value) {}

    T load(std::memory_order = std::memory_order_relaxed) const noexcept { return value_; }
    void store(T value, std::memory_order = std::memory_order_relaxed) noexcept { value_ = value; }
    bool compare_exchange_weak(T& expected, T desired,
                               std::memory_order = std::memory_order_relaxed,
                               std::memory_order = std::memory_order_relaxed) noexcept
    {
        if (value_ != expected) {
            expected = value_;
            return false;
        }
        value_ = desired;
        return true;
    }
    template <class Change>
    bool update(Change change, std::memory_order = std::memory_order_relaxed) noexcept
    {
        T next = value_;
        if (!change(next))
            return false;
        value_ = next;
        return true;
    }
    T fetch_add(T n, std::memory_order = std::memory_order_relaxed) noexcept
    {
        return std::exchange(value_, value_ + n);
    }
    T fetch_sub(T n, std::memory_order = std::memory_order_relaxed) noexcept
    {
        return std::exchange(value_, value_ - n);
    }

private:
    T value_{};
};

// The same for state that any thread may touch. A lone thread reads and writes instead of locking
// the bus, twice for each operation that need not wait: a sixth of its time.
template <class T>
class atomic_cell {
    // Of atomic<bool>, GCC 12 calls the functions at -O2: 22 instructions for a load.
    using value_type = std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>;

public:
    constexpr atomic_cell() noexcept = default;
    constexpr explicit atomic_cell(T value) noexcept : value_(value) {}

    T load(std::memory_order order) const noexcept { return static_cast<T>(value_.load(order)); }
    void store(T value, std::memory_order order) noexcept { value_.store(value, order); }
    bool compare_exchange_weak(value_type& expected, T desired, std::memory_order success,
                               std::memory_order failure) noexcept
    {
        if (!is_lone_thread())
            return value_.compare_exchange_weak(expected, desired, success, failure);
        const value_type now = value_.load(std::memory_order_relaxed);
        if (now != expected) {
            expected = now;
            return false;
        }
        value_.store(desired, std::memory_order_relaxed);
        return true;
    }
    bool compare_exchange_weak(value_type& expected, T desired, std::memory_order order) noexcept
    {
        return compare_exchange_weak(expected, desired, order, std::memory_order_acquire);
    }
    // Lets change(value) alter the value, again if others were faster; false, and nothing is
    // altered, if it says so.
    template <class Change>
    TURNSTILE_HOT bool update(Change change, std::memory_order order) noexcept
    {
        value_type now = value_.load(std::memory_order_relaxed);
        for (;;) {
            value_type next = now;
            if (!change(next))
                return false;
            if (is_lone_thread()) {
                value_.store(next, std::memory_order_relaxed);
                return true;
            }
            if (value_.compare_exchange_weak(now, next, order, std::memory_order_relaxed))
                return true;
        }
    }
    T fetch_add(T n, std::memory_order order) noexcept
    {
        if (!is_lone_thread())
            return value_.fetch_add(n, order);
        const T before = value_.load(std::memory_order_relaxed);
        value_.store(before + n, std::memory_order_relaxed);
        return before;
    }
    T fetch_sub(T n, std::memory_order order) noexcept
    {
        if (!is_lone_thread())
            return value_.fetch_sub(n, order);
        const T before = value_.load(std::memory_order_relaxed);
        value_.store(before - n, std::memory_order_relaxed);
        return before;
    }

private:
    std::atomic<value_type> value_{};
};

} // namespace turnstile::detail
