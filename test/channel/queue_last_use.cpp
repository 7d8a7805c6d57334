// SPDX-License-Identifier: BSL-1.0
// A waiter that a call grants may destroy the queue on another thread before the call returns. The
// address sanitizer checks that the call does not use the queue after that.
#include "kit/thread_executor.hpp"
#include "kit/wrapping_executor.hpp"

#include <turnstile/channel/queue.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;
using turnstile::overflow;

// Strings, because a trivial value is taken out before any waiter is granted.
using queue = turnstile::queue<std::string>;

struct fixture {
    ~fixture() { BOOST_TEST(!q); }

    void make(std::size_t capacity, overflow on_full = overflow::wait)
    {
        q = std::make_unique<queue>(asio::any_io_executor(kit::wrapping_executor{
                                        kit::thread_executor(context), kit::refusal{&refuses}}),
                                    capacity, on_full);
    }
    // A handler that destroys the queue when it runs.
    auto ending()
    {
        return [this](error_code ec) {
            if (!ec)
                q.reset();
        };
    }
    // A full queue with a waiting push.
    void make_crowded()
    {
        make(1);
        BOOST_TEST_REQUIRE(q->try_push("first"));
        q->async_push("second", ending());
        BOOST_TEST_REQUIRE(q.get());
    }

    asio::io_context context;
    bool refuses = false;
    std::unique_ptr<queue> q;
};

BOOST_FIXTURE_TEST_SUITE(queue_last_use, fixture)

BOOST_AUTO_TEST_CASE(a_waiter_granted_by_a_pop_may_destroy_the_queue)
{
    make_crowded();
    const auto got = q->try_pop();
    BOOST_TEST((got == "first"));
}

BOOST_AUTO_TEST_CASE(a_waiter_granted_by_the_pop_of_a_coroutine_may_destroy_the_queue)
{
    make_crowded();
    std::string got;
    asio::co_spawn(
        context, [&]() -> asio::awaitable<void> { got = co_await q->async_pop(); }, asio::detached);
    context.run();
    BOOST_TEST(got == "first");
}

BOOST_AUTO_TEST_CASE(a_waiter_granted_by_a_batch_may_destroy_the_queue)
{
    make_crowded();
    const auto got = q->try_pop_n(2);
    BOOST_TEST((got == std::vector<std::string>{"first", "second"}));
}

BOOST_AUTO_TEST_CASE(a_waiter_granted_by_the_batch_of_a_coroutine_may_destroy_the_queue)
{
    make_crowded();
    std::vector<std::string> got;
    asio::co_spawn(
        context, [&]() -> asio::awaitable<void> { got = co_await q->async_pop_n(1); },
        asio::detached);
    context.run();
    BOOST_TEST((got == std::vector<std::string>{"first"}));
}

// A push that drops an item grants a waiter only if the waiter could not be granted before.
BOOST_AUTO_TEST_CASE(a_waiter_granted_by_a_drop_may_destroy_the_queue)
{
    make(1, overflow::drop_oldest);
    BOOST_TEST_REQUIRE(q->try_push("dropped"));
    BOOST_TEST_REQUIRE(q->try_push("first"));
    q->async_join(ending());
    BOOST_TEST_REQUIRE(q->try_pop().has_value());
    refuses = true;
    q->task_done(); // would grant the join
    refuses = false;
    BOOST_TEST_REQUIRE(q->try_push("second"));
    BOOST_TEST_REQUIRE(q.get());
    BOOST_TEST(q->try_push("third"));
}

// The same if the push has to allocate a node: then it tests the queue twice.
BOOST_AUTO_TEST_CASE(a_waiter_granted_before_a_push_allocates_may_destroy_the_queue)
{
    make(1, overflow::drop_oldest);
    BOOST_TEST_REQUIRE(q->try_push("first"));
    q->async_join(ending());
    BOOST_TEST_REQUIRE(q->try_pop().has_value());
    refuses = true;
    q->task_done();
    refuses = false;
    BOOST_TEST_REQUIRE(q->try_push("second"));
    BOOST_TEST_REQUIRE(q.get());
    error_code ec;
    BOOST_TEST(!q->try_push("third", ec));
    BOOST_TEST((ec == asio::error::operation_aborted));
}

// A push to a confined queue whose handler has another executor ends on the strand of the queue.
BOOST_AUTO_TEST_CASE(a_queue_may_be_destroyed_before_a_push_completes_on_another_executor)
{
    asio::io_context elsewhere;
    auto local =
        std::make_unique<turnstile::local::queue<std::string>>(context, 1, overflow::drop_oldest);
    BOOST_TEST_REQUIRE(local->try_push("first"));
    bool pushed = false;
    local->async_push("second",
                      asio::bind_executor(elsewhere, [&](error_code ec) { pushed = !ec; }));
    context.run();
    local.reset();
    elsewhere.run();
    BOOST_TEST(pushed);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
