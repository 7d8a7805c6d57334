// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/util/checked_arithmetic.hpp>
#include <turnstile/resilience/gcra.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace turnstile::inline v0_1 {
namespace {

using ticks = gcra::ticks;

constexpr ticks longest = gcra::end_of_time >> 2;

} // namespace

bandwidth per_second(double rate, std::uint64_t burst) noexcept
{
    bandwidth b{0, std::chrono::seconds(1), burst};
    if (!(rate > 0) || rate > 1e9)
        return b;
    double parts = rate;
    if (parts != std::floor(parts)) {
        b.period = std::chrono::seconds(1'000'000);
        parts = std::floor(rate * 1e6);
    }
    b.permits = static_cast<std::uint64_t>(parts);
    return b;
}

gcra::gcra(const bandwidth& b) noexcept : burst_(b.burst), smooth_(b.mode == shaping::smooth)
{
    const auto period = static_cast<ticks>(b.period.count());
    const ticks common = std::gcd(period, b.permits);
    scale_ = std::min(b.permits / common, finest);
    interval_ = std::min(detail::multiply_divide(period, scale_, b.permits, true), +end_of_time);
}

const char* gcra::problem(const bandwidth& b) noexcept
{
    if (b.permits == 0)
        return "permits must be at least 1";
    if (b.period.count() <= 0)
        return "period must be positive";
    if (b.burst == 0)
        return "burst must be at least 1";
    if (b.permits > static_cast<std::uint64_t>(b.period.count()))
        return "permits must be at most one for each nanosecond of the period";
    if (b.burst > longest || product(b.burst, gcra(b).interval()) > longest)
        return "burst must be earned in 4 years or less";
    return nullptr;
}

ticks gcra::converted(const gcra& old, ticks full, nanoseconds now) const noexcept
{
    const ticks then = old.at(now);
    if (full <= then)
        return at(now);
    const ticks missing = detail::multiply_divide(full - then, interval_, old.interval_, true);
    return sum(at(now), std::min(missing, +end_of_time));
}

} // namespace turnstile::inline v0_1
