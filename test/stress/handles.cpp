// SPDX-License-Identifier: BSL-1.0
// Handles that are released on one thread while another thread destroys their object, or the
// context.
#include "kit/threads.hpp"

#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>
#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace {

namespace asio = boost::asio;

constexpr int rounds = kit::rounds(1000);

// Two handles are released while first the object and then the context is destroyed. `make` makes
// the object, `take` the pair of handles.
template <class Make, class Take>
void release_while_destroying(Make make, Take take)
{
    for (int i = 0; i != rounds; ++i) {
        std::optional<asio::io_context> io(std::in_place);
        auto object = make(*io);
        auto handles = take(*object);
        kit::at_once([&] { object.reset(); }, [&] { auto taken = std::move(handles.first); },
                     [&] { auto taken = std::move(handles.second); });

        io.emplace();
        object = make(*io);
        handles = take(*object);
        object.reset();
        kit::at_once([&] { io.reset(); }, [&] { auto taken = std::move(handles.first); },
                     [&] { auto taken = std::move(handles.second); });
    }
}

template <class Object, class... Args>
auto maker(Args... args)
{
    return [=](asio::io_context& io) { return std::make_unique<Object>(io, args...); };
}

BOOST_AUTO_TEST_SUITE(stress_handles)

BOOST_AUTO_TEST_CASE(a_lock_is_released_while_its_mutex_is_destroyed)
{
    release_while_destroying(maker<turnstile::mutex>(), [](turnstile::mutex& m) {
        return std::pair(turnstile::unique_lock(m, std::try_to_lock),
                         turnstile::unique_lock<turnstile::mutex>());
    });
}

BOOST_AUTO_TEST_CASE(shared_locks_are_released_while_their_mutex_is_destroyed)
{
    release_while_destroying(maker<turnstile::shared_mutex>(), [](turnstile::shared_mutex& m) {
        return std::pair(turnstile::shared_lock(m, std::try_to_lock),
                         turnstile::upgrade_lock(m, std::try_to_lock));
    });
}

BOOST_AUTO_TEST_CASE(permits_are_released_while_their_semaphore_is_destroyed)
{
    release_while_destroying(maker<turnstile::semaphore>(3), [](turnstile::semaphore& s) {
        auto all = s.try_acquire(3);
        auto one = all.split(1);
        return std::pair(std::move(all), std::move(one));
    });
}

BOOST_AUTO_TEST_CASE(permits_are_released_while_their_bulkhead_is_destroyed)
{
    release_while_destroying(
        maker<turnstile::bulkhead>(turnstile::bulkhead_options{.limit = 2}),
        [](turnstile::bulkhead& b) { return std::pair(b.try_acquire(), b.try_acquire()); });
}

// The mutex is destroyed while two threads run its context: some waiters are granted the lock, the
// other waiters are aborted.
BOOST_AUTO_TEST_CASE(a_lock_with_waiters_is_released_while_its_mutex_is_destroyed)
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
        kit::at_once([&] { m.reset(); }, [&] { lock.unlock(); }, [&] { io.run(); },
                     [&] { io.run(); });
        io.restart();
        io.run();
        BOOST_TEST(completed == 3);
        BOOST_TEST(expect.failures() == 0);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
