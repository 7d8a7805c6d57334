// Who may touch an object's state: any thread, or one strand.
#pragma once

#include <turnstile/core/detail/light_mutex.hpp>
#include <turnstile/core/export.hpp>

#include <atomic>
#include <type_traits>
#include <utility>

namespace turnstile {
namespace detail {

// Of atomic<bool>, GCC 12 calls the functions at -O2: 22 instructions for a load.
template <class T>
using atomic_cell = std::atomic<std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>>;

// The interface of std::atomic over plain memory, for state that one strand owns.
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

struct no_mutex {
    void lock() noexcept {}
    void unlock() noexcept {}
};

} // namespace detail

/// Any thread may call any function of the object. Operations that need not wait are a
/// compare-and-swap; waiting takes a short internal lock, never held while a handler runs.
struct TURNSTILE_EXPORT thread_safe {
    static constexpr bool is_confined = false;
    using mutex_type = detail::light_mutex;
    template <class T>
    using cell = detail::atomic_cell<T>;
};

/// All calls come from one strand: an explicit `asio::strand`, or the implicit one of a
/// context run by a single thread. No atomics, no locks, and one posted wake-up completes
/// every waiter that is ready. The destructor counts as a call.
struct TURNSTILE_EXPORT strand_confined {
    static constexpr bool is_confined = true;
    using mutex_type = detail::no_mutex;
    template <class T>
    using cell = detail::plain_cell<T>;
};

} // namespace turnstile
