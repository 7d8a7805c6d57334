// SPDX-License-Identifier: BSL-1.0
// A token bucket: ten requests at once, and then five each second. Fifteen requests start at the
// same time. The program simulates the clock, so it does not take the time that it prints.

#include <turnstile/resilience/rate_limiter.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <chrono>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

// A clock that the program advances.
struct simulated_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<simulated_clock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept { return time_point(elapsed); }
    static inline duration elapsed{};
};

} // namespace

// The time that Asio sleeps before it reads the clock again.
template <>
struct asio::wait_traits<simulated_clock> {
    static std::chrono::nanoseconds to_wait_duration(std::chrono::nanoseconds) { return 0ns; }
    static std::chrono::nanoseconds to_wait_duration(simulated_clock::time_point) { return 0ns; }
};

namespace {

using token_bucket =
    turnstile::basic_rate_limiter<asio::any_io_executor, turnstile::thread_safe, simulated_clock>;

asio::awaitable<void> request(token_bucket& limiter, int number, int& completed)
{
    co_await limiter.async_acquire();
    fmt::print("{:.1f} s: request {}\n",
               std::chrono::duration<double>(simulated_clock::elapsed).count(), number);
    ++completed;
}

} // namespace

int main()
{
    asio::io_context io;
    token_bucket limiter(io, turnstile::per_second(5, 10));

    int completed = 0;
    for (int i = 1; i <= 15; ++i)
        asio::co_spawn(io, request(limiter, i, completed), asio::detached);

    io.poll();
    while (completed != 15) {
        simulated_clock::elapsed += 10ms;
        io.poll();
    }

    fmt::print("All requests completed — rate limited to 5/s with burst of 10\n");
}
