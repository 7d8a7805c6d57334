// SPDX-License-Identifier: BSL-1.0
// A pipeline of timeouts, a retry and a circuit breaker around HTTP GET requests to a local server,
// which becomes slow, fails, and recovers.

#include <turnstile/core/error.hpp>
#include <turnstile/resilience/pipeline.hpp>

#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/core.h>

#include <chrono>
#include <string>
#include <utility>

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using namespace std::chrono_literals;
using turnstile::errc;

namespace {

enum class mood { healthy, slow, broken };

struct server {
    mood now = mood::healthy;
    int requests = 0;

    asio::awaitable<void> answer(tcp::socket client)
    {
        boost::beast::flat_buffer buffer;
        http::request<http::empty_body> request;
        co_await http::async_read(client, buffer, request, asio::use_awaitable);
        ++requests;
        if (now == mood::slow) // until the client closes the connection
            co_await client.async_wait(tcp::socket::wait_read, asio::use_awaitable);
        http::response<http::string_body> response(
            now == mood::broken ? http::status::internal_server_error : http::status::ok, 11);
        response.body() = "hello";
        response.prepare_payload();
        co_await http::async_write(client, response, asio::use_awaitable);
    }

    asio::awaitable<void> run(tcp::acceptor& acceptor)
    {
        for (;;) {
            tcp::socket client = co_await acceptor.async_accept(asio::use_awaitable);
            asio::co_spawn(acceptor.get_executor(), answer(std::move(client)), asio::detached);
        }
    }
};

asio::awaitable<std::string> get(tcp::endpoint endpoint)
{
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(endpoint, asio::use_awaitable);
    http::request<http::empty_body> request(http::verb::get, "/", 11);
    request.set(http::field::host, "localhost");
    co_await http::async_write(socket, request, asio::use_awaitable);
    boost::beast::flat_buffer buffer;
    http::response<http::string_body> response;
    co_await http::async_read(socket, buffer, response, asio::use_awaitable);
    if (response.result() != http::status::ok)
        throw turnstile::system_error(make_error_code(boost::system::errc::io_error));
    co_return response.body();
}

std::string describe(const turnstile::failure& f)
{
    if (f.code() == errc::timed_out)
        return "no answer in time";
    if (f.code() == errc::circuit_open)
        return "rejected by the breaker";
    return "the server has a problem";
}

asio::awaitable<void> run(tcp::acceptor& acceptor, server& backend)
{
    const auto executor = co_await asio::this_coro::executor;
    const tcp::endpoint endpoint = acceptor.local_endpoint();

    // [pipeline]
    turnstile::circuit_breaker breaker(
        executor, {.window = turnstile::consecutive_failures{4}, .open_for = 50ms});
    const turnstile::retry_options options{
        .max_attempts = 2,
        .backoff = turnstile::backoff::exponential(1ms).with_full_jitter(),
        .retry_if = [](const turnstile::failure& f) { return f.code() != errc::circuit_open; },
    };
    const auto requests = turnstile::pipeline(executor)
                              .timeout(10s)             // for the whole call
                              .retry(options)           // two attempts
                              .circuit_breaker(breaker) // sees each attempt
                              .timeout(500ms);          // for each attempt
    // [/pipeline]

    // [run]
    const auto ask = [&](const char* when) -> asio::awaitable<void> {
        const int before = backend.requests;
        const auto request = [&] { return get(endpoint); };
        std::string outcome;
        try {
            outcome = co_await requests.async_call(request);
        } catch (...) {
            outcome = describe(std::current_exception());
        }
        fmt::print("{}: {}, requests: {}\n", when, outcome, backend.requests - before);
    };
    // [/run]

    co_await ask("Healthy");
    backend.now = mood::slow;
    co_await ask("Slow");
    backend.now = mood::broken;
    co_await ask("Broken");
    co_await ask("Open");
    backend.now = mood::healthy;
    co_await breaker.async_wait_state(turnstile::circuit_state::half_open);
    co_await ask("Recovered");
    fmt::print("Attempts in all: {}\n", requests.get<1>().stats().attempts);
    acceptor.close();
}

} // namespace

int main()
{
    asio::io_context io;
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    server backend;
    asio::co_spawn(io, backend.run(acceptor), asio::detached);
    asio::co_spawn(io, run(acceptor, backend), asio::detached);
    io.run();
}
