// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/rate_levels.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

namespace turnstile::detail {

template <class Threading>
rate_levels<Threading>::plan::plan(std::vector<bandwidth> l) : limits(std::move(l))
{
    if (const char* what = problem(limits))
        throw_error(errc::invalid_argument, (std::string("rate_limiter: ") + what).c_str());
    for (std::size_t i = 1; i != limits.size(); ++i)
        rules.emplace_back(limits[i]);
    full.resize(rules.size());
}

template <class Threading>
const char* rate_levels<Threading>::problem(const std::vector<bandwidth>& limits) noexcept
{
    if (limits.empty())
        return "there must be a bandwidth";
    for (const bandwidth& b : limits) {
        if (const char* what = gcra::problem(b))
            return what;
    }
    return nullptr;
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

// A claim that is still here was dropped by its holder, who would keep this otherwise.
template <class Threading>
rate_levels<Threading>::~rate_levels()
{
    promised_.clear_and_dispose([](waiter* w) { delete static_cast<rate_claim*>(w); });
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
    stamp.reservations = reservations_.load(std::memory_order_acquire);
    // What others take meanwhile only makes it later.
    stamp.full = std::max(now, until(first(), first_full()));
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
        latest = std::max(latest, saturating_add(origin(), rule.time_of(open)));
    });
    return latest;
}

template <class Threading>
bool rate_levels<Threading>::can_take(nanoseconds now, std::uint64_t n) const noexcept
{
    bool result = true;
    each([&](const gcra& rule, gcra::ticks& full) {
        result = result && rule.charged(full, rule.at(since(now)), n) != gcra::end_of_time;
    });
    return result;
}

// Takes n permits now that are used at another time.
template <class Threading>
rate_stamp rate_levels<Threading>::take(nanoseconds now, std::uint64_t n, nanoseconds use) noexcept
{
    rate_stamp stamp{now, nanoseconds::max(), refunds_.load(std::memory_order_relaxed),
                     reservations_.load(std::memory_order_relaxed)};
    each([&](const gcra& rule, gcra::ticks& full) {
        const gcra::ticks time = rule.at(since(use));
        stamp.full = std::min(stamp.full, until(rule, std::max(full, time)));
        full = rule.charged(full, time, n);
    });
    return stamp;
}

template <class Threading>
void rate_levels<Threading>::reserve(rate_claim& claim, nanoseconds now) noexcept
{
    expire_promises(now);
    claim.slack = std::numeric_limits<std::uint64_t>::max();
    each([&](const gcra& rule, gcra::ticks& full) {
        const gcra::ticks use = rule.at(since(claim.ready_at));
        const std::uint64_t slack = full > use ? (full - use) / rule.interval() : 0;
        claim.slack = std::min(claim.slack, slack);
    });
    claim.stamp = take(now, claim.need, claim.ready_at);
    claim.number = claim.stamp.reservations + 1;
    claim.stamp.reservations = claim.number;
    reservations_.store(claim.number, std::memory_order_release);
    claim.is_promised = true;
    promised_.push_back(claim);
    expire_promises(now);
}

template <class Threading>
void rate_levels<Threading>::expire_promises(nanoseconds now) noexcept
{
    while (!promised_.empty() && as_claim(promised_.front()).ready_at <= now) {
        rate_claim& claim = as_claim(take_front(promised_));
        claim.is_promised = false;
        if (claim.is_dropped)
            delete &claim;
    }
}

// How many of n permits can be refunded that were taken before the reservations after the given
// number. What each of them holds back is kept with it; if they are too many to look at, the last
// one has it all.
template <class Threading>
std::uint64_t rate_levels<Threading>::refundable(std::uint64_t n,
                                                 std::uint64_t reservations) noexcept
{
    auto first = promised_.end();
    for (std::size_t i = 0; first != promised_.begin(); ++i) {
        const auto before = std::prev(first);
        if (as_claim(*before).number <= reservations)
            break;
        if (i == recent_.size()) {
            as_claim(promised_.back()).withheld += n;
            return 0;
        }
        first = before;
    }
    for (; first != promised_.end(); ++first) {
        rate_claim& claim = as_claim(*first);
        const std::uint64_t passes = std::min(n, claim.slack);
        claim.slack -= passes;
        claim.withheld += n - passes;
        n = passes;
    }
    return n;
}

template <class Threading>
void rate_levels<Threading>::cancel(rate_claim& claim, nanoseconds now) noexcept
{
    expire_promises(now);
    std::uint64_t n = claim.need;
    if (claim.is_promised) {
        // Without what is withheld here the bucket would be full earlier by that much.
        n += claim.withheld;
        nanoseconds earlier{};
        each([&](const gcra& rule, gcra::ticks&) {
            earlier = std::max(earlier, rule.time_of(rule.charged(0, 0, claim.withheld)));
        });
        claim.stamp.full = std::min(claim.stamp.full, saturating_sub(claim.stamp.full, earlier));
        if (claim.withheld != 0)
            claim.stamp.taken = nanoseconds::min();
        claim.is_promised = false;
        claim.waiter_hook::unlink();
    }
    give_back(now, n, claim.stamp);
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
    expire_promises(now);
    n = refundable(n, stamp.reservations);
    if (n == 0)
        return;
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
    // A compare-and-swap that began with the old rule must not find the word that it expects.
    if (full == before && (rule.scale() != old.scale() || rule.interval() != old.interval()))
        full = full <= rule.at(time) && full != 0 ? full - 1 : full + 1;
    for (std::size_t i = 0; i != next.rules.size(); ++i) {
        next.full[i] = i < rules_.size() ? next.rules[i].converted(rules_[i], full_[i], time)
                                         : next.rules[i].at(time);
    }
    set_first(rule);
    set_first_full(full);
    for (waiter& w : promised_)
        as_claim(w).slack = 0; // it was in the old measure
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
