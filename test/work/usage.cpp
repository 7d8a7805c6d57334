// SPDX-License-Identifier: BSL-1.0
// The work layer as a user writes it, with the usual tokens and temporaries.
#include <turnstile/turnstile.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

struct page {
    std::string text;
};

asio::awaitable<page> fetch(std::string url)
{
    co_await asio::post(asio::use_awaitable);
    co_return page{"text of " + url};
}

asio::awaitable<void> download(std::string url) { co_await fetch(std::move(url)); }

asio::awaitable<void> ping_forever()
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (;;) {
        timer.expires_after(1h);
        co_await timer.async_wait(asio::use_awaitable);
    }
}

asio::awaitable<std::string> fetch_user() { co_return "user"; }

asio::awaitable<int> fetch_orders() { co_return 3; }

asio::awaitable<void> left() { co_await asio::post(asio::use_awaitable); }

asio::awaitable<void> right() { co_await asio::post(asio::use_awaitable); }

template <class Body>
void run(Body body)
{
    asio::io_context io;
    bool ended = false;
    asio::co_spawn(io, body(io), [&](std::exception_ptr e) {
        ended = true;
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
    BOOST_TEST(ended);
}

BOOST_AUTO_TEST_SUITE(usage)

BOOST_AUTO_TEST_CASE(a_cancellation_source_stops_a_session_and_an_operation)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));
        tcp::socket socket(io);
        co_await socket.async_connect(acceptor.local_endpoint(), asio::use_awaitable);
        std::array<char, 8> memory;
        const auto buffer = asio::buffer(memory);

        turnstile::cancellation_source stop(io);
        asio::co_spawn(io, ping_forever(), stop.bind(asio::detached));
        turnstile::cancellation_source requests = stop.child();
        asio::post(io, [&] { stop.cancel(); });
        BOOST_CHECK_THROW(co_await socket.async_read_some(buffer, stop.bind()),
                          boost::system::system_error);
        co_await stop.async_wait();
        BOOST_TEST(requests.is_cancelled());
    });
}

BOOST_AUTO_TEST_CASE(a_session_selects_among_mailbox_socket_and_shutdown)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));
        tcp::socket socket(io);
        co_await socket.async_connect(acceptor.local_endpoint(), asio::use_awaitable);
        std::array<char, 8> memory;
        const auto buffer = asio::buffer(memory);
        turnstile::queue<int> mailbox(io, 8);
        turnstile::cancellation_source stop(io);
        co_await mailbox.async_push(7);

        auto first = co_await turnstile::async_select(
            mailbox.async_pop(asio::deferred), socket.async_read_some(buffer, asio::deferred),
            stop.async_wait(asio::deferred));
        BOOST_TEST(first.index() == 0u);
        BOOST_TEST(std::get<0>(first) == 7);
        auto [user, orders] = co_await turnstile::async_all(fetch_user, fetch_orders);
        BOOST_TEST(user == "user");
        BOOST_TEST(orders == 3);
    });
}

BOOST_AUTO_TEST_CASE(a_group_limits_joins_and_collects)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        turnstile::task_group group(io,
                                    {.limit = 100, .policy = turnstile::join_policy::fail_fast});
        group.spawn(ping_forever);
        co_await group.async_spawn(download("a"));
        group.cancel();
        co_await group.async_join();

        const std::vector<std::string> urls{"a", "b", "c", "d", "e"};
        turnstile::task_group<page> pages(io, {.limit = 2});
        for (const auto& url : urls)
            pages.spawn_when_free(fetch(url));
        std::size_t seen = 0;
        while (auto p = co_await pages.async_next())
            seen += p->text.size();
        BOOST_TEST(seen == 5 * std::string("text of a").size());

        int total = co_await turnstile::async_scope(
            [&](turnstile::task_group<>& g) -> asio::awaitable<int> {
                g.spawn(left);
                g.spawn(right);
                co_return 2;
            });
        BOOST_TEST(total == 2);
    });
}

struct order {
    int id;
};

asio::awaitable<void> process(order& job)
{
    co_await asio::post(asio::use_awaitable);
    if (job.id == 2)
        throw std::runtime_error("order 2");
}

BOOST_AUTO_TEST_CASE(a_pool_of_workers_runs_jobs_and_reports_those_that_fail)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        int logged = 0;
        const auto log = [&](order& job, std::exception_ptr) { logged += job.id; };
        turnstile::worker_pool<order> pool(
            io,
            {.workers = 5,
             .capacity = 100,
             .job_timeout = 2s,
             .on_error = [&](order& job, std::exception_ptr why) { log(job, why); }},
            [&](order& job) -> asio::awaitable<void> { co_await process(job); });
        co_await pool.async_submit(order{1});
        co_await pool.async_submit(order{2});
        co_await pool.async_idle();
        BOOST_TEST(logged == 2);
        co_await pool.async_shutdown();
        co_await pool.async_shutdown(turnstile::shutdown_mode::discard, 5s);
        BOOST_TEST(pool.stats().done == 1u);
    });
}

BOOST_AUTO_TEST_CASE(a_guarded_value_and_a_lock_for_each_key)
{
    run([](asio::io_context& io) -> asio::awaitable<void> {
        turnstile::guarded<std::map<int, std::string>> names(io);
        {
            auto locked = co_await names.async_lock();
            (*locked)[1] = "one";
        }
        turnstile::keyed_mutex<std::string> locks(io);
        auto lock = co_await locks.async_lock("user:123");
        BOOST_TEST(locks.size() == 1u);
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
