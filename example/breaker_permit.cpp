// SPDX-License-Identifier: BSL-1.0
// Permits of a circuit breaker, for code that is not an asynchronous operation; with a failure rate
// over a window, several probes, and an open time that grows.
#include <turnstile/resilience/circuit_breaker.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::call_outcome;

int status_of_request(int number) { return number % 2 == 0 ? 503 : 200; }

call_outcome judge(int status)
{
    if (status >= 500)
        return call_outcome::failure;
    return status >= 400 ? call_outcome::ignored : call_outcome::success;
}

int main()
{
    asio::io_context io;
    // [breaker-options]
    const turnstile::circuit_breaker_options options{
        .window = turnstile::count_window{20}, // the last 20 calls
        .failure_rate = 0.5,
        .minimum_calls = 10,
        .probes = 3,
        .success_threshold = 3,
        .probe_deadline = 10s,
        .open_for = 1h,
        .open_growth = 2.0, // 1 h, 2 h, 4 h... until it has closed
        .longest_open = 24h,
    };
    turnstile::circuit_breaker breaker(io, options);
    // [/breaker-options]
    int made = 0;
    for (int number = 0; number != 100; ++number) {
        // [breaker-permit]
        auto permit = breaker.try_acquire();
        if (!permit)
            continue; // permit.retry_after() says when to try again
        ++made;
        permit.report(judge(status_of_request(number)));
        // [/breaker-permit]
    }
    const auto stats = breaker.stats();
    std::cout << made << " calls made, " << stats.failures << " failed, " << stats.rejected
              << " rejected\n";
}
