// Every completion token works on every operation, whether it has to wait or not.
#include "contract/subjects.hpp"
#include "kit/run.hpp"

#include <boost/asio.hpp>
#if TURNSTILE_TEST_HAS_CONTEXT
#    include <boost/asio/spawn.hpp>
#endif
#include <boost/test/unit_test.hpp>

#include <exception>
#include <tuple>

namespace {

using namespace contract;

// Runs the coroutine, first on an operation that waits, then on one that need not.
template <class S, class Coroutine>
void waiting_and_ready(Coroutine coroutine)
{
    for (bool ready : {false, true}) {
        kit::drained_context io;
        S s(io.get_executor());
        if (ready)
            s.grant();
        bool finished = false;
        asio::co_spawn(io, coroutine(s), [&](std::exception_ptr e) {
            finished = true;
            if (e)
                std::rethrow_exception(e);
        });
        kit::poll_leaves_work(io);
        if (!ready) {
            BOOST_TEST(!finished);
            s.grant();
        }
        kit::run(io);
        BOOST_TEST(finished);
        BOOST_TEST((S::is_broadcast || s.available() == 0));
    }
}

BOOST_AUTO_TEST_SUITE(tokens)

BOOST_AUTO_TEST_CASE_TEMPLATE(default_token_is_a_coroutine, S, subjects)
{
    waiting_and_ready<S>([](S& s) -> asio::awaitable<void> {
        if constexpr (std::is_same_v<decltype(s.async_op()), asio::awaitable<void>>)
            co_await s.async_op();
        else
            s.consume(co_await s.async_op());
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(as_tuple, S, subjects)
{
    waiting_and_ready<S>([](S& s) -> asio::awaitable<void> {
        auto result = co_await s.async_op(asio::as_tuple(asio::use_awaitable));
        std::apply(
            [&](error_code ec, auto&&... values) {
                BOOST_TEST(!ec);
                s.consume(std::move(values)...);
            },
            std::move(result));
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(redirect_error, S, subjects)
{
    waiting_and_ready<S>([](S& s) -> asio::awaitable<void> {
        error_code ec = asio::error::fault;
        auto op = s.async_op(asio::redirect_error(asio::use_awaitable, ec));
        if constexpr (std::is_same_v<decltype(op), asio::awaitable<void>>)
            co_await std::move(op);
        else
            s.consume(co_await std::move(op));
        BOOST_TEST(!ec);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(deferred, S, subjects)
{
    waiting_and_ready<S>([](S& s) -> asio::awaitable<void> {
        auto op = s.async_op(asio::deferred); // starts nothing yet
        if constexpr (std::is_void_v<decltype(s.async_op(asio::use_awaitable).await_resume())>)
            co_await std::move(op);
        else
            s.consume(co_await std::move(op));
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_future, S, subjects)
{
    for (bool ready : {false, true}) {
        kit::drained_context io;
        S s(io.get_executor());
        if (ready)
            s.grant();
        auto future = s.async_op(asio::use_future);
        if (!ready)
            s.grant();
        kit::run(io);
        if constexpr (std::is_void_v<decltype(future.get())>)
            future.get();
        else
            s.consume(future.get());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(detached, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    s.async_op(asio::detached);
    s.grant();
    kit::run(io); // what was granted is dropped, and so given back, where that is possible
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_error_is_thrown_into_the_coroutine, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    error_code thrown;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            try {
                (void)co_await s.async_op(asio::as_tuple(asio::deferred));
                co_await asio::post(asio::use_awaitable);
            } catch (const turnstile::system_error& e) {
                thrown = e.code();
            }
        },
        asio::detached);
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            try {
                if constexpr (std::is_same_v<decltype(s.async_op()), asio::awaitable<void>>)
                    co_await s.async_op();
                else
                    (void)co_await s.async_op();
            } catch (const turnstile::system_error& e) {
                thrown = e.code();
            }
        },
        asio::detached);
    kit::poll_leaves_work(io);
    s.destroy();
    kit::run(io);
    BOOST_TEST((thrown == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_executors_own_default_token_is_used, S, subjects)
{
    using executor =
        asio::as_tuple_t<asio::deferred_t>::executor_with_default<asio::io_context::executor_type>;
    using object = typename S::object_type::template rebind_executor<executor>::other;
    static_assert(std::is_same_v<typename object::executor_type, executor>);
    static_assert(
        std::is_same_v<turnstile::default_token_t<executor>, asio::as_tuple_t<asio::deferred_t>>);
    static_assert(std::is_same_v<turnstile::default_token_t<asio::any_io_executor>,
                                 asio::use_awaitable_t<asio::any_io_executor>>);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_that_need_not_wait_does_not_suspend, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    int suspended = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int round = 0; round != 2; ++round) {
                if (s.available() == 0)
                    s.grant();
                auto posted_ran = std::make_shared<bool>(false);
                asio::post(io, [posted_ran] { *posted_ran = true; });
                auto result = co_await s.async_op(asio::as_tuple(asio::use_awaitable));
                std::apply([&](error_code, auto&&... v) { s.consume(std::move(v)...); },
                           std::move(result));
                suspended += *posted_ran ? 1 : 0;
            }
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(suspended <= 1); // one, if the thread's budget happened to be spent
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_loop_that_never_waits_lets_others_in, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    bool other_ran = false;
    int rounds = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            asio::post(io, [&] { other_ran = true; });
            while (!other_ran && ++rounds != 1000) {
                if (s.available() == 0)
                    s.grant();
                auto result = co_await s.async_op(asio::as_tuple(asio::use_awaitable));
                std::apply([&](error_code, auto&&... v) { s.consume(std::move(v)...); },
                           std::move(result));
            }
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(rounds < 1000, "the loop has starved its executor");
}

#if TURNSTILE_TEST_HAS_CONTEXT
BOOST_AUTO_TEST_CASE_TEMPLATE(yield_context, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    bool finished = false;
    asio::spawn(
        io,
        [&](asio::yield_context yield) {
            for (int round = 0; round != 2; ++round) { // waiting, then ready
                if constexpr (std::is_void_v<decltype(s.async_op(yield))>)
                    s.async_op(yield);
                else
                    s.consume(s.async_op(yield));
                if (s.available() == 0)
                    s.grant();
            }
            finished = true;
        },
        asio::detached);
    kit::poll_leaves_work(io);
    s.grant();
    kit::run(io);
    BOOST_TEST(finished);
}
#endif

BOOST_AUTO_TEST_SUITE_END()

} // namespace
