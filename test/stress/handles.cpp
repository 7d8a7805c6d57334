// SPDX-License-Identifier: BSL-1.0
// Handles that are returned on one thread while another destroys their object, and a third the
// context.
#include "kit/threads.hpp"

#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>
#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;

constexpr int rounds = kit::rounds(1000);

// Runs all functions at the same time, each on a thread of its own.
template <class... F>
void at_once(F... f)
{
    std::latch start(sizeof...(f));
    std::vector<std::thread> threads;
    (threads.emplace_back([&start, &f] {
        start.arrive_and_wait();
        f();
    }),
     ...);
    for (std::thread& t : threads)
        t.join();
}

// The object and the context go while handles are returned. `make` makes the object, `take` a pair
// of handles.
template <class Make, class Take>
void races(Make make, Take take)
{
    for (int i = 0; i != rounds; ++i) {
        std::optional<asio::io_context> io(std::in_place);
        auto object = make(*io);
        auto handles = take(*object);
        at_once([&] { object.reset(); }, [&] { auto taken = std::move(handles.first); },
                [&] { auto taken = std::move(handles.second); });

        io.emplace();
        object = make(*io);
        handles = take(*object);
        object.reset();
        at_once([&] { io.reset(); }, [&] { auto taken = std::move(handles.first); },
                [&] { auto taken = std::move(handles.second); });
    }
}

template <class Object, class... Args>
auto maker(Args... args)
{
    return [=](asio::io_context& io) { return std::make_unique<Object>(io, args...); };
}

BOOST_AUTO_TEST_SUITE(stress_handles)

BOOST_AUTO_TEST_CASE(a_lock_and_its_mutex)
{
    races(maker<turnstile::mutex>(), [](turnstile::mutex& m) {
        return std::pair(turnstile::unique_lock(m, std::try_to_lock),
                         turnstile::unique_lock<turnstile::mutex>());
    });
}

BOOST_AUTO_TEST_CASE(shared_locks_and_their_mutex)
{
    races(maker<turnstile::shared_mutex>(), [](turnstile::shared_mutex& m) {
        return std::pair(turnstile::shared_lock(m, std::try_to_lock),
                         turnstile::upgrade_lock(m, std::try_to_lock));
    });
}

BOOST_AUTO_TEST_CASE(permits_and_their_semaphore)
{
    races(maker<turnstile::semaphore>(3), [](turnstile::semaphore& s) {
        auto all = s.try_acquire(3);
        auto one = all.split(1);
        return std::pair(std::move(all), std::move(one));
    });
}

BOOST_AUTO_TEST_CASE(places_and_their_bulkhead)
{
    races(maker<turnstile::bulkhead>(turnstile::bulkhead_options{.limit = 2}),
          [](turnstile::bulkhead& b) { return std::pair(b.try_acquire(), b.try_acquire()); });
}

// A mutex with waiters, on a context that others run: some waiters are granted the lock, and the
// others are aborted, while the mutex goes.
BOOST_AUTO_TEST_CASE(a_lock_that_others_wait_for)
{
    for (int i = 0; i != rounds; ++i) {
        asio::io_context io;
        auto m = std::make_unique<turnstile::mutex>(io);
        turnstile::unique_lock lock(*m, std::try_to_lock);
        kit::expectation expect;
        std::atomic<int> completed = 0;
        for (int n = 0; n != 3; ++n)
            m->async_lock([&](turnstile::error_code ec, turnstile::mutex::lock_type own) {
                expect(own.owns_lock() == !ec);
                ++completed;
            });
        at_once([&] { m.reset(); }, [&] { lock.unlock(); }, [&] { io.run(); }, [&] { io.run(); });
        io.restart();
        io.run();
        BOOST_TEST(completed == 3);
        BOOST_TEST(expect.failures() == 0);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
