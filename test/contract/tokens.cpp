// SPDX-License-Identifier: BSL-1.0
// Every completion token works with every operation, whether it must wait or not.
#include "contract/subject.hpp"
#include "kit/run.hpp"

#include <turnstile/core/default_token.hpp>

#include <boost/asio.hpp>
#if TURNSTILE_TEST_HAS_CONTEXT
#    include <boost/asio/spawn.hpp>
#endif
#include <boost/test/unit_test.hpp>

#include <exception>
#include <memory>

namespace {

using namespace contract;

// Calls f for an operation that waits, then for one that is ready.
void waiting_and_ready(const kind& kind,
                       const std::function<void(asio::io_context&, subject&, bool)>& f)
{
    for (bool ready : {false, true}) {
        if (ready && !kind.keeps_grants)
            continue;
        kit::drained_context io;
        auto s = kind.make(io.get_executor());
        if (ready)
            s->grant();
        f(io, *s, ready);
    }
}

asio::awaitable<void> wait_and_consume(subject& s, by token)
{
    auto result = co_await s.wait(token);
    BOOST_TEST(!result.error());
    result.consume();
}

// A coroutine that awaits with this token succeeds, whether it must wait or not.
void coroutine_succeeds(const kind& kind, by token)
{
    waiting_and_ready(kind, [&](asio::io_context& io, subject& s, bool ready) {
        bool finished = false;
        asio::co_spawn(io, wait_and_consume(s, token), [&](std::exception_ptr e) {
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
        BOOST_TEST((kind.stays_granted || s.available() == 0));
    });
}

BOOST_AUTO_TEST_SUITE(tokens)

CONTRACT(default_token_is_a_coroutine) { coroutine_succeeds(kind, by::default_token); }

CONTRACT(use_awaitable) { coroutine_succeeds(kind, by::use_awaitable); }

CONTRACT(as_tuple) { coroutine_succeeds(kind, by::as_tuple); }

CONTRACT(redirect_error) { coroutine_succeeds(kind, by::redirect_error); }

CONTRACT(deferred) { coroutine_succeeds(kind, by::deferred); }

CONTRACT(as_tuple_of_deferred) { coroutine_succeeds(kind, by::as_tuple_deferred); }

CONTRACT(use_future)
{
    waiting_and_ready(kind, [&](asio::io_context& io, subject& s, bool ready) {
        auto future = s.start_future();
        if (!ready)
            s.grant();
        kit::run(io);
        future().consume();
    });
}

CONTRACT(detached)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    s->start_detached();
    s->grant();
    kit::run(io); // the result is dropped, and so released where that is possible
}

CONTRACT(an_error_is_thrown_into_the_coroutine)
{
    for (by token : {by::default_token, by::use_awaitable, by::deferred}) {
        kit::drained_context io;
        auto s = kind.make(io.get_executor());
        error_code thrown;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                try {
                    (void)co_await s->wait(token);
                } catch (const turnstile::system_error& e) {
                    thrown = e.code();
                }
            },
            asio::detached);
        kit::poll_leaves_work(io);
        s->destroy();
        kit::run(io);
        BOOST_TEST((thrown == asio::error::operation_aborted));
    }
}

CONTRACT(an_error_is_part_of_the_result)
{
    for (by token : {by::as_tuple, by::redirect_error, by::as_tuple_deferred}) {
        kit::drained_context io;
        auto s = kind.make(io.get_executor());
        error_code reported;
        asio::co_spawn(
            io, [&]() -> asio::awaitable<void> { reported = (co_await s->wait(token)).error(); },
            asio::detached);
        kit::poll_leaves_work(io);
        s->destroy();
        kit::run(io);
        BOOST_TEST((reported == asio::error::operation_aborted));
    }
}

CONTRACT_WHERE(an_executors_own_default_token_is_used, kind.rebinds_executor)
{
    BOOST_TEST(kind.uses_its_executors_default_token);
    static_assert(std::is_same_v<turnstile::default_token_t<asio::any_io_executor>,
                                 asio::use_awaitable_t<asio::any_io_executor>>);
}

CONTRACT_WHERE(a_coroutine_that_need_not_wait_does_not_suspend, kind.keeps_grants)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    int suspended = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int round = 0; round != 2; ++round) {
                grant_unless_available(*s);
                auto posted_ran = std::make_shared<bool>(false);
                asio::post(io, [posted_ran] { *posted_ran = true; });
                co_await wait_and_consume(*s, by::as_tuple);
                suspended += *posted_ran ? 1 : 0;
                s = kind.after(s);
            }
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(suspended <= 1); // one, if the thread's budget happened to be spent
}

CONTRACT_WHERE(a_loop_that_never_waits_lets_other_handlers_run, kind.keeps_grants)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    bool other_ran = false;
    int rounds = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            asio::post(io, [&] { other_ran = true; });
            while (!other_ran && ++rounds != 1000) {
                grant_unless_available(*s);
                co_await wait_and_consume(*s, by::as_tuple);
                s = kind.after(s);
            }
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(rounds < 1000, "the loop has starved its executor");
}

#if TURNSTILE_TEST_HAS_CONTEXT
CONTRACT(yield_context)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    bool finished = false;
    asio::spawn(
        io,
        [&](asio::yield_context yield) {
            s->wait(yield).consume(); // waiting
            if (kind.keeps_grants) {
                s = kind.after(s);
                grant_unless_available(*s);
                s->wait(yield).consume(); // ready
            }
            finished = true;
        },
        asio::detached);
    kit::poll_leaves_work(io);
    s->grant();
    kit::run(io);
    BOOST_TEST(finished);
}
#endif

BOOST_AUTO_TEST_SUITE_END()

} // namespace
