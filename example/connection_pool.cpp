// SPDX-License-Identifier: BSL-1.0
// A pool of TCP connections that are checked with a ping. The server restarts; the pool notices,
// and replaces the broken connections.

#include <turnstile/work/resource_pool.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <string>
#include <utility>

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

namespace {

// Answers each line with the same line.
class echo_server {
public:
    explicit echo_server(const asio::any_io_executor& executor)
        : acceptor_(executor, {asio::ip::address_v4::loopback(), 0})
    {
        asio::co_spawn(executor, accept(), asio::detached);
    }
    tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }
    void drop_connections()
    {
        for (const auto& s : std::exchange(sockets_, {}))
            s->close();
    }
    void stop()
    {
        acceptor_.close();
        drop_connections();
    }

private:
    asio::awaitable<void> accept()
    {
        for (;;) {
            auto s =
                std::make_shared<tcp::socket>(co_await acceptor_.async_accept(asio::use_awaitable));
            sockets_.push_back(s);
            asio::co_spawn(acceptor_.get_executor(), serve(s), asio::detached);
        }
    }
    static asio::awaitable<void> serve(std::shared_ptr<tcp::socket> s)
    {
        char bytes[64];
        for (;;) {
            const std::size_t n =
                co_await s->async_read_some(asio::buffer(bytes), asio::use_awaitable);
            co_await asio::async_write(*s, asio::buffer(bytes, n), asio::use_awaitable);
        }
    }

    tcp::acceptor acceptor_;
    std::list<std::shared_ptr<tcp::socket>> sockets_;
};

// [connection]
class connection {
public:
    static asio::awaitable<connection> open(tcp::endpoint server)
    {
        connection c(co_await asio::this_coro::executor);
        co_await c.socket_.async_connect(server, asio::use_awaitable);
        co_return c;
    }
    asio::awaitable<std::string> query(std::string line)
    {
        line += '\n';
        co_await asio::async_write(socket_, asio::buffer(line), asio::use_awaitable);
        std::string answer;
        const auto n = co_await asio::async_read_until(socket_, asio::dynamic_buffer(answer), '\n',
                                                       asio::use_awaitable);
        co_return answer.substr(0, n - 1);
    }
    asio::awaitable<bool> ping() { co_return co_await query("ping") == "ping"; }

private:
    explicit connection(const asio::any_io_executor& executor) : socket_(executor) {}
    tcp::socket socket_;
};
// [/connection]

// [use]
asio::awaitable<void> ask(turnstile::resource_pool<connection>& connections, std::string question)
{
    auto conn = co_await connections.async_acquire(5s);
    try {
        fmt::print("{}\n", co_await conn->query(question));
    } catch (const std::exception&) {
        conn.discard(); // do not reuse this one
        throw;
    }
}
// [/use]

asio::awaitable<void> run()
{
    const auto executor = co_await asio::this_coro::executor;
    echo_server server(executor);
    // [pool-of-connections]
    turnstile::resource_pool<connection> connections(
        executor,
        {.min_size = 2,
         .max_size = 10,
         .idle_timeout = 10min,
         .max_lifetime = 30min,
         .create_timeout = 2s,
         .bypass_window = 0s}, // every connection is checked
        {.create = [&] { return connection::open(server.endpoint()); },
         .check = [](connection& c) { return c.ping(); }});
    // [/pool-of-connections]

    co_await ask(connections, "the first question");
    server.drop_connections();
    co_await ask(connections, "a question after the restart");
    const auto broken = connections.stats().evicted(turnstile::eviction_reason::check_failed);
    fmt::print("broken connections were replaced: {}\n", broken != 0);

    co_await connections.async_close(5s);
    server.stop();
}

} // namespace

int main()
{
    asio::io_context io(1);
    asio::co_spawn(io, run(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}
