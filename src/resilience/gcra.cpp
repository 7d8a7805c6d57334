#include <turnstile/resilience/gcra.hpp>

#include <cmath>
#include <numeric>

namespace turnstile {
namespace {

using ticks = gcra::ticks;
__extension__ using unsigned_wide = unsigned __int128;

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
    const unsigned_wide exact = static_cast<unsigned_wide>(period) * scale_;
    const unsigned_wide rounded_up = (exact + b.permits - 1) / b.permits;
    interval_ = rounded_up > end_of_time ? end_of_time : static_cast<ticks>(rounded_up);
}

bool gcra::valid(const bandwidth& b) noexcept
{
    if (b.permits == 0 || b.burst == 0 || b.period.count() <= 0 || b.burst > longest)
        return false;
    if (b.permits > static_cast<std::uint64_t>(b.period.count()))
        return false;
    return product(b.burst, gcra(b).interval()) <= longest;
}

ticks gcra::converted(const gcra& old, ticks full, nanoseconds now) const noexcept
{
    const ticks then = old.at(now);
    if (full <= then)
        return at(now);
    const unsigned_wide missing = static_cast<unsigned_wide>(full - then) * interval_;
    const unsigned_wide scaled = (missing + old.interval_ - 1) / old.interval_;
    return sum(at(now), scaled > end_of_time ? end_of_time : static_cast<ticks>(scaled));
}

} // namespace turnstile
