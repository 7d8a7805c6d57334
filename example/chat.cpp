// SPDX-License-Identifier: BSL-1.0
// A chat room over real sockets: every guest receives every line. The server and the guests are
// in this one process, and use the loopback interface.

#include <turnstile/channel/broadcast.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace asio::experimental::awaitable_operators;

namespace {

// ---- The server ------------------------------------------------------------------------

using room = turnstile::broadcast<std::string>;

// [chat-relay]
// Sends the lines of the room to one guest. Each line is stored once, for all guests.
asio::awaitable<void> relay(tcp::socket& socket, room::receiver_type lines)
{
    for (;;) {
        auto [ec, line] = co_await lines.async_receive(asio::as_tuple(asio::use_awaitable));
        if (ec)
            break; // the room is closed, and this guest has received every line
        if (line.missed() != 0) {
            const auto note = fmt::format("* you missed {} lines\n", line.missed());
            co_await asio::async_write(socket, asio::buffer(note), asio::use_awaitable);
        }
        co_await asio::async_write(socket, asio::buffer(*line), asio::use_awaitable);
    }
    socket.shutdown(tcp::socket::shutdown_send);
}
// [/chat-relay]

asio::awaitable<std::string> read_line(tcp::socket& socket, std::string& buffer)
{
    const auto n = co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer), '\n',
                                                   asio::use_awaitable);
    std::string line = buffer.substr(0, n - 1);
    buffer.erase(0, n);
    co_return line;
}

// Sends the lines of one guest to the room.
asio::awaitable<void> pass_on(tcp::socket& socket, std::string& buffer, const std::string& name,
                              room& everybody)
{
    for (;;) {
        const std::string line = co_await read_line(socket, buffer); // throws when the guest leaves
        if (line == "/close")
            everybody.close();
        else
            everybody.send(fmt::format("{}: {}\n", name, line));
    }
}

// [chat-serve]
asio::awaitable<void> serve(tcp::socket socket, room& everybody)
{
    std::string buffer;
    const std::string name = co_await read_line(socket, buffer);
    auto lines = everybody.subscribe(); // receives every line from here on
    everybody.send(fmt::format("* {} joined\n", name));
    co_await (relay(socket, std::move(lines)) || pass_on(socket, buffer, name, everybody));
}
// [/chat-serve]

asio::awaitable<void> listen(tcp::acceptor& acceptor, room& everybody, int guests)
{
    for (; guests != 0; --guests)
        asio::co_spawn(acceptor.get_executor(),
                       serve(co_await acceptor.async_accept(asio::use_awaitable), everybody),
                       asio::detached);
}

// ---- The guests ------------------------------------------------------------------------

struct reply {
    std::string to;
    std::string says;
};

// Stores every line that it reads, and replies to some of them.
asio::awaitable<void> visit(tcp::endpoint server, std::string name, std::vector<reply> replies,
                            std::vector<std::string>& heard)
{
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(server, asio::use_awaitable);
    co_await asio::async_write(socket, asio::buffer(name + "\n"), asio::use_awaitable);
    std::string buffer;
    try {
        for (;;) {
            heard.push_back(co_await read_line(socket, buffer));
            for (const auto& r : replies) {
                if (r.to == heard.back())
                    co_await asio::async_write(socket, asio::buffer(r.says + "\n"),
                                               asio::use_awaitable);
            }
        }
    } catch (const boost::system::system_error&) {
        // The server has closed the connection.
    }
}

} // namespace

int main()
{
    asio::io_context io;
    tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    room everybody(io, 16);
    asio::co_spawn(io, listen(acceptor, everybody, 3), asio::detached);

    std::vector<std::string> alice;
    std::vector<std::string> bob;
    std::vector<std::string> carol;
    const auto guests = [&]() -> asio::awaitable<void> {
        const auto server = acceptor.local_endpoint();
        auto lobby = everybody.subscribe(); // tells when the next guest may come
        const auto until = [&](std::string wanted) -> asio::awaitable<void> {
            while (*co_await lobby.async_receive() != wanted) {
            }
        };
        asio::co_spawn(
            io,
            visit(server, "alice", {{"* bob joined", "hi bob"}, {"bob: welcome", "/close"}}, alice),
            asio::detached);
        co_await until("* alice joined\n");
        asio::co_spawn(io,
                       visit(server, "bob",
                             {{"alice: hi bob", "hi alice"}, {"* carol joined", "welcome"}}, bob),
                       asio::detached);
        co_await until("bob: hi alice\n");
        asio::co_spawn(io, visit(server, "carol", {}, carol), asio::detached);
    };
    asio::co_spawn(io, guests(), asio::detached);
    io.run();

    const auto print = [](const char* name, const std::vector<std::string>& heard) {
        fmt::print("What {} heard:\n", name);
        for (const auto& line : heard)
            fmt::print("    {}\n", line);
    };
    print("alice", alice);
    print("bob", bob);
    print("carol", carol);
}
