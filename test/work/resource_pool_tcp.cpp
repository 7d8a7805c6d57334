// SPDX-License-Identifier: BSL-1.0
// A pool of TCP connections to a backend that is stopped, hung, reset and restarted while 100
// clients use the pool. The test proceeds when the clients have seen what it waits for; the only
// times are the options of the pool and the limit of each client.
#include <turnstile/sync/auto_reset_event.hpp>
#include <turnstile/work/resource_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using namespace std::chrono_literals;
using asio::ip::tcp;
using ts::error_code;

// Greets each connection with a byte, and returns the bytes that it receives.
class backend {
public:
    explicit backend(asio::io_context& io) : io_(io) {}

    void start()
    {
        acceptor_ = std::make_shared<tcp::acceptor>(io_, endpoint_);
        endpoint_ = acceptor_->local_endpoint(); // the same port after a restart
        asio::co_spawn(io_, accept(acceptor_), asio::detached);
    }
    void stop()
    {
        acceptor_->close();
        reset_connections();
    }
    // Accepts, and says nothing; or greets again.
    void set_silent(bool silent)
    {
        is_silent_ = silent;
        reset_connections();
    }
    void reset_connections()
    {
        for (auto& s : std::exchange(connections_, {})) {
            error_code ignored;
            s->set_option(asio::socket_base::linger(true, 0), ignored);
            s->close(ignored);
        }
    }
    tcp::endpoint endpoint() const { return endpoint_; }

private:
    using socket_ptr = std::shared_ptr<tcp::socket>;

    asio::awaitable<void> accept(std::shared_ptr<tcp::acceptor> acceptor)
    {
        while (acceptor->is_open()) {
            auto s = std::make_shared<tcp::socket>(io_);
            error_code ec;
            co_await acceptor->async_accept(*s, asio::redirect_error(asio::use_awaitable, ec));
            if (ec || !acceptor->is_open())
                co_return;
            connections_.push_back(s);
            asio::co_spawn(io_, serve(s, is_silent_), asio::detached);
        }
    }
    asio::awaitable<void> serve(socket_ptr s, bool is_silent)
    {
        char byte = '!';
        error_code ec;
        if (!is_silent)
            co_await asio::async_write(*s, asio::buffer(&byte, 1),
                                       asio::redirect_error(asio::use_awaitable, ec));
        while (!ec) {
            co_await s->async_read_some(asio::buffer(&byte, 1),
                                        asio::redirect_error(asio::use_awaitable, ec));
            if (!ec && !is_silent)
                co_await asio::async_write(*s, asio::buffer(&byte, 1),
                                           asio::redirect_error(asio::use_awaitable, ec));
        }
        connections_.remove(s);
    }

    asio::io_context& io_;
    tcp::endpoint endpoint_{asio::ip::address_v4::loopback(), 0};
    std::shared_ptr<tcp::acceptor> acceptor_;
    std::list<socket_ptr> connections_;
    bool is_silent_ = false;
};

struct connection {
    tcp::socket socket;

    asio::awaitable<void> echo()
    {
        char byte = '?';
        co_await asio::async_write(socket, asio::buffer(&byte, 1), asio::use_awaitable);
        co_await asio::async_read(socket, asio::buffer(&byte, 1), asio::use_awaitable);
    }
};

asio::awaitable<connection> connect(tcp::endpoint to)
{
    tcp::socket socket(co_await asio::this_coro::executor); // g++ 12 wants no braces around this
    co_await socket.async_connect(to, asio::use_awaitable);
    char byte = 0;
    co_await asio::async_read(socket, asio::buffer(&byte, 1), asio::use_awaitable);
    co_return connection{std::move(socket)};
}

asio::awaitable<bool> ping(connection& c)
{
    co_await c.echo();
    co_return true;
}

struct client {
    int served = 0;
    std::vector<error_code> errors{};

    bool has_seen(error_code ec) const
    {
        return std::find(errors.begin(), errors.end(), ec) != errors.end();
    }
};

struct fixture {
    static constexpr auto limit = 200ms;
    using pool_type = ts::resource_pool<connection>;

    // Notices an acquisition that has not completed when its limit has passed, and the handlers
    // that were ready by then have run.
    asio::awaitable<pool_type::lease_type> acquire_in_time()
    {
        const auto is_done = std::make_shared<bool>(false);
        const auto timer = std::make_shared<asio::steady_timer>(io);
        asio::post(io, [this, is_done, timer] { // when the acquisition has begun
            timer->expires_after(limit);
            if (!*is_done)
                timer->async_wait([this, is_done, timer](error_code) { judge(is_done, 10); });
        });
        struct at_end {
            std::shared_ptr<bool> is_done;
            std::shared_ptr<asio::steady_timer> timer;
            ~at_end()
            {
                *is_done = true;
                timer->cancel();
            }
        } const end{is_done, timer};
        co_return co_await pool.async_acquire(limit);
    }
    void judge(std::shared_ptr<bool> is_done, int rounds)
    {
        if (rounds != 0)
            asio::post(io, [this, is_done, rounds] { judge(is_done, rounds - 1); });
        else if (!*is_done)
            ++late;
    }

    asio::awaitable<void> run_client(client& c)
    {
        while (!is_over) {
            error_code ec;
            try {
                auto lease = co_await acquire_in_time();
                try {
                    co_await lease->echo();
                    ++c.served;
                } catch (...) {
                    lease.discard();
                }
            } catch (const boost::system::system_error& e) {
                ec = e.code();
            }
            if (ec && !c.has_seen(ec))
                c.errors.push_back(ec);
            progress.set();
            co_await asio::post(asio::use_awaitable);
        }
    }

    asio::awaitable<void> until_all(std::function<bool(const client&)> condition)
    {
        while (!std::all_of(clients.begin(), clients.end(), condition))
            co_await progress.async_wait();
    }
    // Every client is served again, and the backend was tried in vain at most once.
    asio::awaitable<void> until_full_service()
    {
        failures = 0;
        for (client& c : clients) {
            c.served = 0;
            c.errors.clear();
        }
        co_await until_all([](const client& c) { return c.served >= 5; });
        BOOST_TEST(failures <= 1);
        BOOST_TEST(!pool.last_error());
    }

    asio::io_context io;
    backend server{io};
    ts::auto_reset_event progress{io};
    std::array<client, 100> clients;
    int failures = 0; // of creations
    int late = 0;
    bool is_over = false;
    bool opened = (server.start(), true);
    pool_type pool{io,
                   {.min_size = 2,
                    .max_size = 10,
                    .create_timeout = 50ms,
                    .check_timeout = 50ms,
                    .bypass_window = 0s,
                    .create_backoff = ts::backoff::constant(20ms)},
                   {.create = [this] { return connect(server.endpoint()); }, .check = ping}};
};

BOOST_FIXTURE_TEST_SUITE(resource_pool_tcp, fixture)

BOOST_AUTO_TEST_CASE(clients_survive_a_backend_that_is_stopped_hung_reset_and_restarted)
{
    std::exception_ptr thrown;
    pool.add_listener([&](const ts::resource_pool_event& e) {
        failures += e.kind == ts::resource_pool_event_kind::create_failed ? 1 : 0;
    });
    for (client& c : clients)
        asio::co_spawn(io, run_client(c), asio::detached);
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            co_await until_full_service();
            for (const client& c : clients)
                BOOST_TEST(c.errors.empty());

            server.stop();
            co_await until_all(
                [](const client& c) { return c.has_seen(asio::error::connection_refused); });
            server.start();
            co_await until_full_service();

            server.set_silent(true);
            co_await until_all([](const client& c) { return c.has_seen(ts::errc::timed_out); });
            BOOST_TEST(pool.stats().is_down);
            server.set_silent(false);
            co_await until_full_service();

            server.reset_connections();
            co_await until_full_service();

            is_over = true;
            co_await pool.async_close();
            server.stop();
        },
        [&](std::exception_ptr e) { thrown = e; });
    io.run();
    BOOST_TEST(!thrown);
    BOOST_TEST(late == 0);
    BOOST_TEST(pool.stats().size == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
