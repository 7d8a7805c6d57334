// SPDX-License-Identifier: BSL-1.0
// The bucket of one key, and the waiters for it. keyed_rate_limiter_state uses them, under its
// lock.
//
// A key without waiters costs one word. The line of a key exists only while operations
// wait for it; it is then kept, with the bucket, in its first waiter, and the word refers to that.
#pragma once

#include <turnstile/resilience/detail/rate_limiter_line.hpp>
#include <turnstile/resilience/detail/rate_limiter_records.hpp>
#include <turnstile/resilience/gcra.hpp>

#include <boost/intrusive/set.hpp>

#include <algorithm>
#include <cstdint>

namespace turnstile::inline v0_1::detail {

struct keyed_rate_limiter_waiter;

// One word, either of
//   bit 0 clear   bits 1..63 are the time at which the bucket is full again, in ticks
//   bit 0 set     the other bits are the address of the first waiter, the head of the line
class keyed_rate_limiter_word {
public:
    keyed_rate_limiter_waiter* head() const noexcept
    {
        return word_ & 1 ? reinterpret_cast<keyed_rate_limiter_waiter*>(word_ - 1) : nullptr;
    }
    void set_head(keyed_rate_limiter_waiter& w) noexcept
    {
        word_ = reinterpret_cast<std::uintptr_t>(&w) + 1;
    }
    // Requires that there is no head.
    gcra::ticks full() const noexcept { return word_ >> 1; }
    void set_full(gcra::ticks full) noexcept { word_ = full << 1; }

private:
    static_assert(sizeof(std::uintptr_t) <= sizeof(std::uint64_t));
    std::uint64_t word_ = 0;
};

using keyed_rate_limiter_due_hook =
    boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

// An operation that waits for permits of one key.
struct keyed_rate_limiter_waiter : rate_limiter_waiter, keyed_rate_limiter_due_hook {
    using rate_limiter_waiter::rate_limiter_waiter;
    keyed_rate_limiter_word* word = nullptr;

    // In use while the waiter is the first of its line.
    rate_limiter_line line;
    gcra::ticks full = 0;
    nanoseconds due{};
};

struct by_due {
    using type = nanoseconds;
    const nanoseconds& operator()(const keyed_rate_limiter_waiter& w) const noexcept
    {
        return w.due;
    }
};

// The Bucket of a key's line; see rate_limiter_line.hpp. It is a copy that lives for one visit.
struct keyed_rate_limiter_bucket {
    const gcra& rule;
    nanoseconds origin;
    std::uint64_t refunds;
    gcra::ticks full;

    std::uint64_t burst() const noexcept { return rule.burst(); }
    nanoseconds since(nanoseconds now) const noexcept { return saturating_sub(now, origin); }
    gcra::ticks at(nanoseconds now) const noexcept { return rule.at(since(now)); }
    nanoseconds allowed_at(nanoseconds now, std::uint64_t n, std::uint64_t ahead) const noexcept
    {
        const gcra::ticks then = ahead == 0 ? full : rule.charged(full, at(now), ahead);
        return saturating_add(origin, rule.time_of(rule.allowed_at(then, std::min(n, burst()))));
    }
    charge_time due(nanoseconds now, std::uint64_t n, nanoseconds from) const noexcept
    {
        const nanoseconds allowed = allowed_at(now, n, 0);
        return {std::max(allowed, from), allowed >= from};
    }
    nanoseconds expected(nanoseconds now, std::uint64_t n,
                         const rate_limiter_line& line) const noexcept
    {
        return allowed_at(now, n, line.permits());
    }
    bool can_add(nanoseconds now, std::uint64_t n, const rate_limiter_line& line) const noexcept
    {
        return rule.charged(full, at(now), line.permits() + n) != gcra::end_of_time;
    }
    rate_limiter_receipt take(charge_time when, std::uint64_t n) noexcept
    {
        const gcra::ticks time = when.became_allowed
                                     ? rule.reached(since(when.time), rule.allowed_at(full, n))
                                     : at(when.time);
        const auto before = static_cast<std::int64_t>(std::max(full, time) / rule.scale());
        full = rule.charged(full, time, n);
        return {when.time, saturating_add(origin, nanoseconds(before)), refunds};
    }
    // There are no reservations, and predictions follow from the bucket.
    void apply_due_bookings(nanoseconds) noexcept {}
    bool has_bookings() const noexcept { return false; }
    void joining(rate_limiter_waiter&, nanoseconds, const rate_limiter_line&) noexcept {}
    void note_change() noexcept {}

    // `refunds` counts the refunds of all keys of the state. If another was made since the permits
    // were taken, it may have been to this bucket: then the time of the grant is used.
    void refund(nanoseconds now, std::uint64_t n, const rate_limiter_receipt& receipt) noexcept
    {
        if (receipt.is_of_earlier_limits(refunds))
            return;
        const nanoseconds not_full =
            receipt.refunds_before == refunds ? receipt.not_full_until : receipt.taken_at;
        const nanoseconds idle = std::max(saturating_sub(now, not_full), nanoseconds::zero());
        full = rule.refunded(full, n, rule.at(idle));
    }
};

} // namespace turnstile::inline v0_1::detail
