// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/rate_limiter_buckets.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
rate_limiter_buckets<Threading>::prepared_limits::prepared_limits(std::vector<bandwidth> l)
    : limits(std::move(l))
{
    if (const char* what = problem(limits))
        throw_error(errc::invalid_argument, (std::string("rate_limiter: ") + what).c_str());
    for (std::size_t i = 1; i != limits.size(); ++i)
        rules.emplace_back(limits[i]);
    full.resize(rules.size());
}

template <class Threading>
const char* rate_limiter_buckets<Threading>::problem(const std::vector<bandwidth>& limits) noexcept
{
    if (limits.empty())
        return "there must be a bandwidth";
    for (const bandwidth& b : limits) {
        if (const char* what = gcra::problem(b))
            return what;
    }
    return nullptr;
}

template <class Threading>
rate_limiter_buckets<Threading>::rate_limiter_buckets(std::vector<bandwidth> limits,
                                                      nanoseconds now)
{
    prepared_limits start(std::move(limits));
    set_first_rule(gcra(start.limits.front()), now);
    disable_fast_path();
    change(start, now);
    enable_fast_path();
}

template <class Threading>
template <class F>
void rate_limiter_buckets<Threading>::change_each(F f) noexcept
{
    gcra::ticks full = first_full();
    f(first_rule(), full);
    set_first_full(full);
    for (std::size_t i = 0; i != rules_.size(); ++i)
        f(rules_[i], full_[i]);
}

template <class Threading>
void rate_limiter_buckets<Threading>::set_first_rule(const gcra& rule, nanoseconds origin) noexcept
{
    scale_.store(rule.scale(), std::memory_order_release);
    interval_.store(rule.interval(), std::memory_order_release);
    burst_and_mode_.store(rule.burst_and_mode(), std::memory_order_release);
    origin_.store(origin.count(), std::memory_order_release);
}

template <class Threading>
auto rate_limiter_buckets<Threading>::try_take(nanoseconds now, std::uint64_t n,
                                               rate_limiter_receipt& receipt) noexcept
    -> fast_result
{
    receipt.taken_at = now;
    // Read before the word: a refund in the meantime may count twice, but is never missed.
    receipt.refunds_before = refunds_.load(std::memory_order_acquire);
    // Permits that others take in the meantime only make this time later.
    receipt.not_full_until = std::max(now, time_of(first_rule(), first_full()));
    return try_take(now, n);
}

template <class Threading>
void rate_limiter_buckets<Threading>::disable_fast_path() noexcept
{
    set_bits(word_, disabled);
}

template <class Threading>
void rate_limiter_buckets<Threading>::enable_fast_path() noexcept
{
    if (is_single())
        word_.store(first_full() << 1, std::memory_order_release);
}

template <class Threading>
nanoseconds rate_limiter_buckets<Threading>::allowed_at(nanoseconds now, std::uint64_t n,
                                                        std::uint64_t ahead) const noexcept
{
    nanoseconds latest = nanoseconds::min();
    each([&](std::size_t, const gcra& rule, gcra::ticks full) {
        const gcra::ticks allowed =
            rule.allowed_at(full_after(rule, full, now, ahead), std::min(n, rule.burst()));
        latest = std::max(latest, saturating_add(origin(), rule.time_of(allowed)));
    });
    return latest;
}

template <class Threading>
rate_limiter_receipt rate_limiter_buckets<Threading>::take(charge_time when,
                                                           std::uint64_t n) noexcept
{
    rate_limiter_receipt receipt{when.time, nanoseconds::max(),
                                 refunds_.load(std::memory_order_relaxed)};
    change_each([&](const gcra& rule, gcra::ticks& full) {
        const gcra::ticks tick = tick_of(rule, full, when, n);
        receipt.not_full_until =
            std::min(receipt.not_full_until, time_of(rule, std::max(full, tick)));
        full = rule.charged(full, tick, n);
    });
    return receipt;
}

// The time of the receipt, minus the refunds of permits that were taken before. If more refunds
// were made than are recorded, the time of the grant is used: then the refund is too small, never
// too large.
template <class Threading>
nanoseconds
rate_limiter_buckets<Threading>::not_full_until(const rate_limiter_receipt& receipt) const noexcept
{
    const std::uint64_t last = refunds_.load(std::memory_order_relaxed);
    if (last - receipt.refunds_before > recent_.size())
        return receipt.taken_at;
    nanoseconds full = receipt.not_full_until;
    for (std::uint64_t i = receipt.refunds_before; i != last; ++i) {
        const refund_record& r = recent_[i % recent_.size()];
        if (r.full <= full)
            full = saturating_sub(full, r.amount);
    }
    return std::max(receipt.taken_at, full);
}

template <class Threading>
bool rate_limiter_buckets<Threading>::refund(nanoseconds now, std::uint64_t n,
                                             const rate_limiter_receipt& receipt) noexcept
{
    const std::uint64_t number = refunds_.load(std::memory_order_relaxed);
    if (receipt.is_of_earlier_limits(number))
        return false;
    peak_ = std::max(peak_, first_full());
    refund_record r{not_full_until(receipt), nanoseconds::zero()};
    const nanoseconds idle = std::max(saturating_sub(now, r.full), nanoseconds::zero());
    change_each([&](const gcra& rule, gcra::ticks& full) {
        const gcra::ticks after = rule.refunded(full, n, rule.at(idle));
        r.amount = std::max(r.amount, rule.time_of(full - after));
        full = after;
    });
    recent_[number % recent_.size()] = r;
    refunds_.store(number + 1, std::memory_order_release);
    return true;
}

template <class Threading>
void rate_limiter_buckets<Threading>::change(prepared_limits& next, nanoseconds now) noexcept
{
    const nanoseconds time = since_origin(now);
    const gcra rule(next.limits.front());
    peak_ = std::max(peak_, first_full());
    const auto missing = [&](const gcra& to, const gcra& from, gcra::ticks full) {
        return std::min(to.converted(from, full, time) - to.at(time), gcra::end_of_time >> 2);
    };
    // The new origin is `moved` before the present, so far that the new word exceeds `peak_`.
    const gcra::ticks lacks = missing(rule, first_rule(), first_full());
    const gcra::ticks rest = peak_ - std::min(peak_, lacks);
    const nanoseconds moved(static_cast<std::int64_t>(rest / rule.scale() + 1));
    for (std::size_t i = 0; i != next.rules.size(); ++i) {
        const gcra& to = next.rules[i];
        next.full[i] = to.at(moved);
        if (i < rules_.size())
            next.full[i] += missing(to, rules_[i], full_[i]);
    }
    set_first_rule(rule, saturating_sub(now, moved));
    set_first_full(lacks + rule.at(moved));
    limits_.swap(next.limits);
    rules_.swap(next.rules);
    full_.swap(next.full);
    std::uint64_t least = rule.burst();
    for (const gcra& other : rules_)
        least = std::min(least, other.burst());
    burst_.store(least, std::memory_order_relaxed);
    refunds_.store(refunds_.load(std::memory_order_relaxed) + rate_limiter_receipt::limits_change,
                   std::memory_order_release);
}

template class rate_limiter_buckets<thread_safe>;
template class rate_limiter_buckets<strand_confined>;

} // namespace turnstile::inline v0_1::detail
