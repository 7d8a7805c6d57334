// SPDX-License-Identifier: BSL-1.0
// A time limit for a read from a socket. The server answers the second request only after the
// limit; the next read receives that answer.

#include <turnstile/core/error.hpp>
#include <turnstile/resilience/timeout.hpp>
#include <turnstile/sync/event.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

namespace {

asio::awaitable<void> serve(tcp::acceptor& acceptor, turnstile::event& gave_up)
{
    tcp::socket client = co_await acceptor.async_accept(asio::use_awaitable);
    std::array<char, 4> request;
    co_await asio::async_read(client, asio::buffer(request), asio::use_awaitable);
    co_await asio::async_write(client, asio::buffer("pong", 4), asio::use_awaitable);
    co_await asio::async_read(client, asio::buffer(request), asio::use_awaitable);
    co_await gave_up.async_wait();
    co_await asio::async_write(client, asio::buffer("late", 4), asio::use_awaitable);
}

asio::awaitable<void> ask(tcp::endpoint server, turnstile::event& gave_up)
{
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(server, asio::use_awaitable);

    // [deadline]
    const auto read = [&](auto limit) -> asio::awaitable<void> {
        std::array<char, 4> answer;
        auto [error, size] = co_await asio::async_read(
            socket, asio::buffer(answer),
            turnstile::timeout_after(limit, asio::as_tuple(asio::use_awaitable)));
        if (error == turnstile::errc::timed_out)
            fmt::print("No answer in time.\n");
        else
            fmt::print("The answer: {}\n", std::string_view(answer.data(), size));
    };
    // [/deadline]

    co_await asio::async_write(socket, asio::buffer("ping", 4), asio::use_awaitable);
    co_await read(10s);
    co_await asio::async_write(socket, asio::buffer("ping", 4), asio::use_awaitable);
    co_await read(20ms);
    gave_up.set();
    co_await read(10s); // the socket is still usable
}

} // namespace

int main()
{
    asio::io_context io;
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    turnstile::event gave_up(io);
    asio::co_spawn(io, serve(acceptor, gave_up), asio::detached);
    asio::co_spawn(io, ask(acceptor.local_endpoint(), gave_up), asio::detached);
    io.run();
}
