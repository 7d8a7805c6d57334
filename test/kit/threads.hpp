// SPDX-License-Identifier: BSL-1.0
// Real threads, for the stress tests.
#pragma once

#include "kit/joining_thread.hpp"

#include <boost/asio/io_context.hpp>

#include <atomic>
#include <thread>
#include <vector>

namespace kit {

// How often to repeat something: less often where a sanitizer makes everything slow.
constexpr int rounds(int n) noexcept
{
#if TURNSTILE_SANITIZED
    return n / 10;
#else
    return n;
#endif
}

// Runs the context on several threads, to the end.
inline void run_on_threads(boost::asio::io_context& io, int threads = 4)
{
    std::vector<joining_thread> pool;
    for (int i = 0; i != threads; ++i)
        pool.emplace_back([&io] { io.run(); });
}

// Boost.Test is not for several threads at a time: what they find wrong is counted.
class expectation {
public:
    void operator()(bool right) noexcept { failures_ += right ? 0 : 1; }
    int failures() const noexcept { return failures_; }

private:
    std::atomic<int> failures_ = 0;
};

} // namespace kit
