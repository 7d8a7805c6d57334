// SPDX-License-Identifier: BSL-1.0
// How often queues go to the heap, and that nothing is lost when it says no.
#include "alloc/heap.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/priority_queue.hpp>
#include <turnstile/channel/queue.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;

using queues = std::tuple<turnstile::queue<int>, turnstile::local::queue<int>>;

BOOST_AUTO_TEST_SUITE(queue_allocations)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_queue_does_not_allocate_once_warm, Queue, queues)
{
    if constexpr (heap::sees_aligned_alloc) {
        for (const std::size_t capacity : {1U, 64U}) {
            asio::io_context io;
            Queue q(io, capacity);
            std::size_t before = 0;
            std::size_t after = 0;
            constexpr int total = 5000;
            asio::co_spawn(
                io,
                [&]() -> asio::awaitable<void> {
                    for (int i = 0; i != total; ++i)
                        co_await q.async_push(i);
                },
                asio::detached);
            asio::co_spawn(
                io,
                [&]() -> asio::awaitable<void> {
                    for (int i = 0; i != total; ++i) {
                        if (i == 500)
                            before = heap::allocations();
                        if (i == total - 500) // before the producer ends
                            after = heap::allocations();
                        co_await q.async_pop();
                    }
                },
                asio::detached);
            kit::run(io);
            BOOST_TEST(after == before);
        }
    }
}

BOOST_AUTO_TEST_CASE(trying_does_not_allocate_once_warm)
{
    asio::io_context io;
    turnstile::queue<std::unique_ptr<int>> q(io, 4);
    turnstile::priority_queue<int> p(io, 4);
    const auto round = [&] {
        BOOST_TEST_REQUIRE(q.try_push(nullptr));
        BOOST_TEST_REQUIRE(static_cast<bool>(p.try_push(1, 2)));
        BOOST_TEST_REQUIRE(q.try_pop().has_value());
        BOOST_TEST_REQUIRE(p.try_pop().has_value());
    };
    round();
    const std::size_t before = heap::allocations();
    for (int i = 0; i != 100; ++i)
        round();
    BOOST_TEST(heap::allocations() == before);
}

// Pushes and pops with an allocation that fails: what was pushed arrives, what was not does not.
BOOST_AUTO_TEST_CASE(a_push_enters_wholly_or_not_at_all)
{
    for (const auto how : {heap::failure::once, heap::failure::for_ever}) {
        for (std::size_t k = 0;; ++k) {
            BOOST_TEST_REQUIRE(k < 100U);
            kit::drained_context io;
            turnstile::queue<int> q(io, 2);
            std::vector<int> pushed;
            pushed.reserve(3);
            heap::failing failing(k, how);
            const auto attempt = [&](int value, auto f) {
                try {
                    if (f(value))
                        pushed.push_back(value);
                } catch (const std::bad_alloc&) {
                }
            };
            attempt(1, [&](int v) { return q.try_push(v); });
            attempt(2, [&](int v) {
                auto place = q.try_reserve();
                place.push(v);
                return true;
            });
            attempt(3, [&](int v) {
                q.async_push(v, [](error_code ec) { BOOST_TEST(!ec); });
                return true;
            });
            failing.stop();
            std::vector<int> popped;
            while (auto item = q.try_pop())
                popped.push_back(*item);
            kit::run(io);
            BOOST_TEST(popped == pushed, boost::test_tools::per_element());
            BOOST_TEST(q.unfinished() == pushed.size());
            if (!failing.happened())
                break;
        }
    }
}

BOOST_AUTO_TEST_CASE(a_batch_that_there_is_no_memory_for_stays_where_it_is)
{
    kit::drained_context io;
    turnstile::queue<int> q(io, turnstile::unbounded);
    for (int i = 0; i != 5; ++i)
        BOOST_TEST_REQUIRE(q.try_push(i));
    {
        heap::failing failing(0, heap::failure::once);
        BOOST_CHECK_THROW((void)q.try_pop_n(3), std::bad_alloc);
    }
    BOOST_TEST(q.size() == 5U);
    const std::vector<int> all = q.try_pop_n(5);
    BOOST_TEST((all == std::vector<int>{0, 1, 2, 3, 4}));
}

struct throwing_move {
    explicit throwing_move(int v) : value(v) {}
    throwing_move(throwing_move&& other) noexcept(false) : value(std::exchange(other.value, -1)) {}
    int value;
};

BOOST_AUTO_TEST_CASE(a_batch_of_values_whose_moves_throw_is_taken_wholly_or_not_at_all)
{
    for (std::size_t k = 0;; ++k) {
        BOOST_TEST_REQUIRE(k < 100U);
        kit::drained_context io;
        turnstile::queue<throwing_move> q(io, turnstile::unbounded);
        for (int i = 0; i != 5; ++i)
            BOOST_TEST_REQUIRE(q.try_push(throwing_move(i)));
        heap::failing failing(k, heap::failure::once);
        std::size_t taken = 0;
        try {
            taken = q.try_pop_n(3).size();
        } catch (const std::bad_alloc&) {
        }
        failing.stop();
        BOOST_TEST(taken == (failing.happened() ? 0U : 3U));
        BOOST_TEST(q.size() == 5 - taken);
        if (!failing.happened())
            break;
    }
}

BOOST_AUTO_TEST_CASE(a_value_that_there_is_no_memory_for_has_not_been_moved_from)
{
    for (const bool reserved : {true, false}) {
        bool thrown = true;
        for (std::size_t k = 0; thrown; ++k) {
            asio::io_context io;
            turnstile::queue<throwing_move> q(io, 2);
            throwing_move value(7);
            auto place = q.try_reserve();
            heap::failing failing(k, heap::failure::once);
            try {
                if (reserved)
                    place.push(std::move(value));
                else
                    BOOST_TEST(q.try_push(std::move(value)));
                thrown = false;
            } catch (const std::bad_alloc&) {
                BOOST_TEST(value.value == 7);
            }
            failing.stop();
            BOOST_TEST(q.size() == (thrown ? 0U : 1U));
        }
    }
}

BOOST_AUTO_TEST_CASE(many_items_leave_little_memory_in_use)
{
    asio::io_context io;
    turnstile::queue<std::string> q(io, turnstile::unbounded);
    const std::ptrdiff_t before = heap::in_use();
    constexpr std::ptrdiff_t total = 100'000;
    const auto push_all = [&] {
        for (std::ptrdiff_t i = 0; i != total; ++i)
            BOOST_TEST_REQUIRE(q.try_push("short"));
        BOOST_TEST(heap::in_use() - before >= total);
    };
    push_all();
    while (q.try_pop()) {
    }
    BOOST_TEST(heap::in_use() - before <= 256);
    push_all();
    while (!q.try_pop_n(100).empty()) {
    }
    BOOST_TEST(heap::in_use() - before <= 256);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
