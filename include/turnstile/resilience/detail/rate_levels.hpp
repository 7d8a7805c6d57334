// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/threading.hpp>
#include <turnstile/resilience/detail/rate_line.hpp>
#include <turnstile/resilience/detail/rate_waiter.hpp>
#include <turnstile/resilience/gcra.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace turnstile::inline v0_1::detail {

// The buckets of one limiter, of which every permit must be in all.
//
// The first is in one word, which also says whether it is held. While it is not, permits are
// taken by a compare-and-swap; while it is, only by the holder of the lock that goes with it.
// Several buckets cannot change in one word, so then it is held for ever. It is also held while
// something is promised.
//
// Times in the buckets are counted from an origin. While the word is not held it only grows. What
// lowers it (a refund, new limits) notes how large it was, and a change of the limits moves the
// origin such that the word becomes larger than it ever was. So a compare-and-swap that began by
// an old rule fails, however many changes were made since.
//
// Each bucket holds what was used up to now. A reservation is used later: until then it is not in
// the buckets but among the promises, in the order of their times. The promises tell how late each
// bucket may be full again such that every one of them can be used at its time; no other request
// may make it later than that. So a cancelled reservation gives back all it had: it is
// taken out of the list.
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
            result = outcome::taken;
            word = rule.charged(full, time, n) << 1;
            return true;
        };
        word_.update(charge, std::memory_order_acq_rel);
        return result;
    }
    outcome try_take(nanoseconds now, std::uint64_t n, rate_stamp& stamp) noexcept;

    // Everything below is under the lock; what changes something, between hold() and release().
    void close_fast_path() noexcept;
    void release(bool keep) noexcept;

    // What the line needs of a Bucket; see rate_line.hpp. What is expected is exact for one
    // bucket without promises. Otherwise it follows from the tails, which a request that leaves
    // makes later than necessary. They are found anew as soon as that costs a look at no more than
    // 64 waiters for each change.
    rate_moment due(nanoseconds now, std::uint64_t n, nanoseconds from) noexcept;
    nanoseconds opens(nanoseconds now, std::uint64_t n, std::uint64_t ahead) const noexcept;
    nanoseconds expected(nanoseconds now, std::uint64_t n, const rate_line& line) noexcept;
    bool can_add(nanoseconds now, std::uint64_t n, const rate_line& line) const noexcept;
    rate_stamp take(rate_moment when, std::uint64_t n) noexcept;
    void apply_due_promises(nanoseconds now) noexcept;
    bool has_promised() const noexcept { return !promised_.empty(); }
    void joining(rate_waiter& w, nanoseconds now, const rate_line& line) noexcept;
    void note_change() noexcept { ++changes_; }

    // Promises claim.need permits for claim.ready_at, behind the line.
    void reserve(rate_promise& promise, nanoseconds now, const rate_line& line) noexcept;
    // The claim will not be used.
    void cancel(rate_promise& promise, nanoseconds now) noexcept;

    void give_back(nanoseconds now, std::uint64_t n, const rate_stamp& stamp) noexcept;
    std::uint64_t available(nanoseconds now) noexcept;

    const std::vector<bandwidth>& limits() const noexcept { return limits_; }

    // What else is known of a bucket.
    struct bounds {
        gcra::ticks latest = gcra::end_of_time; // if it is full later, a promise cannot be kept
        gcra::ticks tail = 0; // when it is full again, at the latest, behind promises and line
    };

    // Puts new limits in place of the old ones, which go to where the new ones were, to be
    // freed without the lock. Then measure() is to be called.
    struct plan {
        explicit plan(std::vector<bandwidth> l);
        std::vector<bandwidth> limits;
        std::vector<gcra> rules; // after the first
        std::vector<gcra::ticks> full;
        std::vector<bounds> around;
    };
    void change(plan& next, nanoseconds now) noexcept;
    // Finds the tails anew, from the promises and the line.
    void measure(nanoseconds now, const rate_line& line) noexcept;

private:
    static constexpr std::uint64_t held = 1;

    // A rule that is newer than the word must be seen together with the hold before it.
    gcra first() const noexcept
    {
        return {scale_.load(std::memory_order_acquire), interval_.load(std::memory_order_acquire),
                limit_.load(std::memory_order_acquire)};
    }
    void set_first(const gcra& rule, nanoseconds origin) noexcept;
    gcra::ticks first_full() const noexcept { return word_.load(std::memory_order_relaxed) >> 1; }
    void set_first_full(gcra::ticks full) noexcept
    {
        word_.store(full << 1 | held, std::memory_order_release);
    }
    nanoseconds origin() const noexcept
    {
        return nanoseconds(origin_.load(std::memory_order_acquire));
    }
    nanoseconds since(nanoseconds now) const noexcept { return saturating_sub(now, origin()); }
    nanoseconds until(const gcra& rule, gcra::ticks full) const noexcept
    {
        const nanoseconds whole(static_cast<std::int64_t>(full / rule.scale()));
        return saturating_add(origin(), whole);
    }
    // The time at which n permits are charged to a bucket that is full at `full`.
    gcra::ticks moment_of(const gcra& rule, gcra::ticks full, rate_moment when,
                          std::uint64_t n) const noexcept
    {
        const nanoseconds time = since(when.time);
        return when.is_opening ? rule.reached(time, rule.opens(full, std::min(n, rule.burst())))
                               : rule.at(time);
    }
    gcra::ticks behind(const gcra& rule, gcra::ticks full, nanoseconds now,
                       std::uint64_t ahead) const noexcept
    {
        return ahead == 0 ? full : rule.charged(full, rule.at(since(now)), ahead);
    }
    bool fits(nanoseconds now, rate_moment when, std::uint64_t n, std::uint64_t ahead) noexcept;
    void find_latest() noexcept;
    void forget(rate_promise& promise) noexcept;
    void settle_first() noexcept;
    bool has_simple(const rate_line& line) const noexcept
    {
        return promised_.empty() && (rules_.empty() || line.empty());
    }
    void check_tails(nanoseconds now, const rate_line& line) noexcept;
    nanoseconds tail_opens(std::uint64_t n) const noexcept;
    void append(rate_moment when, std::uint64_t n) noexcept;
    nanoseconds not_full_until(const rate_stamp& stamp) const noexcept;
    // Calls f(rule, full, bounds) for each bucket; f may change the last two.
    template <class F>
    void each(F f) noexcept;
    template <class F>
    void each(F f) const noexcept
    {
        const_cast<rate_levels*>(this)->each(f);
    }

    policy_atomic<Threading, std::uint64_t> word_{0};
    policy_atomic<Threading, gcra::ticks> scale_{1};
    policy_atomic<Threading, gcra::ticks> interval_{1};
    policy_atomic<Threading, gcra::ticks> limit_{0};
    policy_atomic<Threading, std::int64_t> origin_{0};
    policy_atomic<Threading, std::uint64_t> refunds_{0};
    policy_atomic<Threading, std::uint64_t> burst_{0};
    gcra::ticks peak_ = 0; // no word was larger before it was lowered
    std::vector<bandwidth> limits_;
    std::vector<gcra> rules_; // after the first
    std::vector<gcra::ticks> full_;
    std::vector<bounds> around_; // of all buckets

    boost::intrusive::list<rate_promise> promised_; // in the order of their times
    std::uint64_t promised_need_ = 0;
    std::uint64_t reservations_ = 0;
    bool latest_is_early_ = false; // `latest` may be earlier than necessary
    std::size_t changes_ = 0;      // since the tails were found

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

} // namespace turnstile::inline v0_1::detail
