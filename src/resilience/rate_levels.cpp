#include <turnstile/resilience/detail/rate_levels.hpp>

#include <algorithm>
#include <utility>

namespace turnstile::detail {

template <class Threading>
rate_levels<Threading>::plan::plan(std::vector<bandwidth> l) : limits(std::move(l))
{
    throw_if(check(limits), "rate_limiter");
    for (std::size_t i = 1; i != limits.size(); ++i)
        rules.emplace_back(limits[i]);
    full.resize(rules.size());
}

template <class Threading>
error_code rate_levels<Threading>::check(const std::vector<bandwidth>& limits) noexcept
{
    const bool valid = !limits.empty() && std::all_of(limits.begin(), limits.end(), gcra::valid);
    return valid ? error_code() : make_error_code(errc::invalid_argument);
}

// The origin is a little before the start, so that the first bucket, full since then, can
// always be told from one that was changed.
template <class Threading>
rate_levels<Threading>::rate_levels(std::vector<bandwidth> limits, nanoseconds now)
    : origin_(saturating_sub(now, nanoseconds(1)))
{
    plan start(std::move(limits));
    set_first(gcra(start.limits.front()));
    hold();
    change(start, now);
    release(false);
}

template <class Threading>
template <class F>
void rate_levels<Threading>::each(F f) noexcept
{
    gcra::ticks full = first_full();
    const gcra::ticks before = full;
    f(first(), full);
    if (full != before)
        set_first_full(full);
    for (std::size_t i = 0; i != rules_.size(); ++i)
        f(rules_[i], full_[i]);
}

template <class Threading>
void rate_levels<Threading>::set_first(const gcra& rule) noexcept
{
    scale_.store(rule.scale(), std::memory_order_relaxed);
    interval_.store(rule.interval(), std::memory_order_relaxed);
    limit_.store(rule.burst_and_mode(), std::memory_order_relaxed);
}

template <class Threading>
auto rate_levels<Threading>::try_take(nanoseconds now, std::uint64_t n, rate_stamp& stamp) noexcept
    -> outcome
{
    stamp.taken = now;
    // Before the word: what is given back meanwhile may count twice then, but is never missed.
    stamp.refunds = refunds_.load(std::memory_order_acquire);
    const gcra rule = first();
    const gcra::ticks full = word_.load(std::memory_order_relaxed) >> 1;
    // What others take meanwhile only makes it later.
    stamp.full = std::max(
        now, saturating_add(origin_, nanoseconds(static_cast<std::int64_t>(full / rule.scale()))));
    return try_take(now, n);
}

template <class Threading>
void rate_levels<Threading>::hold() noexcept
{
    set_bits(word_, held);
}

template <class Threading>
void rate_levels<Threading>::release(bool keep) noexcept
{
    if (!keep && rules_.empty())
        word_.store(first_full() << 1, std::memory_order_release);
}

template <class Threading>
nanoseconds rate_levels<Threading>::opens(nanoseconds now, std::uint64_t n,
                                          std::uint64_t ahead) const noexcept
{
    nanoseconds latest = nanoseconds::min();
    each([&](const gcra& rule, gcra::ticks& full) {
        const gcra::ticks then = ahead == 0 ? full : rule.charged(full, rule.at(since(now)), ahead);
        const gcra::ticks open = rule.opens(then, std::min(n, rule.burst()));
        latest = std::max(latest, saturating_add(origin_, rule.time_of(open)));
    });
    return latest;
}

template <class Threading>
rate_stamp rate_levels<Threading>::take(nanoseconds now, std::uint64_t n) noexcept
{
    rate_stamp stamp{now, nanoseconds::max(), refunds_.load(std::memory_order_relaxed)};
    each([&](const gcra& rule, gcra::ticks& full) {
        const gcra::ticks time = rule.at(since(now));
        const auto before = static_cast<std::int64_t>(std::max(full, time) / rule.scale());
        stamp.full = std::min(stamp.full, saturating_add(origin_, nanoseconds(before)));
        full = rule.charged(full, time, n);
    });
    return stamp;
}

// Until when the bucket could not have been full without what was taken then, now that others
// may have given back what they had taken before. If too many have, or the limits were changed,
// it is not known better than at the time.
template <class Threading>
nanoseconds rate_levels<Threading>::not_full_until(const rate_stamp& stamp) const noexcept
{
    const std::uint64_t last = refunds_.load(std::memory_order_relaxed);
    if (last - stamp.refunds > recent_.size())
        return stamp.taken;
    nanoseconds full = stamp.full;
    for (std::uint64_t i = stamp.refunds; i != last; ++i) {
        const refund& r = recent_[i % recent_.size()];
        if (r.full <= full)
            full = saturating_sub(full, r.amount);
    }
    return std::max(stamp.taken, full);
}

template <class Threading>
void rate_levels<Threading>::give_back(nanoseconds now, std::uint64_t n,
                                       const rate_stamp& stamp) noexcept
{
    refund r{not_full_until(stamp), nanoseconds::zero()};
    const nanoseconds idle = std::max(saturating_sub(now, r.full), nanoseconds::zero());
    each([&](const gcra& rule, gcra::ticks& full) {
        const gcra::ticks after = rule.refunded(full, n, rule.at(idle));
        r.amount = std::max(r.amount, rule.time_of(full - after));
        full = after;
    });
    const std::uint64_t number = refunds_.load(std::memory_order_relaxed);
    recent_[number % recent_.size()] = r;
    refunds_.store(number + 1, std::memory_order_release);
}

template <class Threading>
std::uint64_t rate_levels<Threading>::available(nanoseconds now) const noexcept
{
    std::uint64_t least = burst();
    each([&](const gcra& rule, gcra::ticks& full) {
        least = std::min(least, rule.available(full, rule.at(since(now))));
    });
    return least;
}

template <class Threading>
void rate_levels<Threading>::change(plan& next, nanoseconds now) noexcept
{
    const nanoseconds time = since(now);
    const gcra old = first();
    const gcra rule(next.limits.front());
    const gcra::ticks before = first_full();
    gcra::ticks full = rule.converted(old, before, time);
    // Whoever has just looked at the old rule must not find the word it expects.
    if (full == before && (rule.scale() != old.scale() || rule.interval() != old.interval()))
        full = full <= rule.at(time) && full != 0 ? full - 1 : full + 1;
    set_first(rule);
    set_first_full(full);
    for (std::size_t i = 0; i != next.rules.size(); ++i) {
        next.full[i] = i < rules_.size() ? next.rules[i].converted(rules_[i], full_[i], time)
                                         : next.rules[i].at(time);
    }
    limits_.swap(next.limits);
    rules_.swap(next.rules);
    full_.swap(next.full);
    std::uint64_t least = rule.burst();
    for (const gcra& other : rules_)
        least = std::min(least, other.burst());
    burst_.store(least, std::memory_order_relaxed);
    // What stamps say is in the old measure: for them too many have given back since.
    refunds_.store(refunds_.load(std::memory_order_relaxed) + recent_.size() + 1,
                   std::memory_order_release);
}

template class rate_levels<thread_safe>;
template class rate_levels<strand_confined>;

} // namespace turnstile::detail
