// SPDX-License-Identifier: BSL-1.0
// Retries with jitter against a local TCP server that closes the connection, does not answer, is
// busy, and finally answers.

#include <turnstile/core/error.hpp>
#include <turnstile/resilience/retry.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

namespace {

// How the server treats a connection.
enum class mood { hang_up, be_silent, ask_for_patience, answer };

asio::awaitable<void> serve(tcp::acceptor& acceptor, std::vector<mood> moods)
{
    std::vector<tcp::socket> silent;
    for (mood now : moods) {
        tcp::socket client = co_await acceptor.async_accept(asio::use_awaitable);
        if (now == mood::be_silent)
            silent.push_back(std::move(client));
        else if (now == mood::ask_for_patience)
            co_await asio::async_write(client, asio::buffer("busy\n", 5), asio::use_awaitable);
        else if (now == mood::answer)
            co_await asio::async_write(client, asio::buffer("42\n", 3), asio::use_awaitable);
    }
}

std::string describe(const turnstile::retry_event& e)
{
    if (!e.error)
        return "the server was busy";
    if (e.error.code() == turnstile::errc::timed_out)
        return "no answer in time";
    return "the server hung up";
}

asio::awaitable<void> run(tcp::endpoint server)
{
    // [operation]
    const auto ask = [server]() -> asio::awaitable<std::string> {
        tcp::socket socket(co_await asio::this_coro::executor);
        co_await socket.async_connect(server, asio::use_awaitable);
        std::string answer;
        co_await asio::async_read_until(socket, asio::dynamic_buffer(answer), '\n',
                                        asio::use_awaitable);
        co_return answer;
    };
    // [/operation]

    // [options]
    auto budget = std::make_shared<turnstile::retry_budget>();
    const turnstile::retry_options options{
        .max_attempts = 5,
        .backoff = turnstile::backoff::exponential(1ms).capped(20ms).with_full_jitter(),
        .attempt_timeout = 300ms,
        .total_timeout = 10s,
        .budget = budget,
        .on_retry =
            [](const turnstile::retry_event& e) {
                fmt::print("Attempt {}: {}\n", e.attempt, describe(e));
            },
    };
    // [/options]

    // [results]
    const auto rules = turnstile::retry_on_results(
        options, [](std::exception_ptr e, const std::string& r) { return e || r == "busy\n"; },
        [](std::exception_ptr e, const std::string&) {
            return e ? std::nullopt : std::optional(2ms); // the delay that "busy" requests
        });
    // [/results]

    // [retry]
    const std::string answer = co_await turnstile::async_retry(rules, ask);
    // [/retry]
    fmt::print("The answer: {}", answer);
    fmt::print("Retries so far, on this budget: {}\n", budget->stats().withdrawals);
}

} // namespace

int main()
{
    asio::io_context io;
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    asio::co_spawn(
        io, serve(acceptor, {mood::hang_up, mood::be_silent, mood::ask_for_patience, mood::answer}),
        asio::detached);
    asio::co_spawn(io, run(acceptor.local_endpoint()), asio::detached);
    io.run();
}
