// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/resilience/detail/rate_line.hpp>
#include <turnstile/resilience/detail/rate_waiter.hpp>
#include <turnstile/resilience/gcra.hpp>

#include <boost/intrusive/set.hpp>

#include <algorithm>
#include <cstdint>

namespace turnstile::inline v0_1::detail {

struct keyed_waiter;

// The bucket of one key, in one word: the time at which it is full again; or, while there is a
// line for it, the first waiter, who keeps both meanwhile.
class key_slot {
public:
    keyed_waiter* head() const noexcept
    {
        return word_ & 1 ? reinterpret_cast<keyed_waiter*>(word_ - 1) : nullptr;
    }
    void set_head(keyed_waiter& w) noexcept { word_ = reinterpret_cast<std::uintptr_t>(&w) + 1; }
    // Only without a head.
    gcra::ticks full() const noexcept { return word_ >> 1; }
    void set_full(gcra::ticks full) noexcept { word_ = full << 1; }

private:
    static_assert(sizeof(std::uintptr_t) <= sizeof(std::uint64_t));
    std::uint64_t word_ = 0;
};

using due_hook =
    boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

struct keyed_waiter : rate_waiter, due_hook {
    using rate_waiter::rate_waiter;
    key_slot* slot = nullptr;

    // While it is the first to wait for its key.
    rate_line line;
    gcra::ticks full = 0;
    nanoseconds due{};
};

struct by_due {
    using type = nanoseconds;
    const nanoseconds& operator()(const keyed_waiter& w) const noexcept { return w.due; }
};

// The bucket of a key as rate_line needs it; see there.
struct key_bucket {
    const gcra& rule;
    nanoseconds origin;
    std::uint64_t refunds;
    gcra::ticks full;

    std::uint64_t burst() const noexcept { return rule.burst(); }
    nanoseconds since(nanoseconds now) const noexcept { return saturating_sub(now, origin); }
    gcra::ticks at(nanoseconds now) const noexcept { return rule.at(since(now)); }
    nanoseconds opens(nanoseconds now, std::uint64_t n, std::uint64_t ahead) const noexcept
    {
        const gcra::ticks then = ahead == 0 ? full : rule.charged(full, at(now), ahead);
        return saturating_add(origin, rule.time_of(rule.opens(then, std::min(n, burst()))));
    }
    rate_moment due(nanoseconds now, std::uint64_t n, nanoseconds from) const noexcept
    {
        const nanoseconds open = opens(now, n, 0);
        return {std::max(open, from), open >= from};
    }
    nanoseconds expected(nanoseconds now, std::uint64_t n, const rate_line& line) const noexcept
    {
        return opens(now, n, line.need());
    }
    bool can_add(nanoseconds now, std::uint64_t n, const rate_line& line) const noexcept
    {
        return rule.charged(full, at(now), line.need() + n) != gcra::end_of_time;
    }
    rate_stamp take(rate_moment when, std::uint64_t n) noexcept
    {
        const gcra::ticks time =
            when.is_opening ? rule.reached(since(when.time), rule.opens(full, n)) : at(when.time);
        const auto before = static_cast<std::int64_t>(std::max(full, time) / rule.scale());
        full = rule.charged(full, time, n);
        return {when.time, saturating_add(origin, nanoseconds(before)), refunds};
    }
    // Nothing is reserved here, and the line is as simple as the bucket.
    void apply_due_promises(nanoseconds) noexcept {}
    bool has_promised() const noexcept { return false; }
    void joining(rate_waiter&, nanoseconds, const rate_line&) noexcept {}
    void note_change() noexcept {}

    // What a change of the limits adds to the number of refunds.
    static constexpr std::uint64_t one_change = std::uint64_t(1) << 32;

    // If somebody else has given something back since, that may have been to the same bucket: then
    // it is not known how long it could not have been full. What was taken by earlier limits is
    // not given back: it was earned at another rate.
    void give_back(nanoseconds now, std::uint64_t n, const rate_stamp& stamp) noexcept
    {
        if (refunds - stamp.refunds >= one_change)
            return;
        const nanoseconds not_full = stamp.refunds == refunds ? stamp.full : stamp.taken;
        const nanoseconds idle = std::max(saturating_sub(now, not_full), nanoseconds::zero());
        full = rule.refunded(full, n, rule.at(idle));
    }
};

} // namespace turnstile::inline v0_1::detail
