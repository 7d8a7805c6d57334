// SPDX-License-Identifier: BSL-1.0
// A clock that stands still until a test moves it, and a timer on that clock.
#pragma once

#include "kit/clock_types.hpp"

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>

namespace kit {

namespace asio = boost::asio;

struct manual_clock : clock_types<manual_clock> {
    static time_point now() noexcept { return time_point(elapsed()); }

    // Not zero, so that a test does not depend on the epoch.
    static void reset() noexcept { elapsed() = std::chrono::hours(1); }

    // Moves the clock, forward or back, and runs nothing.
    static void shift(duration by) noexcept { elapsed() += by; }

    // Moves the clock, then runs the handlers that are due.
    static void advance(asio::io_context& io, duration by)
    {
        elapsed() += by;
        io.restart();
        io.poll();
    }

private:
    static duration& elapsed() noexcept
    {
        static duration now = std::chrono::hours(1);
        return now;
    }
};

// The reactor never sleeps for a manual clock: each poll checks the timers again.
struct manual_wait_traits {
    static manual_clock::duration to_wait_duration(const manual_clock::duration&)
    {
        return manual_clock::duration::zero();
    }
    static manual_clock::duration to_wait_duration(const manual_clock::time_point&)
    {
        return manual_clock::duration::zero();
    }
};

using manual_timer = asio::basic_waitable_timer<manual_clock, manual_wait_traits>;

} // namespace kit

// The default traits of timers on the clock.
template <>
struct boost::asio::wait_traits<kit::manual_clock> : kit::manual_wait_traits {
};
