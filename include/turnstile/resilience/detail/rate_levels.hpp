// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/threading.hpp>
#include <turnstile/resilience/detail/rate_waiter.hpp>
#include <turnstile/resilience/gcra.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace turnstile::detail {

// The buckets of one limiter, of which every permit must be in all.
//
// The first is in one word, which also says whether it is held. While it is not, permits are
// taken by a compare-and-swap; while it is, only by whoever has the lock that goes with it.
// Several buckets cannot change in one word, so then it is held for ever.
//
// Times in the buckets are counted from an origin. A change of the limits changes the word, so that
// a compare-and-swap by the old rule fails.
//
// A reservation is charged when it is made, but used later. A refund of what was taken before it
// must leave the bucket so that the reservation can be used at the time that was promised. What
// cannot be refunded for that reason is kept with the reservation, and refunded with it.
template <class Threading>
class TURNSTILE_EXPORT rate_levels {
public:
    rate_levels(std::vector<bandwidth> limits, nanoseconds now);

    rate_levels(const rate_levels&) = delete;
    rate_levels& operator=(const rate_levels&) = delete;
    ~rate_levels();

    // Why there cannot be such limits, or null.
    static const char* problem(const std::vector<bandwidth>& limits) noexcept;

    // The most that can be asked for.
    std::uint64_t burst() const noexcept { return burst_.load(std::memory_order_relaxed); }

    enum class outcome { taken, refused, held };

    // Without the lock.
    outcome try_take(nanoseconds now, std::uint64_t n) noexcept
    {
        outcome result = outcome::taken;
        const auto charge = [&](std::uint64_t& word) noexcept {
            if (word & held) {
                result = outcome::held;
                return false;
            }
            const gcra rule = first();
            const gcra::ticks time = rule.at(since(now));
            const gcra::ticks full = word >> 1;
            if (n - 1 >= rule.burst() || !rule.allows(full, time, n)) {
                result = outcome::refused;
                return false;
            }
            word = rule.charged(full, time, n) << 1;
            return true;
        };
        word_.update(charge, std::memory_order_acq_rel);
        return result;
    }
    outcome try_take(nanoseconds now, std::uint64_t n, rate_stamp& stamp) noexcept;

    // Everything below is under the lock; what changes something, between hold() and release().
    void hold() noexcept;
    void release(bool keep) noexcept;

    // What the line needs of a Bucket; see rate_line.hpp.
    nanoseconds opens(nanoseconds now, std::uint64_t n, std::uint64_t ahead) const noexcept;
    bool can_take(nanoseconds now, std::uint64_t n) const noexcept;
    rate_stamp take(nanoseconds now, std::uint64_t n) noexcept { return take(now, n, now); }
    void reserve(rate_claim& claim, nanoseconds now) noexcept;

    void give_back(nanoseconds now, std::uint64_t n, const rate_stamp& stamp) noexcept;
    // A charged claim will not be used.
    void cancel(rate_claim& claim, nanoseconds now) noexcept;
    std::uint64_t available(nanoseconds now) const noexcept;

    const std::vector<bandwidth>& limits() const noexcept { return limits_; }

    // Puts new limits in place of the old ones, which go to where the new ones were, to be
    // freed without the lock.
    struct plan {
        explicit plan(std::vector<bandwidth> l);
        std::vector<bandwidth> limits;
        std::vector<gcra> rules; // after the first
        std::vector<gcra::ticks> full;
    };
    void change(plan& next, nanoseconds now) noexcept;

private:
    static constexpr std::uint64_t held = 1;

    gcra first() const noexcept
    {
        return {scale_.load(std::memory_order_relaxed), interval_.load(std::memory_order_relaxed),
                limit_.load(std::memory_order_relaxed)};
    }
    void set_first(const gcra& rule) noexcept;
    gcra::ticks first_full() const noexcept { return word_.load(std::memory_order_relaxed) >> 1; }
    void set_first_full(gcra::ticks full) noexcept
    {
        word_.store(full << 1 | held, std::memory_order_release);
    }
    nanoseconds origin() const noexcept { return origin_; }
    nanoseconds since(nanoseconds now) const noexcept { return saturating_sub(now, origin()); }
    nanoseconds until(const gcra& rule, gcra::ticks full) const noexcept
    {
        const nanoseconds whole(static_cast<std::int64_t>(full / rule.scale()));
        return saturating_add(origin(), whole);
    }
    nanoseconds not_full_until(const rate_stamp& stamp) const noexcept;
    rate_stamp take(nanoseconds now, std::uint64_t n, nanoseconds use) noexcept;
    static rate_claim& as_claim(waiter& w) noexcept { return static_cast<rate_claim&>(w); }
    void expire_promises(nanoseconds now) noexcept;
    std::uint64_t refundable(std::uint64_t n, std::uint64_t reservations) noexcept;
    // Calls f(rule, full) for each bucket; f may change `full`.
    template <class F>
    void each(F f) noexcept;
    template <class F>
    void each(F f) const noexcept
    {
        const_cast<rate_levels*>(this)->each(f);
    }

    template <class T>
    using cell = typename Threading::template cell<T>;

    cell<std::uint64_t> word_{0};
    cell<gcra::ticks> scale_{1};
    cell<gcra::ticks> interval_{1};
    cell<gcra::ticks> limit_{0};
    const nanoseconds origin_;
    cell<std::uint64_t> refunds_{0};
    cell<std::uint64_t> reservations_{0};
    cell<std::uint64_t> burst_{0};
    std::vector<bandwidth> limits_;
    std::vector<gcra> rules_; // after the first
    std::vector<gcra::ticks> full_;
    waiter_list promised_; // reservations whose time has not come, in the order of charging

    // The last times somebody gave something back, and what changed by that: all that was
    // taken after `full` was taken so much earlier.
    struct refund {
        nanoseconds full;
        nanoseconds amount;
    };
    std::array<refund, 16> recent_{};
};

extern template class rate_levels<thread_safe>;
extern template class rate_levels<strand_confined>;

} // namespace turnstile::detail
