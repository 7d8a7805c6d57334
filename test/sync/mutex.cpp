// SPDX-License-Identifier: BSL-1.0
#include "kit/abandoned_context.hpp"
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;

template <class Threading>
using mutex_of = turnstile::basic_mutex<asio::any_io_executor, Threading>;

static_assert(!std::is_copy_constructible_v<turnstile::mutex>);
static_assert(!std::is_move_constructible_v<turnstile::mutex>);
static_assert(std::is_same_v<turnstile::mutex::executor_type, asio::any_io_executor>);
static_assert(std::is_same_v<turnstile::mutex::rebind_executor<asio::system_executor>::other,
                             turnstile::basic_mutex<asio::system_executor>>);

BOOST_AUTO_TEST_SUITE(mutex)

BOOST_AUTO_TEST_CASE_TEMPLATE(is_made_from_an_executor_or_a_context, P, kit::policies)
{
    asio::io_context io;
    asio::thread_pool pool(1);
    const mutex_of<P> from_context(io);
    const mutex_of<P> from_executor(io.get_executor());
    const mutex_of<P> from_strand(asio::make_strand(io));
    const mutex_of<P> from_pool(pool);
    BOOST_TEST((from_context.get_executor() == io.get_executor()));
    BOOST_TEST(!from_pool.is_locked());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(try_lock_takes_a_free_lock_and_no_other, P, kit::policies)
{
    asio::io_context io;
    mutex_of<P> m(io);
    BOOST_TEST(m.try_lock());
    BOOST_TEST(m.is_locked());
    BOOST_TEST(!m.try_lock());
    m.unlock();
    BOOST_TEST(!m.is_locked());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(unlocking_an_unlocked_mutex_is_an_error, P, kit::policies)
{
    asio::io_context io;
    mutex_of<P> m(io);
    error_code ec;
    m.unlock(ec);
    BOOST_TEST((ec == errc::not_locked));
    BOOST_CHECK_EXCEPTION(m.unlock(), turnstile::system_error,
                          [](const auto& e) { return e.code() == errc::not_locked; });
    BOOST_TEST(m.try_lock(), "the failed unlock has changed the state");
    BOOST_TEST(!m.try_lock(), "the failed unlock has added a second lock");
    m.unlock(ec);
    BOOST_TEST(!ec);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(unlocking_beneath_a_lock_is_an_error, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    error_code ec;
    turnstile::unique_lock lock(m, std::try_to_lock);
    m.unlock(ec);
    BOOST_TEST((ec == errc::not_locked));
    BOOST_TEST(m.is_locked(), "the failed unlock has unlocked it");
    completion next;
    m.async_lock(next.handler([&](auto own) {
        m.unlock(ec);
        BOOST_TEST((ec == errc::not_locked));
        BOOST_TEST(own.owns_lock());
    }));
    ec = {};
    m.unlock(ec); // with a waiter
    BOOST_TEST((ec == errc::not_locked));
    lock.unlock();
    ec = {};
    m.unlock(ec); // with a grant that is not yet delivered
    BOOST_TEST((ec == errc::not_locked));
    kit::run(io);
    BOOST_TEST(next.succeeded());
    BOOST_TEST(!m.is_locked());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(works_with_the_guards_of_std, P, kit::policies)
{
    asio::io_context io;
    mutex_of<P> m(io);
    {
        std::unique_lock lock(m, std::try_to_lock);
        BOOST_TEST(lock.owns_lock());
        const std::unique_lock second(m, std::try_to_lock);
        BOOST_TEST(!second.owns_lock());
    }
    BOOST_TEST(!m.is_locked());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_dropped_lock_is_granted_to_the_next_waiter, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    std::vector<completion> all(3);
    for (auto& c : all)
        m.async_lock(c.handler([](auto lock) { BOOST_TEST(lock.owns_lock()); }));
    kit::run(io);
    for (auto& c : all)
        BOOST_TEST(c.succeeded());
    BOOST_TEST(!m.is_locked());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(protects_a_section_that_suspends, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    int inside = 0;
    int rounds = 0;
    const auto worker = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != 50; ++i) {
            auto lock = co_await m.async_lock();
            BOOST_TEST(++inside == 1);
            co_await asio::post(asio::use_awaitable);
            --inside;
            ++rounds;
        }
    };
    for (int i = 0; i != 4; ++i)
        asio::co_spawn(io, worker(), asio::detached);
    kit::run(io);
    BOOST_TEST(rounds == 200);
}

BOOST_AUTO_TEST_CASE(a_typed_executor_gives_typed_coroutines)
{
    using executor = asio::io_context::executor_type;
    kit::drained_context io;
    turnstile::basic_mutex<executor> m(io.get_executor());
    bool finished = false;
    asio::co_spawn(
        io.get_executor(),
        [&]() -> asio::awaitable<void, executor> {
            auto first = co_await m.async_lock();
            first.unlock();
            auto second = co_await m.async_lock();
            finished = second.owns_lock();
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(finished);
}

// The context has last run on another thread and is not stopped.
BOOST_AUTO_TEST_CASE(a_handler_that_is_destroyed_with_the_context_may_own_a_local_lock)
{
    std::optional<asio::io_context> io(std::in_place);
    turnstile::local::event never(*io);
    turnstile::local::mutex m(*io);
    std::thread([&] {
        asio::post(*io, [&] {
            turnstile::unique_lock lock(m, std::try_to_lock);
            BOOST_TEST(lock.owns_lock());
            never.async_wait([own = std::move(lock)](error_code) {});
        });
        io->poll();
    }).join();
    BOOST_TEST(!io->stopped());
    io.reset();
    BOOST_TEST(!m.is_locked());
}

// The thread that has run the context still exists, so a call of the mutex from here is detected.
BOOST_AUTO_TEST_CASE(a_handler_that_owns_a_local_lock_is_destroyed_on_another_thread)
{
    std::unique_ptr<turnstile::local::mutex> m;
    kit::destroy_with_abandoned_context([&](asio::io_context& io) {
        m = std::make_unique<turnstile::local::mutex>(io);
        turnstile::unique_lock lock(*m, std::try_to_lock);
        BOOST_TEST(lock.owns_lock());
        return lock;
    });
    BOOST_TEST(!m->is_locked());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
