// SPDX-License-Identifier: BSL-1.0
// A circuit breaker for each host: calls of a host that fails are refused, those of another pass.
#include <turnstile/resilience/keyed_circuit_breaker.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <iostream>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::call_outcome;

int main()
{
    asio::io_context io;
    int made = 0;
    // [keyed-breaker]
    turnstile::keyed_circuit_breaker<std::string> hosts(
        io, {.window = turnstile::consecutive_failures{2}, .open_for = 1h});
    hosts.add_listener([](const auto& change) {
        std::cout << change.key << ": " << to_string(change.from) << " -> " << to_string(change.to)
                  << '\n';
    });
    for (const std::string host : {"a", "b", "a", "b", "a", "b"}) {
        auto permit = hosts.try_acquire(host);
        if (!permit)
            continue;
        ++made;
        permit.report(host == "a" ? call_outcome::failure : call_outcome::success);
    }
    // [/keyed-breaker]
    std::cout << made << " calls made, " << hosts.stats().rejected << " rejected\n";
    std::cout << hosts.purge() << " key forgotten, " << hosts.size() << " remembered\n";
}
