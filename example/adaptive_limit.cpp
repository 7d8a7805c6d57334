// SPDX-License-Identifier: BSL-1.0
// A service slows down for a while and recovers; the limit of a bulkhead adapts to it. The clock is
// virtual, so the program does not wait, and its output is always the same.
#include <turnstile/resilience/bulkhead.hpp>

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iomanip>
#include <iostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct virtual_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<virtual_clock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept { return time_point(elapsed); }
    static inline duration elapsed{0};
};

using bulkhead =
    turnstile::basic_bulkhead<asio::any_io_executor, turnstile::thread_safe, virtual_clock>;

// Serves one call for each worker in 10 ms. With more calls than workers, all calls take longer.
struct backend {
    std::chrono::nanoseconds latency(std::size_t calls_out) const
    {
        const auto load = static_cast<double>(calls_out) / static_cast<double>(workers());
        return std::chrono::nanoseconds(static_cast<long>(10e6 * std::max(1.0, load)));
    }
    std::size_t workers() const
    {
        const bool is_slow = virtual_clock::elapsed >= 4s && virtual_clock::elapsed < 8s;
        return is_slow ? 8 : 40;
    }
};

// Keeps as many calls outstanding as the bulkhead admits, and gives a call up after 30 ms.
void simulate(const char* name, const turnstile::limit_options& adaptive)
{
    asio::io_context io;
    // [adaptive-bulkhead]
    bulkhead gate(io, {.limit = 20, .adaptive = adaptive});
    // [/adaptive-bulkhead]
    const backend service;
    virtual_clock::elapsed = 0s;

    struct call {
        std::chrono::nanoseconds end;
        std::size_t number;
        bool given_up;
        bulkhead::permit_type permit;
    };
    // Calls that end at the same time complete in the order of their start. Otherwise the standard
    // library's heap would determine the output.
    const auto later = [](const call& a, const call& b) {
        return std::tie(a.end, a.number) > std::tie(b.end, b.number);
    };
    std::vector<call> calls; // a heap; the first to complete is on top
    std::size_t started = 0;

    std::cout << name << '\n';
    for (auto next_line = 0s; next_line <= 12s;) {
        while (auto permit = gate.try_acquire()) {
            const auto latency = service.latency(calls.size() + 1);
            calls.push_back(
                {virtual_clock::elapsed + std::min<std::chrono::nanoseconds>(latency, 30ms),
                 ++started, latency > 30ms, std::move(permit)});
            std::push_heap(calls.begin(), calls.end(), later);
        }
        std::pop_heap(calls.begin(), calls.end(), later);
        call done = std::move(calls.back());
        calls.pop_back();
        virtual_clock::elapsed = done.end;
        if (done.given_up)
            done.permit.failure();
        else
            done.permit.success();

        if (virtual_clock::elapsed >= next_line) {
            const auto limit = gate.limit();
            std::cout << std::setw(4) << next_line.count() << " s, " << std::setw(2)
                      << service.workers() << " workers, limit " << std::setw(3) << limit << ' '
                      << std::string(limit / 2, '#') << '\n';
            next_line += 1s;
        }
    }
}

int main()
{
    // [adaptive-options]
    simulate("AIMD", turnstile::aimd_options{.maximum = 150});
    simulate("gradient", turnstile::gradient_options{.maximum = 150});
    // [/adaptive-options]
}
