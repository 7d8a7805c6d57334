// SPDX-License-Identifier: BSL-1.0
// A circuit breaker in front of a service that fails and recovers.
#include <turnstile/resilience/circuit_breaker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::circuit_state;

int main()
{
    asio::io_context io;
    // [circuit-breaker]
    turnstile::circuit_breaker breaker(
        io, {.window = turnstile::consecutive_failures{3}, .open_for = 50ms});
    // [/circuit-breaker]

    // [circuit-listener]
    breaker.add_listener([&](const turnstile::circuit_breaker_event& change) {
        if (change.to == circuit_state::open)
            std::cout << "Circuit OPEN after " << breaker.stats().failures << " failures\n";
        else if (change.to == circuit_state::half_open)
            std::cout << "Circuit HALF-OPEN after timeout\n";
    });
    // [/circuit-listener]

    bool is_down = false;
    const auto flaky_service = [&]() -> asio::awaitable<std::string> {
        if (is_down)
            throw std::runtime_error("service down");
        co_return "ok";
    };

    const auto client = [&]() -> asio::awaitable<void> {
        // [circuit-call]
        std::cout << "Success: " << co_await breaker.async_call(flaky_service) << '\n';
        // [/circuit-call]

        is_down = true;
        while (breaker.state() == circuit_state::closed) {
            try {
                co_await breaker.async_call(flaky_service);
            } catch (const std::runtime_error&) { // "service down"
            }
        }
        // [circuit-rejected]
        try {
            co_await breaker.async_call(flaky_service);
        } catch (const turnstile::rejection& e) {
            const bool soon = e.retry_after() > 0ms && e.retry_after() <= 50ms;
            std::cout << "Rejected: " << e.code().message() << (soon ? ", try again soon\n" : "\n");
        }
        // [/circuit-rejected]

        is_down = false;
        // [circuit-wait]
        co_await breaker.async_wait_state(circuit_state::half_open);
        co_await breaker.async_call(flaky_service);
        // [/circuit-wait]
        std::cout << "Success after recovery\n";
    };
    asio::co_spawn(io, client(), asio::detached);
    io.run();
}
