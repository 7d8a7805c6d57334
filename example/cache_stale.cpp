// SPDX-License-Identifier: BSL-1.0
// A cache in front of a slow TCP service. While the service is down, the callers receive the last
// value; when it is back, they receive a new one.

#include <turnstile/work/cache.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

namespace {

// Answers each line with a number that grows.
class price_service {
public:
    explicit price_service(asio::io_context& io) : io_(io)
    {
        start({asio::ip::address_v4::loopback(), 0});
    }

    tcp::endpoint endpoint() const { return endpoint_; }
    void stop() { acceptor_.reset(); }
    void restart() { start(endpoint_); }

private:
    void start(const tcp::endpoint& where)
    {
        acceptor_.emplace(io_, where);
        endpoint_ = acceptor_->local_endpoint();
        asio::co_spawn(io_, serve(*acceptor_), [](const std::exception_ptr&) {}); // until it stops
    }
    asio::awaitable<void> serve(tcp::acceptor& acceptor)
    {
        for (;;)
            asio::co_spawn(io_, answer(co_await acceptor.async_accept(asio::use_awaitable)),
                           asio::detached);
    }
    asio::awaitable<void> answer(tcp::socket socket)
    {
        std::string line;
        co_await asio::async_read_until(socket, asio::dynamic_buffer(line), '\n',
                                        asio::use_awaitable);
        asio::steady_timer slow(io_, 5ms);
        co_await slow.async_wait(asio::use_awaitable);
        line.pop_back();
        const std::string reply = fmt::format("{} costs {}\n", line, ++price_);
        co_await asio::async_write(socket, asio::buffer(reply), asio::use_awaitable);
    }

    asio::io_context& io_;
    tcp::endpoint endpoint_;
    std::optional<tcp::acceptor> acceptor_;
    int price_ = 0;
};

// [load]
asio::awaitable<std::string> query(tcp::endpoint service, std::string item)
{
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(service, asio::use_awaitable);
    const std::string request = item + '\n';
    co_await asio::async_write(socket, asio::buffer(request), asio::use_awaitable);
    std::string reply;
    co_await asio::async_read_until(socket, asio::dynamic_buffer(reply), '\n', asio::use_awaitable);
    reply.pop_back();
    co_return reply;
}
// [/load]

using price_cache = turnstile::cache<std::string, std::string>;

asio::awaitable<void> show(price_cache& prices)
{
    const auto price = co_await prices.async_get("tea");
    fmt::print("{}\n", *price);
}

asio::awaitable<void> wait_until_expired()
{
    asio::steady_timer timer(co_await asio::this_coro::executor, 30ms);
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> run(price_service& service, price_cache& prices)
{
    co_await show(prices);
    co_await show(prices); // from the cache

    service.stop();
    co_await wait_until_expired();
    fmt::print("the service is down\n");
    co_await show(prices);
    // [error]
    try {
        co_await prices.async_get("coffee"); // has no old value
    } catch (const boost::system::system_error& e) {
        fmt::print("coffee: {}\n",
                   e.code() == asio::error::connection_refused ? "connection refused" : e.what());
    }
    // [/error]

    service.restart();
    fmt::print("the service is back\n");
    co_await show(prices);
    service.stop();
}

} // namespace

int main()
{
    asio::io_context io;
    price_service service(io);

    // [cache]
    turnstile::cache<std::string, std::string> prices(
        io, {.max_entries = 1000, .ttl = 20ms, .stale_if_error = 1h, .load_timeout = 2s},
        [&](const std::string& item) { return query(service.endpoint(), item); });
    // [/cache]
    asio::co_spawn(io, run(service, prices), asio::detached);
    io.run();

    const turnstile::cache_stats s = prices.stats();
    fmt::print("{} loads, {} failed, {} replaced by an old value\n", s.loads, s.failed,
               s.stale_errors);
}
