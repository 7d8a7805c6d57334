// SPDX-License-Identifier: BSL-1.0
// A session that reads from its socket, from its mailbox and waits for the end of the server, all
// at the same time. The operations that do not win are cancelled, and have taken nothing: a line
// that arrives together with a message is read in the next round.
#include <turnstile/channel/queue.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/work/all.hpp>
#include <turnstile/work/select.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <string>
#include <utility>
#include <variant>

namespace asio = boost::asio;
using asio::ip::tcp;

// [session]
asio::awaitable<void> session(tcp::socket socket, turnstile::queue<std::string>& mailbox,
                              turnstile::event& stopping)
{
    std::string received;
    for (;;) {
        const auto first = co_await turnstile::async_select(
            stopping.async_wait(asio::deferred), mailbox.async_pop(asio::deferred),
            asio::async_read_until(socket, asio::dynamic_buffer(received), '\n',
                                   asio::as_tuple(asio::deferred))); // wins with an error, too
        if (first.index() == 0) {
            fmt::print("session: the server stops\n");
            co_return;
        }
        if (first.index() == 1) {
            fmt::print("session: message {}\n", std::get<1>(first));
        } else {
            const auto [ec, length] = std::get<2>(first);
            if (ec)
                co_return; // the client has left
            fmt::print("session: line {}\n", received.substr(0, length - 1));
            received.erase(0, length);
            co_await asio::async_write(socket, asio::buffer("ok\n", 3), asio::use_awaitable);
        }
    }
}
// [/session]

asio::awaitable<std::string> fetch(std::string what)
{
    co_await asio::post(asio::use_awaitable); // stands for a request to a server
    co_return "the " + what;
}

asio::awaitable<void> client(tcp::endpoint server, turnstile::queue<std::string>& mailbox,
                             turnstile::event& stopping)
{
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(server, asio::use_awaitable);
    std::string message = "one";
    co_await mailbox.async_push(std::move(message));
    co_await asio::async_write(socket, asio::buffer("hello\n", 6), asio::use_awaitable);
    std::string answer;
    co_await asio::async_read_until(socket, asio::dynamic_buffer(answer), '\n',
                                    asio::use_awaitable);
    // [all]
    const auto [user, orders] = co_await turnstile::async_all(fetch("user"), fetch("orders"));
    // [/all]
    fmt::print("client: {}, {}\n", user, orders);
    stopping.set();
}

int main()
{
    asio::io_context io;
    turnstile::queue<std::string> mailbox(io, 8);
    turnstile::event stopping(io);
    tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));

    const auto serve = [&]() -> asio::awaitable<void> {
        tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
        co_await session(std::move(socket), mailbox, stopping);
    };
    asio::co_spawn(io, serve, asio::detached);
    asio::co_spawn(io, client(acceptor.local_endpoint(), mailbox, stopping), asio::detached);
    io.run();
}
