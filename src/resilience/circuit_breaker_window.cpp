// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/circuit_breaker_window.hpp>

#include <algorithm>

namespace turnstile::inline v0_1::detail {
namespace {

void add(call_tally& tally, bool failed, bool slow) noexcept
{
    ++tally.calls;
    tally.failures += failed ? 1 : 0;
    tally.slow += slow ? 1 : 0;
}

} // namespace

void count_ring::record(bool failed, bool slow) noexcept
{
    call& oldest = calls_[next_];
    if (tally_.calls == calls_.size()) {
        --tally_.calls;
        tally_.failures -= oldest.failed ? 1 : 0;
        tally_.slow -= oldest.slow ? 1 : 0;
    }
    oldest = {failed, slow};
    add(tally_, failed, slow);
    next_ = next_ + 1 == calls_.size() ? 0 : next_ + 1;
}

void count_ring::clear() noexcept
{
    next_ = 0;
    tally_ = {};
}

void time_ring::record(bool failed, bool slow, nanoseconds now) noexcept
{
    forget_old(now);
    add(bucket(newest_), failed, slow);
    add(tally_, failed, slow);
}

const call_tally& time_ring::tally(nanoseconds now) noexcept
{
    forget_old(now);
    return tally_;
}

void time_ring::clear() noexcept
{
    std::fill(buckets_.begin(), buckets_.end(), call_tally());
    tally_ = {};
}

// Rounds towards minus infinity, because times before the clock's origin are negative.
std::int64_t time_ring::bucket_number(nanoseconds now) const noexcept
{
    const std::int64_t length = bucket_length_.count();
    return now.count() / length - (now.count() % length < 0 ? 1 : 0);
}

void time_ring::forget_old(nanoseconds now) noexcept
{
    const std::int64_t number = bucket_number(now);
    const auto size = static_cast<std::int64_t>(buckets_.size());
    if (number <= newest_)
        return;
    if (saturating_sub(nanoseconds(number), nanoseconds(newest_)).count() >= size)
        clear();
    while (tally_.calls != 0 && newest_ != number) {
        call_tally& oldest = bucket(++newest_);
        tally_.calls -= oldest.calls;
        tally_.failures -= oldest.failures;
        tally_.slow -= oldest.slow;
        oldest = {};
    }
    newest_ = number;
}

call_tally& time_ring::bucket(std::int64_t number) noexcept
{
    const auto size = static_cast<std::int64_t>(buckets_.size());
    const std::int64_t index = number % size;
    return buckets_[static_cast<std::size_t>(index < 0 ? index + size : index)];
}

} // namespace turnstile::inline v0_1::detail
