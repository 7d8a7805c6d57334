// SPDX-License-Identifier: BSL-1.0
// The hand-written rate limiter: a mutex and the usual arithmetic.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace bench {

// A clock that stands still unless it is moved, so that only the limiter itself is measured.
struct stopped_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<stopped_clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept { return time_point(elapsed); }

    static inline duration elapsed = std::chrono::seconds(1);
};

template <class Clock>
struct bucket_level {
    double tokens;
    typename Clock::time_point last;

    bool take(double rate, double burst)
    {
        const auto now = Clock::now();
        const double earned = std::chrono::duration<double>(now - last).count() * rate;
        tokens = std::min(burst, tokens + earned);
        last = now;
        if (tokens < 1)
            return false;
        tokens -= 1;
        return true;
    }
};

template <class Clock>
class mutex_bucket {
public:
    mutex_bucket(double rate, double burst)
        : rate_(rate), burst_(burst), level_{burst, Clock::now()}
    {
    }

    bool try_acquire()
    {
        const std::scoped_lock lock(mutex_);
        return level_.take(rate_, burst_);
    }

private:
    std::mutex mutex_;
    double rate_;
    double burst_;
    bucket_level<Clock> level_;
};

// One bucket for each key; keys are never removed.
template <class Clock>
class mutex_buckets {
public:
    mutex_buckets(double rate, double burst) : rate_(rate), burst_(burst) {}

    bool try_acquire(std::uint64_t key)
    {
        const std::scoped_lock lock(mutex_);
        const auto level = levels_.try_emplace(key, bucket_level<Clock>{burst_, Clock::now()});
        return level.first->second.take(rate_, burst_);
    }

private:
    std::mutex mutex_;
    double rate_;
    double burst_;
    std::unordered_map<std::uint64_t, bucket_level<Clock>> levels_;
};

} // namespace bench
