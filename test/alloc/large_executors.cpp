// SPDX-License-Identifier: BSL-1.0
// Executors too large for the buffer in any_io_executor: whatever is made of one takes memory,
// and there is none.
#include "alloc/sweep.hpp"
#include "kit/completion.hpp"
#include "kit/run.hpp"
#include "kit/wrapping_executor.hpp"

#include <turnstile/sync/event.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace {

namespace asio = boost::asio;
using kit::completion;
using kit::dropping;

// As good as any other, and larger.
using ballast = std::array<void*, 16>;

auto large(asio::io_context& io) { return kit::wrapping_executor{io.get_executor(), ballast{}}; }

using semaphores = std::tuple<turnstile::semaphore, turnstile::local::semaphore>;

constexpr auto keep = [](auto permit) { (void)permit.detach(); };

BOOST_AUTO_TEST_SUITE(large_executors)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_wait_starts_wholly_or_not_at_all, Semaphore, semaphores)
{
    heap::sweep([&](std::size_t k, heap::failure how) {
        kit::drained_context io;
        Semaphore s(asio::any_io_executor(large(io)), 0);
        completion c(dropping::is_expected);
        bool thrown = false;
        heap::failing failing(k, how);
        try {
            s.async_acquire(c.handler(keep));
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        failing.stop();
        BOOST_TEST(c.dropped() == thrown);
        s.release();
        kit::run(io);
        BOOST_TEST(c.succeeded() == !thrown);
        BOOST_TEST(s.available() == (thrown ? 1U : 0U));
        return failing.happened();
    });
}

// Of a wait for which there was memory, but not to keep its context running.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_waits_or_is_thrown_an_exception, Semaphore, semaphores)
{
    if constexpr (heap::sees_aligned_alloc) {
        heap::sweep([&](std::size_t k, heap::failure how) {
            kit::drained_context io;
            Semaphore s(asio::any_io_executor(large(io)), 0);
            bool succeeded = false;
            bool failed = false;
            std::optional<heap::failing> failing;
            asio::co_spawn(
                asio::any_io_executor(large(io)),
                [&]() -> asio::awaitable<void> {
                    failing.emplace(k, how);
                    try {
                        auto permit = co_await s.async_acquire();
                        (void)permit.detach();
                        succeeded = true;
                    } catch (const std::bad_alloc&) {
                        failing->stop();
                        failed = true;
                    }
                },
                asio::detached);
            kit::poll_leaves_work(io);
            failing->stop();
            s.release();
            kit::run(io);
            BOOST_TEST(succeeded != failed);
            BOOST_TEST(s.available() == (succeeded ? 0U : 1U));
            return failing->happened();
        });
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_on_one_starts_wholly_or_not_at_all, Semaphore, semaphores)
{
    for (const unsigned available : {0U, 1U}) {
        heap::sweep([&](std::size_t k, heap::failure how) {
            kit::drained_context home;
            kit::drained_context elsewhere;
            Semaphore s(home, available);
            completion c(dropping::is_expected);
            completion next;
            bool thrown = false;
            heap::failing failing(k, how);
            try {
                s.async_acquire(asio::bind_executor(large(elsewhere), c.handler(keep)));
            } catch (const std::bad_alloc&) {
                thrown = true;
            }
            failing.stop();
            // What is posted may fail as well: then it is given back, and goes with the next.
            kit::poll_leaves_work(home);
            kit::poll_leaves_work(elsewhere);
            if (!c.done() && !c.dropped()) {
                if (available == 0)
                    s.release();
                else
                    s.async_acquire(next.handler([](auto) {}));
            }
            kit::run(home);
            kit::run(elsewhere);
            BOOST_TEST(c.done() != c.dropped());
            BOOST_TEST((c.dropped() || !thrown));
            BOOST_TEST(s.available() == (c.succeeded() ? 0U : available));
            return failing.happened();
        });
    }
}

// What cannot be posted to the object's own executor goes with the next wake-up.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_wake_up_there_is_no_memory_for_is_not_lost, Semaphore, semaphores)
{
    heap::sweep([&](std::size_t k, heap::failure how) {
        kit::drained_context io;
        Semaphore s(asio::any_io_executor(large(io)), 0);
        completion first;
        completion second;
        s.async_acquire(first.handler(keep));
        s.async_acquire(second.handler(keep));
        heap::failing failing(k, how);
        s.release();
        failing.stop();
        s.release();
        kit::run(io);
        BOOST_TEST(first.succeeded());
        BOOST_TEST(second.succeeded());
        return failing.happened();
    });
}

// What cannot be posted to a handler's own gives back what it was granted, and goes with the next
// wake-up.
BOOST_AUTO_TEST_CASE(a_wake_up_elsewhere_there_is_no_memory_for_passes_its_grant_on)
{
    heap::sweep([&](std::size_t k, heap::failure how) {
        kit::drained_context home;
        kit::drained_context elsewhere;
        turnstile::semaphore s(home, 0);
        completion first;
        completion second;
        s.async_acquire(asio::bind_executor(large(elsewhere), first.handler(keep)));
        s.async_acquire(second.handler(keep));
        heap::failing failing(k, how);
        s.release();
        failing.stop();
        kit::poll_leaves_work(home);
        kit::poll_leaves_work(elsewhere);
        const bool passed_on = second.done();
        BOOST_TEST(first.done());
        if (!passed_on)
            s.release();
        kit::run(home);
        BOOST_TEST(first.aborted() == passed_on);
        BOOST_TEST(second.succeeded());
        return failing.happened();
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
