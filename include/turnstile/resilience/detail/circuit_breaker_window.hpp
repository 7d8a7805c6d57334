// SPDX-License-Identifier: BSL-1.0
//
// The calls that a circuit breaker remembers, one class for each kind of window in
// circuit_breaker_options: failure_run for consecutive_failures, count_ring for count_window and
// time_ring for time_window. circuit_breaker_machine records each call, and compares the tally with
// its thresholds. The tally is kept up to date by each change: reading it never scans the calls.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/resilience/call_outcome.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace turnstile::inline v0_1::detail {

// The failed and slow calls since the last success.
class failure_run {
public:
    explicit failure_run(std::uint32_t threshold) noexcept : threshold_(threshold) {}

    void record(bool failed, bool slow) noexcept
    {
        if (!failed && !slow) {
            tally_ = {};
            return;
        }
        ++tally_.calls;
        tally_.failures += failed ? 1 : 0;
        tally_.slow += slow ? 1 : 0;
    }
    bool is_full() const noexcept { return tally_.calls >= threshold_; }
    const call_tally& tally() const noexcept { return tally_; }
    void clear() noexcept { tally_ = {}; }

private:
    std::uint32_t threshold_;
    call_tally tally_;
};

// The last `size` calls.
class TURNSTILE_EXPORT count_ring {
public:
    explicit count_ring(std::size_t size) : calls_(size) {}

    void record(bool failed, bool slow) noexcept;
    const call_tally& tally() const noexcept { return tally_; }
    void clear() noexcept;

private:
    struct call {
        bool failed = false;
        bool slow = false;
    };

    std::vector<call> calls_; // a ring; next_ is the oldest once it is full
    std::size_t next_ = 0;
    call_tally tally_;
};

// The calls of the last `length` of time, counted by bucket. Times must not decrease.
class TURNSTILE_EXPORT time_ring {
public:
    time_ring(nanoseconds length, std::uint32_t buckets)
        : bucket_length_(length / buckets), buckets_(buckets)
    {
    }

    void record(bool failed, bool slow, nanoseconds now) noexcept;
    // The calls that are in the window at `now`.
    const call_tally& tally(nanoseconds now) noexcept;
    void clear() noexcept;

private:
    std::int64_t bucket_number(nanoseconds now) const noexcept;
    void forget_old(nanoseconds now) noexcept;
    call_tally& bucket(std::int64_t number) noexcept;

    nanoseconds bucket_length_;
    std::vector<call_tally> buckets_;
    std::int64_t newest_ = std::numeric_limits<std::int64_t>::min(); // number of the current bucket
    call_tally tally_;
};

} // namespace turnstile::inline v0_1::detail
