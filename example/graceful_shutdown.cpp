// SPDX-License-Identifier: BSL-1.0
// SIGTERM stops a server on two threads, in order: it accepts no more connections, its background
// job ends, its sessions may continue until a deadline, and are then cancelled.
#include <turnstile/sync/counter.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/work/cancellation_source.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <utility>

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

// [server]
struct server {
    explicit server(asio::io_context& context)
        : io(context), stop(context), sessions(stop.child()), running(context),
          acceptor(context, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0))
    {
    }

    asio::io_context& io;
    turnstile::cancellation_source stop;     // everything
    turnstile::cancellation_source sessions; // cancelled after the deadline
    turnstile::counter running;              // sessions
    tcp::acceptor acceptor;
};

asio::awaitable<void> session(tcp::socket socket)
{
    std::string line;
    for (;;) { // until the client leaves, or the session is cut off
        const auto n = co_await asio::async_read_until(socket, asio::dynamic_buffer(line), '\n',
                                                       asio::use_awaitable);
        co_await asio::async_write(socket, asio::buffer(line.data(), n), asio::use_awaitable);
        line.erase(0, n);
    }
}

asio::awaitable<void> accept_loop(server& s)
{
    for (;;) {
        tcp::socket socket = co_await s.acceptor.async_accept(asio::use_awaitable);
        s.running.add(1);
        // Each session has a strand, because two threads run the context.
        asio::co_spawn(asio::make_strand(s.io), session(std::move(socket)),
                       s.sessions.bind([&s](std::exception_ptr) { s.running.sub(1); }));
    }
}

asio::awaitable<void> shut_down(server& s, turnstile::cancellation_source& accepting,
                                turnstile::cancellation_source& jobs)
{
    fmt::print("no more connections\n");
    accepting.cancel();
    fmt::print("background jobs end\n");
    jobs.cancel();
    s.sessions.cancel_after(50ms); // the deadline of the sessions
    co_await s.running.async_wait_zero();
    fmt::print("all sessions have ended{}\n",
               s.sessions.is_cancelled() ? ", the last one was cut off" : "");
}
// [/server]

asio::awaitable<void> tick(asio::io_context& io)
{
    asio::steady_timer timer(io);
    for (;;) {
        timer.expires_after(1ms);
        co_await timer.async_wait(asio::use_awaitable);
    }
}

// Sends a line, and after the answer either leaves or stays connected.
asio::awaitable<void> client(tcp::endpoint address, bool stays, turnstile::counter& answered)
{
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(address, asio::use_awaitable);
    co_await asio::async_write(socket, asio::buffer("hello\n", 6), asio::use_awaitable);
    std::string answer;
    co_await asio::async_read_until(socket, asio::dynamic_buffer(answer), '\n',
                                    asio::use_awaitable);
    answered.add(1);
    if (stays)
        co_await asio::async_read_until(socket, asio::dynamic_buffer(answer), "never",
                                        asio::use_awaitable);
}

int main()
{
    asio::io_context io;
    server s(io);
    turnstile::cancellation_source accepting = s.stop.child();
    turnstile::cancellation_source jobs = s.stop.child();
    asio::signal_set signals(io, SIGTERM);
    turnstile::counter answered(io);

    const auto main_loop = [&]() -> asio::awaitable<void> {
        asio::co_spawn(asio::make_strand(io), accept_loop(s), accepting.bind(asio::detached));
        asio::co_spawn(asio::make_strand(io), tick(io), jobs.bind(asio::detached));
        const auto address = s.acceptor.local_endpoint();
        for (const bool stays : {false, true})
            asio::co_spawn(asio::make_strand(io), client(address, stays, answered), asio::detached);
        co_await answered.async_wait_at_least(2);
        std::raise(SIGTERM);
        co_await signals.async_wait(asio::use_awaitable);
        co_await shut_down(s, accepting, jobs);
    };
    asio::co_spawn(asio::make_strand(io), main_loop, asio::detached);
    std::thread other([&] { io.run(); });
    io.run();
    other.join();
    fmt::print("the server has stopped\n");
}
