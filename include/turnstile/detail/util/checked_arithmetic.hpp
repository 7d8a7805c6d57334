// SPDX-License-Identifier: BSL-1.0
// Integer arithmetic that reports an overflow, and products of 128 bits. The saturating durations
// of core/clock.hpp, the random numbers and the rate limiter use it.
//
// Each function exists twice: with the builtins of GCC and Clang, and in standard C++ in the
// namespace `portable`, for other compilers. `portable` is always compiled.
//
// Invariant: both forms return the same results, which the tests compare.
#pragma once

#include <cstdint>
#include <limits>

namespace turnstile::inline v0_1::detail {

// A product of two 64-bit numbers, as two halves.
struct wide_product {
    std::uint64_t high;
    std::uint64_t low;

    friend constexpr bool operator==(const wide_product&, const wide_product&) = default;
};

namespace portable {

// The `*_overflows` functions return whether the exact result is out of range, and store the result
// modulo 2^64.
constexpr bool add_overflows(std::int64_t a, std::int64_t b, std::int64_t& sum) noexcept
{
    sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    return b < 0 ? sum > a : sum < a;
}

constexpr bool subtract_overflows(std::int64_t a, std::int64_t b, std::int64_t& result) noexcept
{
    result =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
    return b < 0 ? result < a : result > a;
}

constexpr bool multiply_overflows(std::uint64_t a, std::uint64_t b, std::uint64_t& result) noexcept
{
    result = a * b;
    return a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a;
}

constexpr bool multiply_overflows(std::int64_t a, std::int64_t b, std::int64_t& result) noexcept
{
    const auto magnitude = [](std::int64_t x) {
        return x < 0 ? 0 - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
    };
    const bool negative = (a < 0) != (b < 0);
    std::uint64_t product = 0;
    const bool too_large = multiply_overflows(magnitude(a), magnitude(b), product);
    const auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    result = static_cast<std::int64_t>(negative ? 0 - product : product);
    return too_large || product > largest + (negative ? 1 : 0);
}

// The schoolbook method, with digits of 32 bits.
constexpr wide_product full_product(std::uint64_t a, std::uint64_t b) noexcept
{
    constexpr std::uint64_t half = 0xffffffffU;
    const std::uint64_t low = (a & half) * (b & half);
    const std::uint64_t left = (a >> 32) * (b & half);
    const std::uint64_t right = (a & half) * (b >> 32);
    const std::uint64_t middle = (low >> 32) + (left & half) + (right & half);
    return {(a >> 32) * (b >> 32) + (left >> 32) + (right >> 32) + (middle >> 32),
            (middle << 32) | (low & half)};
}

// Returns a * b / divisor, or the largest number if the quotient is out of range. Requires a
// divisor other than 0. This form divides bit by bit, which is slow; callers use it when limits
// change, not for each request.
constexpr std::uint64_t multiply_divide(std::uint64_t a, std::uint64_t b, std::uint64_t divisor,
                                        bool round_up) noexcept
{
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    const auto [high, low] = full_product(a, b);
    if (high >= divisor)
        return largest;
    std::uint64_t rest = high;
    std::uint64_t quotient = 0;
    for (int bit = 63; bit >= 0; --bit) {
        const bool carry = (rest >> 63) != 0;
        rest = (rest << 1) | ((low >> bit) & 1);
        quotient <<= 1;
        if (carry || rest >= divisor) {
            rest -= divisor;
            quotient |= 1;
        }
    }
    return round_up && rest != 0 && quotient != largest ? quotient + 1 : quotient;
}

} // namespace portable

#if defined(__GNUC__)

constexpr bool add_overflows(std::int64_t a, std::int64_t b, std::int64_t& sum) noexcept
{
    return __builtin_add_overflow(a, b, &sum);
}

constexpr bool subtract_overflows(std::int64_t a, std::int64_t b, std::int64_t& result) noexcept
{
    return __builtin_sub_overflow(a, b, &result);
}

constexpr bool multiply_overflows(std::int64_t a, std::int64_t b, std::int64_t& result) noexcept
{
    return __builtin_mul_overflow(a, b, &result);
}

constexpr bool multiply_overflows(std::uint64_t a, std::uint64_t b, std::uint64_t& result) noexcept
{
    return __builtin_mul_overflow(a, b, &result);
}

#else

using portable::add_overflows;
using portable::multiply_overflows;
using portable::subtract_overflows;

#endif

#if defined(__SIZEOF_INT128__)

constexpr wide_product full_product(std::uint64_t a, std::uint64_t b) noexcept
{
    __extension__ using wide = unsigned __int128;
    const wide product = wide(a) * b;
    return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
}

constexpr std::uint64_t multiply_divide(std::uint64_t a, std::uint64_t b, std::uint64_t divisor,
                                        bool round_up) noexcept
{
    __extension__ using wide = unsigned __int128;
    const wide product = wide(a) * b;
    const wide quotient = product / divisor + (round_up && product % divisor != 0 ? 1 : 0);
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    return quotient > largest ? largest : static_cast<std::uint64_t>(quotient);
}

#else

using portable::full_product;
using portable::multiply_divide;

#endif

} // namespace turnstile::inline v0_1::detail
