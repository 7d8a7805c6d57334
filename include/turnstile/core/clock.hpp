// SPDX-License-Identifier: BSL-1.0
// The clock that objects with deadlines use, as a template parameter, and durations in integer
// nanoseconds whose arithmetic saturates instead of overflowing.
#pragma once

#include <turnstile/detail/util/checked_arithmetic.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace turnstile::inline v0_1 {

/// A clock that can drive an object of Turnstile: `std::chrono::steady_clock`, or a clock that a
/// test advances by hand. It meets the *Clock* requirements of the standard.
template <class T>
concept clock_policy = requires // libc++ has no std::chrono::is_clock
{
    typename T::rep;
    typename T::period;
    typename T::duration;
    typename T::time_point;
    {
        T::now()
        } -> std::same_as<typename T::time_point>;
    T::is_steady;
};

/// The clock of objects that name no other.
using default_clock = std::chrono::steady_clock;

/// The duration in which Turnstile computes and reports.
using nanoseconds = std::chrono::duration<std::int64_t, std::nano>;

/// Returns `a + b`, or the largest or smallest value if the sum is out of range.
constexpr nanoseconds saturating_add(nanoseconds a, nanoseconds b) noexcept
{
    std::int64_t sum = 0;
    if (!detail::add_overflows(a.count(), b.count(), sum))
        return nanoseconds(sum);
    return b.count() > 0 ? nanoseconds::max() : nanoseconds::min();
}

/// Returns `a - b`, or the largest or smallest value if the difference is out of range.
constexpr nanoseconds saturating_sub(nanoseconds a, nanoseconds b) noexcept
{
    std::int64_t difference = 0;
    if (!detail::subtract_overflows(a.count(), b.count(), difference))
        return nanoseconds(difference);
    return b.count() < 0 ? nanoseconds::max() : nanoseconds::min();
}

/// Returns `a * factor`, or the largest or smallest value if the product is out of range.
constexpr nanoseconds saturating_mul(nanoseconds a, std::int64_t factor) noexcept
{
    std::int64_t product = 0;
    if (!detail::multiply_overflows(a.count(), factor, product))
        return nanoseconds(product);
    return (a.count() < 0) == (factor < 0) ? nanoseconds::max() : nanoseconds::min();
}

/// Converts a duration of any type, floating-point types included, to nanoseconds. A value that is
/// out of range becomes the largest or smallest value; not-a-number becomes zero.
template <class Rep, class Period>
constexpr nanoseconds saturating_nanoseconds(std::chrono::duration<Rep, Period> d) noexcept
{
    using wide = std::chrono::duration<long double, std::nano>;
    const long double value = std::chrono::duration_cast<wide>(d).count();
    if (value != value)
        return nanoseconds::zero();
    if (value >= static_cast<long double>(nanoseconds::max().count()))
        return nanoseconds::max();
    if (value <= static_cast<long double>(nanoseconds::min().count()))
        return nanoseconds::min();
    if constexpr (std::is_integral_v<Rep>)
        return std::chrono::duration_cast<nanoseconds>(d);
    else
        return nanoseconds(static_cast<std::int64_t>(value));
}

} // namespace turnstile::inline v0_1
