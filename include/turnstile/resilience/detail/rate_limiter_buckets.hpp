// SPDX-License-Identifier: BSL-1.0
// The buckets of a rate limiter, one for each bandwidth. A permit must be available in all of them.
// rate_limiter_schedule derives from this class and adds the bookings of reservations.
//
// The first bucket is one word:
//   bit 0        `disabled`: the fast path is disabled, and only the holder of the state's lock
//                changes the word
//   bits 1..63   the time at which the bucket is full again, in ticks of its rule since `origin_`
//
// While the fast path is enabled, a compare-and-swap of that word takes permits. It is disabled
// while operations wait or bookings are outstanding, and always if there are several buckets,
// because these cannot be changed in one step.
//
// Invariant: no compare-and-swap that was prepared under earlier limits succeeds, however many
// changes of the limits were made in the meantime. While the fast path is enabled, the word only
// grows. A refund lowers the word and therefore records the largest value in `peak_`; a change of
// the limits moves the origin such that the word becomes larger than it has ever been.
#pragma once

#include <turnstile/core/threading.hpp>
#include <turnstile/resilience/detail/rate_limiter_records.hpp>
#include <turnstile/resilience/gcra.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class TURNSTILE_EXPORT rate_limiter_buckets {
public:
    // Limits that are about to replace others, with all the memory that this needs. The constructor
    // throws if the limits are invalid.
    struct prepared_limits {
        explicit prepared_limits(std::vector<bandwidth> l);
        std::vector<bandwidth> limits;
        std::vector<gcra> rules; // of all buckets but the first
        std::vector<gcra::ticks> full;
    };

    rate_limiter_buckets(std::vector<bandwidth> limits, nanoseconds now);
    rate_limiter_buckets(const rate_limiter_buckets&) = delete;
    rate_limiter_buckets& operator=(const rate_limiter_buckets&) = delete;

    // The rule that the limits break, or null.
    static const char* problem(const std::vector<bandwidth>& limits) noexcept;

    // The largest number of permits that one request may take.
    std::uint64_t burst() const noexcept { return burst_.load(std::memory_order_relaxed); }

    enum class fast_result { taken, refused, disabled };

    // The fast path, without the lock.
    fast_result try_take(nanoseconds now, std::uint64_t n) noexcept
    {
        fast_result result = fast_result::taken;
        const auto charge = [&](std::uint64_t& word) noexcept {
            if (word & disabled) {
                result = fast_result::disabled;
                return false;
            }
            const gcra rule = first_rule();
            const gcra::ticks time = rule.at(since_origin(now));
            const gcra::ticks full = word >> 1;
            if (n - 1 >= rule.burst() || !rule.allows(full, time, n)) {
                result = fast_result::refused;
                return false;
            }
            result = fast_result::taken;
            word = rule.charged(full, time, n) << 1;
            return true;
        };
        word_.update(charge, std::memory_order_acq_rel);
        return result;
    }
    fast_result try_take(nanoseconds now, std::uint64_t n, rate_limiter_receipt& receipt) noexcept;

    // The functions below are called under the lock, and the functions that change a bucket only
    // while the fast path is disabled.
    void disable_fast_path() noexcept;
    // Does nothing if there are several buckets.
    void enable_fast_path() noexcept;

    nanoseconds allowed_at(nanoseconds now, std::uint64_t n, std::uint64_t ahead) const noexcept;
    rate_limiter_receipt take(charge_time when, std::uint64_t n) noexcept;
    // Returns false, and changes nothing, if the permits were taken under earlier limits.
    bool refund(nanoseconds now, std::uint64_t n, const rate_limiter_receipt& receipt) noexcept;

    const std::vector<bandwidth>& limits() const noexcept { return limits_; }
    // Exchanges the limits. The earlier ones are left in `next`, to be freed without the lock.
    void change(prepared_limits& next, nanoseconds now) noexcept;

    // The word of the first bucket; tests check its growth.
    std::uint64_t word() const noexcept { return word_.load(std::memory_order_relaxed); }

protected:
    ~rate_limiter_buckets() = default;

    bool is_single() const noexcept { return rules_.empty(); }
    nanoseconds origin() const noexcept
    {
        return nanoseconds(origin_.load(std::memory_order_acquire));
    }
    nanoseconds since_origin(nanoseconds now) const noexcept
    {
        return saturating_sub(now, origin());
    }
    // The tick for which n permits are charged to a bucket that is full at `full`.
    gcra::ticks tick_of(const gcra& rule, gcra::ticks full, charge_time when,
                        std::uint64_t n) const noexcept
    {
        const nanoseconds time = since_origin(when.time);
        return when.became_allowed
                   ? rule.reached(time, rule.allowed_at(full, std::min(n, rule.burst())))
                   : rule.at(time);
    }
    // The time at which the bucket is full after `ahead` further permits are taken.
    gcra::ticks full_after(const gcra& rule, gcra::ticks full, nanoseconds now,
                           std::uint64_t ahead) const noexcept
    {
        return ahead == 0 ? full : rule.charged(full, rule.at(since_origin(now)), ahead);
    }

    // Calls f(i, rule, full) for each bucket.
    template <class F>
    void each(F f) const noexcept
    {
        f(std::size_t(0), first_rule(), first_full());
        for (std::size_t i = 0; i != rules_.size(); ++i)
            f(i + 1, rules_[i], full_[i]);
    }

private:
    static constexpr std::uint64_t disabled = 1;

    // The loads acquire: a reader that sees a rule newer than its word also sees that the fast path
    // was disabled in between, and its compare-and-swap fails.
    gcra first_rule() const noexcept
    {
        return {scale_.load(std::memory_order_acquire), interval_.load(std::memory_order_acquire),
                burst_and_mode_.load(std::memory_order_acquire)};
    }
    void set_first_rule(const gcra& rule, nanoseconds origin) noexcept;
    gcra::ticks first_full() const noexcept { return word() >> 1; }
    void set_first_full(gcra::ticks full) noexcept
    {
        word_.store(full << 1 | disabled, std::memory_order_release);
    }
    // Calls f(rule, full) for each bucket; f may change `full`.
    template <class F>
    void change_each(F f) noexcept;
    nanoseconds time_of(const gcra& rule, gcra::ticks t) const noexcept
    {
        const nanoseconds whole(static_cast<std::int64_t>(t / rule.scale()));
        return saturating_add(origin(), whole);
    }
    nanoseconds not_full_until(const rate_limiter_receipt& receipt) const noexcept;

    policy_atomic<Threading, std::uint64_t> word_{0};
    policy_atomic<Threading, gcra::ticks> scale_{1};
    policy_atomic<Threading, gcra::ticks> interval_{1};
    policy_atomic<Threading, gcra::ticks> burst_and_mode_{0};
    policy_atomic<Threading, std::int64_t> origin_{0};
    policy_atomic<Threading, std::uint64_t> refunds_{0};
    policy_atomic<Threading, std::uint64_t> burst_{0};
    gcra::ticks peak_ = 0; // the first bucket was never full later when a refund lowered it
    std::vector<bandwidth> limits_;
    std::vector<gcra> rules_; // of all buckets but the first
    std::vector<gcra::ticks> full_;

    // The most recent refunds. All permits that were taken after `full` were in effect taken
    // earlier, by `amount`.
    struct refund_record {
        nanoseconds full;
        nanoseconds amount;
    };
    std::array<refund_record, 16> recent_{};
};

extern template class rate_limiter_buckets<thread_safe>;
extern template class rate_limiter_buckets<strand_confined>;

} // namespace turnstile::inline v0_1::detail
