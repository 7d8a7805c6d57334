// SPDX-License-Identifier: BSL-1.0
// The wait queue: wake-ups that cannot be posted, outstanding work, memory, and destruction.
#include "kit/chaos_executor.hpp"
#include "kit/completion.hpp"
#include "kit/failing_allocator.hpp"
#include "kit/joining_thread.hpp"
#include "kit/run.hpp"
#include "kit/wrapping_executor.hpp"

#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <future>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using kit::dropping;
using turnstile::error_code;

BOOST_AUTO_TEST_SUITE(wait_state)

BOOST_AUTO_TEST_CASE(a_wake_up_that_cannot_be_posted_passes_its_grant_on)
{
    kit::drained_context io;
    kit::chaos_context chaos(1);
    bool refuse = false;
    turnstile::mutex m(io);
    BOOST_TEST_REQUIRE(m.try_lock());
    std::vector<completion> late(2);
    completion next;
    const auto hold = [](auto lock) { lock.release(); };
    for (auto& c : late)
        m.async_lock(asio::bind_executor(kit::refusing_executor(chaos, refuse), c.handler(hold)));
    m.async_lock(next.handler(hold));
    refuse = true;
    m.unlock(); // does not throw
    kit::run(io);
    BOOST_TEST(next.succeeded());
    refuse = false;
    chaos.run();
    for (auto& c : late)
        BOOST_TEST(!c.done());
    completion another;
    m.async_lock(another.handler([](auto) {}));
    m.unlock();
    kit::run(io);
    BOOST_TEST(another.succeeded());
    chaos.run();
    for (auto& c : late)
        BOOST_TEST(c.aborted());
}

struct delayed_post {
    std::promise<void> reached;
    std::promise<void> proceed;
};

// For an executor that delays its next post, if there is one in *next.
struct delay_next_post {
    delayed_post** next;

    template <class Inner, class F>
    void execute(const Inner& inner, F f) const
    {
        if (delayed_post* post = std::exchange(*next, nullptr)) {
            post->reached.set_value();
            post->proceed.get_future().wait();
        }
        inner.execute(std::move(f));
    }
};

BOOST_AUTO_TEST_CASE(the_context_has_work_until_the_wake_up_is_posted)
{
    asio::io_context io;
    delayed_post post;
    delayed_post* next = nullptr;
    turnstile::semaphore s(
        asio::any_io_executor(kit::wrapping_executor{io.get_executor(), delay_next_post{&next}}),
        0);
    std::vector<completion> both(2);
    for (auto& c : both)
        s.async_acquire(c.handler([](auto permit) { (void)permit.detach(); }));
    next = &post;
    kit::joining_thread slow([&] { s.release(); }); // has decided to post, and is delayed
    post.reached.get_future().wait();
    s.release(); // leaves the post to the other thread, and the queue empty
    BOOST_TEST(kit::poll_leaves_work(io), "run() would have returned");
    post.proceed.set_value();
    slow.join();
    kit::run(io);
    for (auto& c : both)
        BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE(a_strand_destroyed_before_the_object_leaks_no_handler)
{
    completion first(dropping::is_expected);
    completion second(dropping::is_expected);
    {
        asio::io_context io;
        const turnstile::mutex older(io); // so that the strand service is destroyed first
        auto m = std::make_shared<turnstile::mutex>(asio::make_strand(io));
        BOOST_TEST_REQUIRE(m->try_lock());
        m->async_lock(first.handler([m](auto) {}));
        m->async_lock(second.handler([m](auto) {}));
        m->unlock();
    }
    BOOST_TEST(first.dropped());
    BOOST_TEST(second.dropped());
}

BOOST_AUTO_TEST_CASE(a_signal_may_outlive_the_strand_and_its_context)
{
    asio::cancellation_signal signal;
    completion c;
    {
        asio::io_context io;
        turnstile::mutex m(asio::make_strand(io));
        m.async_lock(asio::bind_cancellation_slot(signal.slot(), c.handler([](auto) {})));
        io.run();
    }
    BOOST_TEST(c.succeeded());
    signal.emit(asio::cancellation_type::terminal);
}

BOOST_AUTO_TEST_CASE(an_operation_started_while_the_context_is_destroyed_is_dropped)
{
    std::optional<asio::io_context> io(std::in_place);
    auto m = std::make_shared<turnstile::mutex>(*io);
    BOOST_TEST_REQUIRE(m->try_lock());
    completion late(dropping::is_expected);
    struct starts_another {
        std::shared_ptr<turnstile::mutex> m;
        completion late;
        ~starts_another()
        {
            if (m)
                m->async_lock(late.handler([](auto) {}));
        }
        starts_another(std::shared_ptr<turnstile::mutex> mutex, completion c)
            : m(std::move(mutex)), late(std::move(c))
        {
        }
        starts_another(starts_another&&) = default;
        starts_another& operator=(starts_another&&) = default;
    };
    m->async_lock([s = starts_another(m, late)](error_code, auto) {});
    io.reset();
    BOOST_TEST(late.dropped());
}

using both_mutexes = std::tuple<turnstile::mutex, turnstile::local::mutex>;

// All memory comes from the handler's associated allocator, also on another executor.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_on_another_executor_supplies_all_memory, Mutex,
                              both_mutexes)
{
    kit::drained_context home;
    kit::drained_context elsewhere;
    Mutex m(home);
    kit::allocation_plan plan;
    std::optional<std::size_t> live;
    BOOST_TEST(m.try_lock());
    m.async_lock(asio::bind_allocator(
        kit::failing_allocator<char>(plan),
        asio::bind_executor(elsewhere, [&](error_code, auto) { live = plan.live(); })));
    const auto while_waiting = plan.allocated;
    m.unlock();
    kit::run(home);
    kit::run(elsewhere);
    BOOST_TEST((live == 0U));
    BOOST_TEST(while_waiting == 2U);
    // A confined object dispatches from its strand to the handler's executor.
    BOOST_TEST(plan.allocated == (Mutex::threading_policy::is_confined ? 3U : 2U));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
