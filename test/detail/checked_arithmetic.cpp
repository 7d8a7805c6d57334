// SPDX-License-Identifier: BSL-1.0
// Both forms of the arithmetic: the compiler's builtins, where there are any, and standard C++.
#include <turnstile/detail/util/checked_arithmetic.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

namespace detail = turnstile::detail;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

// Numbers whose sums or products just fit or just overflow, and random ones.
std::vector<std::int64_t> numbers()
{
    std::vector<std::int64_t> result = {
        0,          1,          -1,           2,
        -2,         most,       least,        least + 1,
        most - 1,   most / 2,   most / 2 + 1, least / 2,
        3037000499, 3037000500, -3037000500,  std::int64_t{1} << 32};
    std::mt19937_64 random(1); // the same numbers each time
    for (int i = 0; i != 40; ++i)
        result.push_back(static_cast<std::int64_t>(random() >> (i % 64)));
    return result;
}

// Calls f with every pair of numbers.
template <class F>
void for_each_pair(F f)
{
    for (const std::int64_t a : numbers()) {
        for (const std::int64_t b : numbers())
            f(a, b);
    }
}

BOOST_AUTO_TEST_SUITE(checked_arithmetic)

BOOST_AUTO_TEST_CASE(overflow_is_detected_at_both_ends)
{
    std::int64_t result = 0;
    BOOST_TEST(!detail::portable::add_overflows(most - 1, 1, result));
    BOOST_TEST(result == most);
    BOOST_TEST(detail::portable::add_overflows(most, 1, result));
    BOOST_TEST(detail::portable::add_overflows(least, -1, result));
    BOOST_TEST(!detail::portable::subtract_overflows(-1, least, result));
    BOOST_TEST(result == most);
    BOOST_TEST(detail::portable::subtract_overflows(0, least, result));
    BOOST_TEST(!detail::portable::multiply_overflows(least / 2, 2, result));
    BOOST_TEST(result == least);
    BOOST_TEST(detail::portable::multiply_overflows(least, -1, result));
}

BOOST_AUTO_TEST_CASE(both_forms_agree_on_overflow)
{
    for_each_pair([](std::int64_t a, std::int64_t b) {
        const auto agree = [&](auto builtin, auto portable, auto x, auto y) {
            decltype(x) expected = 0;
            decltype(x) result = 0;
            const bool overflows = builtin(x, y, expected);
            BOOST_TEST(portable(x, y, result) == overflows, x << " and " << y);
            BOOST_TEST(result == expected, x << " and " << y);
        };
        agree([](auto x, auto y, auto& r) { return detail::add_overflows(x, y, r); },
              [](auto x, auto y, auto& r) { return detail::portable::add_overflows(x, y, r); }, a,
              b);
        agree([](auto x, auto y, auto& r) { return detail::subtract_overflows(x, y, r); },
              [](auto x, auto y, auto& r) { return detail::portable::subtract_overflows(x, y, r); },
              a, b);
        const auto multiply = [](auto x, auto y, auto& r) {
            return detail::multiply_overflows(x, y, r);
        };
        const auto portable = [](auto x, auto y, auto& r) {
            return detail::portable::multiply_overflows(x, y, r);
        };
        agree(multiply, portable, a, b);
        agree(multiply, portable, static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b));
    });
}

BOOST_AUTO_TEST_CASE(both_forms_agree_on_products_and_quotients)
{
    for_each_pair([](std::int64_t a, std::int64_t b) {
        const auto x = static_cast<std::uint64_t>(a);
        const auto y = static_cast<std::uint64_t>(b);
        BOOST_TEST((detail::full_product(x, y) == detail::portable::full_product(x, y)),
                   x << " * " << y);
        for (const std::uint64_t divisor :
             {std::uint64_t{1}, std::uint64_t{1'000'000'000}, largest >> 1, largest - 1, largest}) {
            for (const bool round_up : {false, true}) {
                BOOST_TEST(detail::multiply_divide(x, y, divisor, round_up) ==
                               detail::portable::multiply_divide(x, y, divisor, round_up),
                           x << " * " << y << " / " << divisor << (round_up ? ", up" : ""));
            }
        }
    });
    BOOST_TEST(detail::portable::multiply_divide(7, 3, 2, false) == 10U);
    BOOST_TEST(detail::portable::multiply_divide(7, 3, 2, true) == 11U);
    BOOST_TEST(detail::portable::multiply_divide(largest, largest, largest, true) == largest);
    BOOST_TEST(detail::portable::multiply_divide(largest, 2, 1, false) == largest);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
