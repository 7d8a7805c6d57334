// SPDX-License-Identifier: BSL-1.0
// A clock that stands still until a test moves it, and a timer that follows it.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>

namespace kit {

namespace asio = boost::asio;

struct manual_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<manual_clock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept { return time_point(elapsed()); }

    // Starts at a time of its own, so that "zero" is not special.
    static void reset() noexcept { elapsed() = std::chrono::hours(1); }

    // Moves the clock, back too if need be; nothing runs.
    static void shift(duration by) noexcept { elapsed() += by; }

    // Moves the clock, then runs what has become due.
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

// The reactor never sleeps for a manual clock: each poll looks at the timers again.
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

// So that naming the clock is enough.
template <>
struct boost::asio::wait_traits<kit::manual_clock> : kit::manual_wait_traits {
};
