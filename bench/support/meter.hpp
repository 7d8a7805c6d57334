// SPDX-License-Identifier: BSL-1.0
// Measures time and heap allocations between two points.
#pragma once

#include "heap.hpp"

#include <chrono>
#include <cstdint>
#include <ctime>

namespace bench {

// A workload calls begin() after its warm-up and end() when it is done, any number of times.
class meter {
public:
    // A workload on one thread is measured in the processor time of that thread, which hardly
    // depends on the load of the machine; a workload on several threads is measured in wall-clock
    // time.
    explicit meter(int threads = 1) noexcept : wall_clock_(threads > 1) {}

    void begin() noexcept
    {
        allocations_ -= heap::allocations();
        time_ -= now();
    }

    void end(std::int64_t operations) noexcept
    {
        time_ += now();
        allocations_ += heap::allocations();
        operations_ += operations;
    }

    double nanoseconds() const noexcept { return static_cast<double>(time_) / count(); }
    double allocations() const noexcept { return static_cast<double>(allocations_) / count(); }
    double seconds() const noexcept { return static_cast<double>(time_) * 1e-9; }

private:
    double count() const noexcept { return static_cast<double>(operations_); }

    std::int64_t now() const noexcept
    {
        timespec t{};
        clock_gettime(wall_clock_ ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
        return t.tv_sec * 1'000'000'000 + t.tv_nsec;
    }

    bool wall_clock_;
    std::int64_t time_ = 0;
    std::uint64_t allocations_ = 0; // wraps around in between
    std::int64_t operations_ = 0;
};

// Measures nothing, for workloads whose instructions valgrind counts.
struct no_meter {
    void begin() const noexcept {}
    void end(std::int64_t) const noexcept {}
};

} // namespace bench
