// SPDX-License-Identifier: BSL-1.0
// SIGTERM stops a server on two threads, in order: it accepts no more connections and its timers
// end, its background jobs are completed, its sessions may continue until a deadline, after which
// the rest is cancelled.
#include <turnstile/channel/queue.hpp>
#include <turnstile/sync/counter.hpp>
#include <turnstile/work/cancellation_source.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <atomic>
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
        : io(context), stop(context), loops(stop.child()), looping(context), working(context),
          running(context), jobs(context, 100),
          acceptor(context, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0))
    {
    }

    asio::io_context& io;
    turnstile::cancellation_source stop;  // everything
    turnstile::cancellation_source loops; // what ends first: the accept loop and the timers
    turnstile::counter looping;           // loops that have not ended
    turnstile::counter working;           // workers
    turnstile::counter running;           // sessions
    turnstile::queue<int> jobs;
    std::atomic<int> done = 0;
    tcp::acceptor acceptor;
};

// Starts a part of the server that `source` cancels and `parts` counts. Each has a strand, because
// two threads run the context.
void start(server& s, asio::awaitable<void> part, turnstile::cancellation_source& source,
           turnstile::counter& parts)
{
    parts.add(1);
    asio::co_spawn(asio::make_strand(s.io), std::move(part),
                   source.bind([&parts](std::exception_ptr) { parts.sub(1); }));
}

asio::awaitable<void> session(tcp::socket socket)
{
    std::string line;
    for (;;) { // until the client leaves, or the session is cancelled
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
        start(s, session(std::move(socket)), s.stop, s.running);
    }
}

asio::awaitable<void> shut_down(server& s)
{
    s.stop.cancel_after(500ms); // the deadline, after which the rest is cancelled
    s.loops.cancel();
    co_await s.looping.async_wait_zero();
    fmt::print("no more connections, no more timers\n");
    s.jobs.close(); // the jobs that are queued are still done
    co_await s.working.async_wait_zero();
    fmt::print("{} background jobs are done\n", s.done.load());
    co_await s.running.async_wait_zero();
    fmt::print("all sessions have ended{}\n",
               s.stop.is_cancelled() ? ", the last one was cancelled" : "");
}
// [/server]

asio::awaitable<void> tick()
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (;;) {
        timer.expires_after(1ms);
        co_await timer.async_wait(asio::use_awaitable);
    }
}

asio::awaitable<void> worker(server& s)
{
    for (;;) {
        co_await s.jobs.async_pop(); // throws when the queue is closed and empty
        co_await asio::post(asio::use_awaitable);
        ++s.done;
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
    asio::signal_set signals(io, SIGTERM);
    turnstile::counter answered(io);

    const auto main_loop = [&]() -> asio::awaitable<void> {
        start(s, accept_loop(s), s.loops, s.looping);
        start(s, tick(), s.loops, s.looping);
        start(s, worker(s), s.stop, s.working);
        const auto address = s.acceptor.local_endpoint();
        for (const bool stays : {false, true})
            asio::co_spawn(asio::make_strand(io), client(address, stays, answered), asio::detached);
        co_await answered.async_wait_at_least(2);
        for (int i = 0; i != 20; ++i)
            co_await s.jobs.async_push(i);
        std::raise(SIGTERM);
        co_await signals.async_wait(asio::use_awaitable);
        co_await shut_down(s);
    };
    asio::co_spawn(asio::make_strand(io), main_loop, asio::detached);
    std::thread other([&] { io.run(); });
    io.run();
    other.join();
    fmt::print("the server has stopped\n");
}
