// SPDX-License-Identifier: BSL-1.0
// Operations whose handler throws when it is moved.
#include "kit/run.hpp"

#include <turnstile/channel/queue.hpp>
#include <turnstile/sync/mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <utility>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

struct thrown {};

// Throws in the move that decrements *moves_left to zero.
struct throws_when_moved {
    int* moves_left;
    int* calls;

    throws_when_moved(int& left, int& c) noexcept : moves_left(&left), calls(&c) {}
    throws_when_moved(const throws_when_moved&) = delete;
    throws_when_moved& operator=(const throws_when_moved&) = delete;
    throws_when_moved(throws_when_moved&& other) : moves_left(other.moves_left), calls(other.calls)
    {
        if (--*moves_left == 0)
            throw thrown();
    }

    template <class... Values>
    void operator()(error_code ec, Values&&...) const
    {
        BOOST_TEST(!ec);
        ++*calls;
    }
};

constexpr int most_moves = 20;

BOOST_AUTO_TEST_SUITE(wait_operation)

// Whichever move throws, at the start or at the end of the operation, the lock is released.
BOOST_AUTO_TEST_CASE(a_handler_that_throws_when_moved_loses_no_lock)
{
    for (int k = 1; k != most_moves; ++k) {
        kit::drained_context io;
        turnstile::mutex m(io);
        int left = k;
        int calls = 0;
        bool failed = false;
        try {
            m.async_lock(throws_when_moved(left, calls));
            kit::run(io);
        } catch (const thrown&) {
            failed = true;
        }
        kit::run(io);
        BOOST_TEST(calls == (failed ? 0 : 1));
        BOOST_TEST_REQUIRE(m.try_lock());
        m.unlock();
    }
}

// A push whose handler throws in the initiating function has pushed nothing and occupies no place.
BOOST_AUTO_TEST_CASE(a_handler_that_throws_when_moved_loses_no_place_in_a_queue)
{
    for (int k = 1; k != most_moves; ++k) {
        kit::drained_context io;
        turnstile::queue<std::unique_ptr<int>> q(io, 1);
        int left = k;
        int calls = 0;
        bool started = false;
        try {
            q.async_push(std::make_unique<int>(k), throws_when_moved(left, calls));
            started = true;
            kit::run(io);
        } catch (const thrown&) {
        }
        kit::run(io);
        const auto popped = q.try_pop();
        BOOST_TEST((popped && *popped && **popped == k) == started);
        BOOST_TEST(q.try_push(std::make_unique<int>(0)));
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
