// SPDX-License-Identifier: BSL-1.0
// Waits whose handler has another executor than the object, when that executor drops the handler or
// throws std::bad_alloc instead of executing it.
#include "kit/completion.hpp"
#include "kit/run.hpp"
#include "kit/wrapping_executor.hpp"

#include <turnstile/sync/condition.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>
#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <new>
#include <optional>
#include <tuple>
#include <utility>

namespace {

namespace asio = boost::asio;
using kit::completion;
using kit::dropping;
using turnstile::error_code;

// For an executor that throws std::bad_alloc instead of executing the next *refusals functions.
struct shortage {
    int* refusals;

    template <class Inner, class F>
    void execute(const Inner& inner, F f) const
    {
        if (*refusals != 0) {
            --*refusals;
            throw std::bad_alloc();
        }
        inner.execute(std::move(f));
    }
};

asio::any_io_executor short_of_memory(asio::io_context& io, int& refusals)
{
    return kit::wrapping_executor{io.get_executor(), shortage{&refusals}};
}

BOOST_AUTO_TEST_SUITE(handler_route)

using local_mutexes = std::tuple<turnstile::local::mutex, turnstile::local::shared_mutex>;

template <class Mutex>
asio::awaitable<void> lock_once(Mutex& m, int& locked)
{
    const auto lock = co_await m.async_lock();
    ++locked;
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_lock_is_released_if_its_coroutine_is_dropped_before_delivery, Mutex,
                              local_mutexes)
{
    kit::drained_context home;
    Mutex m(home);
    int locked = 0;
    BOOST_TEST_REQUIRE(m.try_lock());
    {
        asio::io_context away;
        asio::co_spawn(away, lock_once(m, locked), asio::detached);
        away.poll();
        m.unlock();
        kit::run(home);
        BOOST_TEST(!m.try_lock()); // granted, and not yet delivered
    }
    BOOST_TEST(locked == 0);
    BOOST_TEST_REQUIRE(m.try_lock());
    m.unlock();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_lock_is_released_if_its_completion_cannot_be_posted, Mutex,
                              local_mutexes)
{
    kit::drained_context home;
    kit::drained_context away;
    int refusals = 0;
    Mutex m(home);
    int locked = 0;
    BOOST_TEST_REQUIRE(m.try_lock());
    asio::co_spawn(short_of_memory(away, refusals), lock_once(m, locked), asio::detached);
    kit::poll_leaves_work(away);
    m.unlock();
    refusals = 1;
    BOOST_CHECK_THROW(kit::run(home), std::bad_alloc);
    kit::run(away);
    BOOST_TEST(locked == 0);
    BOOST_TEST_REQUIRE(m.try_lock());
    m.unlock();
}

BOOST_AUTO_TEST_CASE(permits_are_released_if_their_coroutine_is_dropped_before_delivery)
{
    kit::drained_context home;
    turnstile::local::semaphore s(home, 0);
    {
        asio::io_context away;
        asio::co_spawn(
            away,
            [&]() -> asio::awaitable<void> {
                const auto permits = co_await s.async_acquire(3);
                BOOST_ERROR("resumed");
            },
            asio::detached);
        away.poll();
        s.release(5);
        kit::run(home);
        BOOST_TEST(s.available() == 2U);
    }
    BOOST_TEST(s.available() == 5U);
}

// A coroutine that waits. Even its destruction needs memory from its executor.
struct waiting_coroutine {
    explicit waiting_coroutine(turnstile::semaphore& s)
    {
        asio::co_spawn(
            short_of_memory(away, refusals),
            [](turnstile::semaphore& semaphore, error_code& ec,
               bool& completed) -> asio::awaitable<void> {
                auto [got, permit] =
                    co_await semaphore.async_acquire(asio::as_tuple(asio::use_awaitable));
                (void)permit.detach();
                ec = got;
                completed = true;
            }(s, error, done),
            asio::bind_cancellation_slot(stop.slot(), asio::detached));
        kit::poll_leaves_work(away);
        BOOST_TEST_REQUIRE(!done);
    }

    kit::drained_context away;
    int refusals = 0;
    asio::cancellation_signal stop;
    error_code error;
    bool done = false;
};

constexpr auto keep = [](auto permit) { (void)permit.detach(); };

constexpr int many = 1000;

struct without_memory {
    without_memory() : first(s)
    {
        first.refusals = many;
        s.release(); // does not throw, nor terminate
        first.refusals = 0;
        BOOST_TEST(s.available() == 1U);
        BOOST_TEST(kit::poll_leaves_work(first.away), "run() would have returned");
        BOOST_TEST(!first.done);
    }
    void expect_abort_of_first()
    {
        kit::run(first.away);
        BOOST_TEST(first.done);
        BOOST_TEST(first.error == asio::error::operation_aborted);
    }

    kit::drained_context home;
    turnstile::semaphore s{home, 0};
    waiting_coroutine first;
};

BOOST_FIXTURE_TEST_CASE(a_completion_that_cannot_be_posted_is_delivered_with_the_next_wake_up,
                        without_memory)
{
    BOOST_TEST(s.try_acquire().detach() == 1U);
    completion next;
    s.async_acquire(next.handler(keep));
    s.release();
    kit::run(home);
    BOOST_TEST(next.succeeded());
    expect_abort_of_first();
}

BOOST_FIXTURE_TEST_CASE(
    a_completion_that_cannot_be_posted_is_delivered_with_an_operation_that_need_not_wait,
    without_memory)
{
    completion next;
    s.async_acquire(next.handler(keep));
    kit::run(home);
    BOOST_TEST(next.succeeded());
    expect_abort_of_first();
}

BOOST_FIXTURE_TEST_CASE(
    a_completion_that_cannot_be_posted_is_delivered_with_one_on_another_executor, without_memory)
{
    BOOST_TEST(s.try_acquire().detach() == 1U);
    kit::drained_context other;
    completion next;
    s.async_acquire(asio::bind_executor(other, next.handler(keep)));
    s.release();
    expect_abort_of_first();
    kit::run(other);
    BOOST_TEST(next.succeeded());
}

BOOST_FIXTURE_TEST_CASE(a_completion_stays_ready_for_as_long_as_it_cannot_be_posted, without_memory)
{
    for (int i = 0; i != 3; ++i) {
        completion next;
        first.refusals = many;
        s.async_acquire(next.handler([](auto) {}));
        kit::poll_leaves_work(home);
        first.refusals = 0;
        BOOST_TEST(next.succeeded());
        BOOST_TEST(kit::poll_leaves_work(first.away));
        BOOST_TEST(!first.done);
    }
    first.stop.emit(asio::cancellation_type::terminal);
    expect_abort_of_first();
}

BOOST_FIXTURE_TEST_CASE(a_completion_that_cannot_be_posted_is_delivered_by_its_cancellation,
                        without_memory)
{
    first.stop.emit(asio::cancellation_type::terminal);
    expect_abort_of_first();
}

BOOST_AUTO_TEST_CASE(
    a_completion_that_cannot_be_posted_is_delivered_by_the_destruction_of_the_object)
{
    kit::drained_context home;
    std::optional<turnstile::semaphore> s(std::in_place, home, 0U);
    waiting_coroutine first(*s);
    first.refusals = many;
    s->release();
    first.refusals = 0;
    s.reset();
    kit::run(first.away);
    BOOST_TEST(first.error == asio::error::operation_aborted);
}

// The coroutine is destroyed on its own executor.
BOOST_AUTO_TEST_CASE(
    the_destruction_of_the_objects_context_destroys_a_coroutine_that_cannot_be_resumed)
{
    std::optional<asio::io_context> home(std::in_place);
    turnstile::semaphore s(*home, 0U);
    waiting_coroutine first(s);
    first.refusals = many;
    s.release();
    first.refusals = 0;
    home.reset();
    kit::run(first.away);
    BOOST_TEST(!first.done);
}

// A wait on a condition that was notified, and whose completion cannot be posted when it is granted
// the lock. It holds the lock again before it completes.
struct without_memory_at_the_mutex {
    without_memory_at_the_mutex()
    {
        asio::co_spawn(short_of_memory(away, refusals), wait(),
                       asio::bind_cancellation_slot(stop.slot(), asio::detached));
        kit::poll_leaves_work(away);
        BOOST_TEST_REQUIRE(m.try_lock());
        c->notify_one();
        kit::poll_leaves_work(away); // waits for the mutex, which is locked
        refusals = many;
        m.unlock();
        refusals = 0;
        BOOST_TEST(!m.is_locked());
        BOOST_TEST(kit::poll_leaves_work(away), "run() would have returned");
        BOOST_TEST(!done);
    }
    asio::awaitable<void> wait()
    {
        auto lock = co_await m.async_lock();
        std::tie(error) = co_await c->async_wait(lock, asio::as_tuple(asio::use_awaitable));
        BOOST_TEST(lock.owns_lock());
        done = true;
    }
    void expect_abort()
    {
        kit::run(away);
        BOOST_TEST(done);
        BOOST_TEST(error == asio::error::operation_aborted);
        BOOST_TEST(!m.is_locked());
    }

    kit::drained_context home;
    kit::drained_context away;
    int refusals = 0;
    turnstile::mutex m{home};
    std::optional<turnstile::condition> c{std::in_place, home};
    asio::cancellation_signal stop;
    error_code error;
    bool done = false;
};

BOOST_FIXTURE_TEST_CASE(a_condition_delivers_it_with_the_next_completion,
                        without_memory_at_the_mutex)
{
    completion next;
    turnstile::mutex::lock_type lock(m, std::try_to_lock);
    c->async_wait(lock, next.handler([&] { lock.unlock(); }));
    c->notify_one();
    kit::run(home);
    BOOST_TEST(next.succeeded());
    expect_abort();
}

BOOST_FIXTURE_TEST_CASE(a_cancellation_delivers_a_condition_wait_that_has_no_memory_at_the_mutex,
                        without_memory_at_the_mutex)
{
    stop.emit(asio::cancellation_type::terminal);
    expect_abort();
}

BOOST_FIXTURE_TEST_CASE(
    the_destruction_of_a_condition_delivers_a_wait_that_has_no_memory_at_the_mutex,
    without_memory_at_the_mutex)
{
    c.reset();
    expect_abort();
}

// The notification reaches another waiter at once.
BOOST_AUTO_TEST_CASE(a_notification_is_passed_on_if_there_is_no_memory_for_the_lock)
{
    kit::drained_context home;
    kit::drained_context away;
    int refusals = 0;
    turnstile::mutex m(home);
    turnstile::condition c(home);
    completion first;
    completion second;
    turnstile::mutex::lock_type lock(m, std::try_to_lock);
    c.async_wait(lock, asio::bind_executor(short_of_memory(away, refusals),
                                           first.handler([&] { lock.unlock(); })));
    turnstile::mutex::lock_type other(m, std::try_to_lock);
    c.async_wait(other, second.handler([&] { other.unlock(); }));
    BOOST_TEST_REQUIRE(m.try_lock());
    c.notify_one();
    kit::poll_leaves_work(away);
    refusals = many;
    m.unlock();
    refusals = 0;
    kit::run(home);
    BOOST_TEST(second.succeeded());
    kit::run(away);
    BOOST_TEST(first.aborted());
}

// For an executor that throws std::bad_alloc while *refuses is true, and otherwise calls *act once,
// after the next function.
struct act_after_execute {
    const bool* refuses;
    std::function<void()>* act;

    template <class Inner, class F>
    void execute(const Inner& inner, F f) const
    {
        if (*refuses)
            throw std::bad_alloc();
        inner.execute(std::move(f));
        if (const auto once = std::exchange(*act, nullptr))
            once();
    }
};

// Acts as another thread that completes all other waits and destroys the object at that moment.
BOOST_AUTO_TEST_CASE(the_object_may_be_destroyed_while_delayed_completions_are_posted)
{
    kit::drained_context home;
    kit::drained_context away;
    bool refuses = false;
    std::function<void()> meanwhile;
    std::optional<turnstile::semaphore> s(std::in_place, home, 3U);
    auto all = s->try_acquire(3);
    completion before;
    completion first;
    completion after;
    const auto give_back = [](auto) {};
    s->async_acquire(before.handler(give_back));
    s->async_acquire(asio::bind_executor(
        kit::wrapping_executor{away.get_executor(), act_after_execute{&refuses, &meanwhile}},
        first.handler(give_back)));
    refuses = true;
    (void)all.split(2); // released at once
    refuses = false;
    s->async_acquire(2, after.handler(give_back));
    meanwhile = [&] {
        home.poll();
        away.poll();
        s.reset();
    };
    all.release();
    kit::run(home);
    kit::run(away);
    BOOST_TEST(before.done());
    BOOST_TEST(after.done());
    BOOST_TEST(first.aborted());
    BOOST_TEST(!s);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
