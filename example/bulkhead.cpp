// SPDX-License-Identifier: BSL-1.0
// At most two calls at a time to a slow service; two more may wait, and further calls are refused.
#include <turnstile/resilience/bulkhead.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;

int main()
{
    asio::io_context io;
    // [bulkhead]
    turnstile::bulkhead bulkhead(io, {.limit = 2, .max_waiters = 2, .max_wait = 30s});
    // [/bulkhead]
    int inside = 0;
    int most = 0;

    const auto slow_service = [&]() -> asio::awaitable<void> {
        most = std::max(most, ++inside);
        for (int i = 0; i != 10; ++i)
            co_await asio::post(asio::use_awaitable);
        --inside;
    };

    const auto client = [&](int number) -> asio::awaitable<void> {
        // [bulkhead-call]
        try {
            co_await bulkhead.async_call(slow_service);
            std::cout << "client " << number << ": served\n";
        } catch (const turnstile::system_error& e) {
            std::cout << "client " << number << ": " << e.code().message() << '\n';
        }
        // [/bulkhead-call]
    };
    for (int number = 1; number <= 5; ++number)
        asio::co_spawn(io, client(number), asio::detached);
    io.run();
    std::cout << "at most " << most << " inside\n";

    // [bulkhead-permit]
    bulkhead.resize(3);
    auto permit = bulkhead.try_acquire(); // given back at the end of the scope
    // [/bulkhead-permit]
    std::cout << bulkhead.stats().in_flight << " of " << bulkhead.limit() << " taken\n";
}
