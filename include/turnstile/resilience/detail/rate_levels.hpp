#pragma once

#include <turnstile/core/detail/verdict.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/resilience/gcra.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace turnstile::detail {

// When permits were taken, so that they can be given back.
struct rate_stamp {
    nanoseconds taken{};
    nanoseconds full{};        // until then the bucket could not have been full without them
    std::uint64_t refunds = 0; // how often somebody had given back before
};

// The buckets of one limiter, of which every permit must be in all.
//
// The first is in one word, which also says whether it is held. While it is not, permits are
// taken by a compare-and-swap; while it is, only by whoever has the lock that goes with it.
// Several buckets cannot change in one word, so then it is held for ever.
template <class Threading>
class TURNSTILE_EXPORT rate_levels {
public:
    rate_levels(std::vector<bandwidth> limits, nanoseconds now);

    // Whether there can be such limits.
    static error_code check(const std::vector<bandwidth>& limits) noexcept;

    // The most that can be asked for.
    std::uint64_t burst() const noexcept { return burst_.load(std::memory_order_relaxed); }

    enum class outcome { taken, refused, held };

    // Whether n permits can ever be had.
    verdict check(std::uint64_t n) const noexcept
    {
        if (n == 0)
            return verdict::refused(errc::invalid_argument);
        return n > burst() ? verdict::refused(errc::too_large) : verdict::wait();
    }

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

    // When n permits are to be had, behind so many others who wait.
    nanoseconds opens(nanoseconds now, std::uint64_t n, std::uint64_t ahead = 0) const noexcept;
    // Takes n permits, whether or not they are there.
    rate_stamp take(nanoseconds now, std::uint64_t n) noexcept;
    void give_back(nanoseconds now, std::uint64_t n, const rate_stamp& stamp) noexcept;
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
    nanoseconds since(nanoseconds now) const noexcept { return saturating_sub(now, origin_); }
    nanoseconds not_full_until(const rate_stamp& stamp) const noexcept;
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
    nanoseconds origin_;
    cell<std::uint64_t> refunds_{0};
    cell<std::uint64_t> burst_{0};
    std::vector<bandwidth> limits_;
    std::vector<gcra> rules_; // after the first
    std::vector<gcra::ticks> full_;

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
