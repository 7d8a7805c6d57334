// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/serial_executor.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using turnstile::detail::io_executor;
using turnstile::detail::pool_executor;
using turnstile::detail::serial_executor;
using turnstile::detail::serial_service;

namespace {

template <class Context>
auto make_serial(Context& context)
{
    using inner = typename Context::executor_type;
    auto& service = asio::use_service<serial_service>(context);
    return serial_executor<inner>(service.take(context.get_executor()));
}

} // namespace

BOOST_AUTO_TEST_SUITE(serial_executor_)

static_assert(asio::execution::is_executor<serial_executor<io_executor>>::value);
static_assert(std::is_constructible_v<asio::any_io_executor, serial_executor<io_executor>>);
static_assert(std::is_constructible_v<asio::any_io_executor, serial_executor<pool_executor>>);

BOOST_AUTO_TEST_CASE(posted_functions_run_in_order)
{
    asio::io_context io;
    const asio::any_io_executor serial = make_serial(io);
    std::string log;
    for (const char c : {'a', 'b', 'c'})
        asio::post(serial, [&log, c] { log += c; });
    BOOST_TEST(log.empty());
    io.run();
    BOOST_TEST(log == "abc");
}

BOOST_AUTO_TEST_CASE(a_dispatch_on_a_thread_of_the_context_runs_at_once)
{
    asio::io_context io;
    const asio::any_io_executor serial = make_serial(io);
    std::string log;
    asio::dispatch(serial, [&] { log += 'x'; }); // outside: posted
    BOOST_TEST(log.empty());
    asio::post(io, [&] {
        asio::dispatch(serial, [&] {
            log += 'a';
            asio::post(serial, [&] { log += 'c'; });
            asio::dispatch(serial, [&] { log += 'b'; }); // inside: at once
        });
        log += '.';
    });
    io.run();
    BOOST_TEST(log == "xab.c");
}

BOOST_AUTO_TEST_CASE(a_dispatch_does_not_overtake_a_posted_function)
{
    asio::io_context io;
    const asio::any_io_executor serial = make_serial(io);
    std::string log;
    asio::post(io, [&] {
        asio::post(serial, [&] { log += 'a'; });
        asio::dispatch(serial, [&] { log += 'b'; });
        BOOST_TEST(log.empty());
    });
    io.run();
    BOOST_TEST(log == "ab");
}

BOOST_AUTO_TEST_CASE(a_function_that_throws_does_not_lose_the_others)
{
    asio::io_context io;
    const asio::any_io_executor serial = make_serial(io);
    int ran = 0;
    asio::post(serial, [] { throw std::runtime_error("first"); });
    asio::post(serial, [&] { ++ran; });
    BOOST_CHECK_THROW(io.run(), std::runtime_error);
    io.run();
    BOOST_TEST(ran == 1);
}

BOOST_AUTO_TEST_CASE(long_queues_let_other_work_run)
{
    asio::io_context io;
    const asio::any_io_executor serial = make_serial(io);
    int ran = 0;
    int seen = 0;
    for (int i = 0; i != 1000; ++i)
        asio::post(serial, [&] { ++ran; });
    asio::post(io, [&] { seen = ran; });
    io.run();
    BOOST_TEST(ran == 1000);
    BOOST_TEST(seen < 1000);
}

BOOST_AUTO_TEST_CASE(only_one_function_runs_at_a_time_on_two_threads)
{
    asio::thread_pool pool(2);
    const asio::any_io_executor serial = make_serial(pool);
    int plain = 0; // not atomic: the thread sanitizer watches it
    std::atomic<int> inside{0};
    std::atomic<bool> overlapped{false};
    const auto enter = [&] {
        if (inside.fetch_add(1) != 0)
            overlapped = true;
        ++plain;
        inside.fetch_sub(1);
    };
    for (int i = 0; i != 2000; ++i) {
        asio::post(pool, [&] { asio::dispatch(serial, enter); });
        asio::post(serial, enter);
    }
    pool.join();
    BOOST_TEST(plain == 4000);
    BOOST_TEST(!overlapped);
}

BOOST_AUTO_TEST_CASE(queued_functions_are_destroyed_with_the_context)
{
    const auto owned = std::make_shared<int>(0);
    std::optional<asio::io_context> io(std::in_place);
    asio::any_io_executor serial = make_serial(*io);
    asio::post(serial, [owned, serial] {});
    asio::post(serial, [owned] {});
    io.reset();
    BOOST_TEST(owned.use_count() == 1);
    asio::post(serial, [owned, serial] {}); // destroyed at once
    BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_function_that_is_destroyed_may_post_again)
{
    struct posts_when_destroyed {
        asio::any_io_executor serial;
        std::shared_ptr<int> owned;
        posts_when_destroyed(asio::any_io_executor s, std::shared_ptr<int> o)
            : serial(std::move(s)), owned(std::move(o))
        {
        }
        posts_when_destroyed(posts_when_destroyed&&) = default;
        ~posts_when_destroyed()
        {
            if (owned)
                asio::post(serial, [o = owned, s = serial] {});
        }
        void operator()() {}
    };
    const auto owned = std::make_shared<int>(0);
    {
        asio::io_context io;
        const asio::any_io_executor serial = make_serial(io);
        asio::post(serial, posts_when_destroyed(serial, owned));
    }
    BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_coroutine_runs_on_it)
{
    asio::io_context io;
    const asio::any_io_executor serial = make_serial(io);
    int steps = 0;
    const auto walk = [&]() -> asio::awaitable<void> {
        for (; steps != 3; ++steps) {
            const asio::any_io_executor own = co_await asio::this_coro::executor;
            BOOST_TEST((own == serial));
            asio::steady_timer timer(own, std::chrono::steady_clock::time_point::min());
            co_await timer.async_wait(asio::use_awaitable);
        }
    };
    asio::co_spawn(serial, walk, asio::detached);
    io.run();
    BOOST_TEST(steps == 3);
}

BOOST_AUTO_TEST_SUITE_END()
