// SPDX-License-Identifier: BSL-1.0
// The clock policy: every time-based object takes its clock as a template parameter, and
// every policy counts in integer nanoseconds that saturate instead of overflowing.
#pragma once

#include <turnstile/detail/util/checked_arithmetic.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace turnstile::inline v0_1 {

/// A clock Turnstile can be driven by: `std::chrono::steady_clock`, or a test's own. The
/// requirements are those of the standard's *Clock* (libc++ has no `std::chrono::is_clock`).
template <class T>
concept clock_policy = requires
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

/// What objects use unless another clock is named.
using default_clock = std::chrono::steady_clock;

/// The resolution all policies compute in.
using nanoseconds = std::chrono::duration<std::int64_t, std::nano>;

/// Adds, and stays at the largest or smallest value where the sum does not fit.
constexpr nanoseconds saturating_add(nanoseconds a, nanoseconds b) noexcept
{
    std::int64_t sum = 0;
    if (!detail::add_overflows(a.count(), b.count(), sum))
        return nanoseconds(sum);
    return b.count() > 0 ? nanoseconds::max() : nanoseconds::min();
}

/// Subtracts, and stays at the largest or smallest value where the difference does not fit.
constexpr nanoseconds saturating_sub(nanoseconds a, nanoseconds b) noexcept
{
    std::int64_t difference = 0;
    if (!detail::subtract_overflows(a.count(), b.count(), difference))
        return nanoseconds(difference);
    return b.count() < 0 ? nanoseconds::max() : nanoseconds::min();
}

/// Multiplies, and stays at the largest or smallest value where the product does not fit.
constexpr nanoseconds saturating_mul(nanoseconds a, std::int64_t factor) noexcept
{
    std::int64_t product = 0;
    if (!detail::multiply_overflows(a.count(), factor, product))
        return nanoseconds(product);
    return (a.count() < 0) == (factor < 0) ? nanoseconds::max() : nanoseconds::min();
}

/// Converts any duration, floating-point ones included, to nanoseconds; a value out of range
/// becomes the nearest one in it, and not-a-number becomes zero.
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
