// SPDX-License-Identifier: BSL-1.0
// The executor that a wake-up is posted to, found behind any_io_executor, and posts that fail.
#include "kit/completion.hpp"
#include "kit/run.hpp"
#include "kit/wrapping_executor.hpp"

#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <new>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace detail = turnstile::detail;
using kit::completion;

BOOST_AUTO_TEST_SUITE(posting_executor)

BOOST_AUTO_TEST_CASE(an_executor_inside_any_io_executor_is_recognised)
{
    asio::io_context io;
    asio::thread_pool pool(1);
    const auto strand = asio::make_strand(io);
    const auto pool_strand = asio::make_strand(pool);
    const auto any_strand = asio::make_strand(asio::any_io_executor(io.get_executor()));
    const auto same = [](const auto& executor) {
        return detail::posting_executor(executor) ==
               detail::posting_executor(asio::any_io_executor(executor));
    };
    BOOST_TEST(same(io.get_executor()));
    BOOST_TEST(same(pool.get_executor()));
    BOOST_TEST(same(strand));
    BOOST_TEST(same(pool_strand));
    BOOST_TEST(same(any_strand));
    BOOST_TEST(!(detail::posting_executor(strand) == detail::posting_executor(io.get_executor())));
    asio::io_context other;
    BOOST_TEST(!(detail::posting_executor(other.get_executor()) ==
                 detail::posting_executor(io.get_executor())));
}

BOOST_AUTO_TEST_CASE(a_handler_on_an_idle_strand_is_posted_in_memory_of_its_own)
{
    // A post to an idle strand queues two functions.
    kit::drained_context io;
    turnstile::mutex m(io);
    const auto strand = asio::make_strand(io);
    std::vector<completion> all(3);
    for (auto& c : all)
        m.async_lock(asio::bind_executor(strand, c.handler([](auto) {})));
    kit::run(io);
    for (auto& c : all)
        BOOST_TEST(c.succeeded());
}

// For an executor that sets another event inside execute(), and then throws std::bad_alloc.
struct sets_event_and_refuses {
    turnstile::event** other;

    template <class Inner, class F>
    void execute(const Inner& inner, F f) const
    {
        if (turnstile::event* e = std::exchange(*other, nullptr)) {
            e->set();
            throw std::bad_alloc();
        }
        inner.execute(std::move(f));
    }
};

BOOST_AUTO_TEST_CASE(a_post_inside_a_failing_post_succeeds)
{
    kit::drained_context io;
    turnstile::event other{asio::any_io_executor(asio::make_strand(io))};
    turnstile::event* next = nullptr;
    turnstile::event e{asio::any_io_executor(
        kit::wrapping_executor{io.get_executor(), sets_event_and_refuses{&next}})};
    completion inner;
    completion outer;
    other.async_wait(inner.handler([] {}));
    e.async_wait(outer.handler([] {}));
    next = &other;
    e.set(); // the waiter stays ready
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(inner.succeeded());
    BOOST_TEST(!outer.done());
    completion another;
    e.async_wait(another.handler([] {}));
    kit::run(io);
    BOOST_TEST(outer.succeeded());
    BOOST_TEST(another.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
