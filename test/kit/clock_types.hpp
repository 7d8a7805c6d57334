// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>

namespace kit {

// The member types that the standard requires of a clock, for clocks that count nanoseconds.
template <class Clock>
struct clock_types {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<Clock, duration>;
    static constexpr bool is_steady = true;
};

} // namespace kit
