// SPDX-License-Identifier: BSL-1.0
// A queue on several threads: every item arrives exactly once, whichever operations are cancelled.
#include "kit/threads.hpp"

#include <turnstile/channel/priority_queue.hpp>
#include <turnstile/channel/queue.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using turnstile::errc;

constexpr int sides = 4; // producers, and as many consumers
constexpr int items = kit::rounds(3000, 20);

// Producers push each item until a push succeeds, consumers pop until the queue is closed. One
// operation in three is cancelled.
template <class Queue, class Push, class Value>
void every_item_arrives_once(std::size_t capacity, Push push, Value value_of)
{
    asio::io_context io;
    Queue q(io, capacity);
    std::mutex mutex;
    std::vector<int> arrived;
    std::atomic<int> producing = sides;

    const auto produce = [&](int id) -> asio::awaitable<void> {
        const auto strand = co_await asio::this_coro::executor;
        for (int i = 0; i != items;) {
            kit::racing_cancellation cancellation(strand, (i + id) % 3 == 0);
            auto result = co_await push(q, id * items + i, cancellation.token());
            co_await cancellation.emitted();
            if (!std::get<0>(result))
                ++i;
        }
        if (--producing == 0) {
            co_await q.async_join();
            q.close();
        }
    };
    const auto consume = [&](int id) -> asio::awaitable<void> {
        const auto strand = co_await asio::this_coro::executor;
        for (int i = 0;; ++i) {
            kit::racing_cancellation cancellation(strand, (i + id) % 3 == 0);
            auto [ec, batch] = co_await q.async_pop_n(3, cancellation.token());
            co_await cancellation.emitted();
            if (ec == errc::closed)
                co_return;
            for (auto& value : batch) {
                {
                    const std::scoped_lock lock(mutex);
                    arrived.push_back(value_of(value));
                }
                q.task_done();
            }
        }
    };
    for (int i = 0; i != sides; ++i) {
        asio::co_spawn(asio::make_strand(io), produce(i), asio::detached);
        asio::co_spawn(asio::make_strand(io), consume(i), asio::detached);
    }
    kit::run_on_threads(io);
    BOOST_TEST(arrived.size() == static_cast<std::size_t>(sides * items));
    std::sort(arrived.begin(), arrived.end());
    BOOST_TEST((std::unique(arrived.begin(), arrived.end()) == arrived.end()), "doubled");
    BOOST_TEST(q.unfinished() == 0U);
}

BOOST_AUTO_TEST_SUITE(stress_queue)

BOOST_AUTO_TEST_CASE(a_queue_loses_and_doubles_nothing_when_cancelled)
{
    using queue = turnstile::queue<std::unique_ptr<int>>;
    for (const std::size_t capacity : {0U, 1U, 16U})
        every_item_arrives_once<queue>(
            capacity,
            [](queue& q, int i, auto token) {
                return q.async_push(std::make_unique<int>(i), token);
            },
            [](const std::unique_ptr<int>& p) { return *p; });
}

BOOST_AUTO_TEST_CASE(a_priority_queue_loses_and_doubles_nothing_when_cancelled)
{
    using queue = turnstile::priority_queue<int, std::string>;
    every_item_arrives_once<queue>(
        4, [](queue& q, int i, auto token) { return q.async_push(i, std::to_string(i), token); },
        [](int i) { return i; });
}

BOOST_AUTO_TEST_CASE(the_items_of_each_producer_stay_in_order)
{
    asio::io_context io;
    turnstile::queue<int> q(io, 8);
    std::atomic<long> sum = 0;
    std::atomic<int> popped = 0;
    std::atomic<bool> ordered = true;
    const auto produce = [&](int id) -> asio::awaitable<void> {
        for (int i = 0; i != items; ++i)
            co_await q.async_push(id * items + i);
    };
    const auto consume = [&]() -> asio::awaitable<void> {
        std::vector<int> last(sides, -1);
        for (int i = 0; i != items; ++i) {
            const int value = co_await q.async_pop();
            int& before = last[static_cast<std::size_t>(value / items)];
            if (before >= value)
                ordered = false;
            before = value;
            sum += value;
            ++popped;
        }
    };
    for (int i = 0; i != sides; ++i) {
        asio::co_spawn(io, produce(i), asio::detached);
        asio::co_spawn(io, consume(), asio::detached);
    }
    kit::run_on_threads(io);
    const long total = sides * items;
    BOOST_TEST(popped == total);
    BOOST_TEST(ordered);
    BOOST_TEST(sum == total * (total - 1) / 2);
}

// The queue is destroyed while the result of a granted pop is constructed, before the pop takes its
// item.
struct outlives_its_queue {
    outlives_its_queue() noexcept
    {
        if (!is_result.exchange(false))
            return;
        being_made.release();
        queue_is_gone.acquire();
    }
    explicit outlives_its_queue(int v) noexcept : value(v) {}

    int value = 0;
    static inline std::atomic<bool> is_result = false;
    static inline std::binary_semaphore being_made{0};
    static inline std::binary_semaphore queue_is_gone{0};
};

BOOST_AUTO_TEST_CASE(a_queue_may_be_destroyed_while_a_pop_is_delivered)
{
    asio::io_context io;
    auto q = std::make_unique<turnstile::queue<outlives_its_queue>>(io, 1);
    int got = 0;
    q->async_pop([&](turnstile::error_code ec, outlives_its_queue v) { got = ec ? -1 : v.value; });
    BOOST_TEST(q->try_push(outlives_its_queue(7)));
    BOOST_TEST(q->try_push(outlives_its_queue(8)));
    outlives_its_queue::is_result = true;
    {
        kit::joining_thread runner([&] { io.run(); });
        outlives_its_queue::being_made.acquire();
        q.reset();
        outlives_its_queue::queue_is_gone.release();
    }
    BOOST_TEST(got == -1, "the item was destroyed with the queue");
}

BOOST_AUTO_TEST_CASE(closing_completes_pushes_and_pops_on_several_threads)
{
    for (int round = 0; round != items / 10; ++round) {
        asio::io_context io;
        turnstile::queue<int> q(io, 2);
        std::atomic<int> entered = 0;
        std::atomic<int> left = 0;
        std::atomic<int> ended = 0;
        for (int i = 0; i != 8; ++i) {
            asio::post(io, [&] {
                q.async_push(1, [&](turnstile::error_code ec) {
                    entered += ec ? 0 : 1;
                    ++ended;
                });
            });
            asio::post(io, [&] {
                q.async_pop([&](turnstile::error_code ec, int) {
                    left += ec ? 0 : 1;
                    ++ended;
                });
            });
        }
        asio::post(io, [&] { q.close(); });
        kit::run_on_threads(io);
        BOOST_TEST(ended == 16);
        while (q.try_pop())
            ++left;
        BOOST_TEST(left == entered);
    }
}

// Its destructor returns once the flag is set.
struct lingering {
    explicit lingering(std::atomic<bool>& f) noexcept : flag(&f) {}
    lingering(lingering&& other) noexcept : flag(std::exchange(other.flag, nullptr)) {}
    lingering& operator=(lingering&& other) noexcept
    {
        std::swap(flag, other.flag);
        return *this;
    }
    ~lingering()
    {
        while (flag && !*flag)
            std::this_thread::yield();
    }
    std::atomic<bool>* flag;
};

// close() destroys the item after it has completed the join.
BOOST_AUTO_TEST_CASE(a_handler_completed_by_close_may_destroy_the_queue)
{
    asio::io_context io;
    kit::context_thread runner(io);
    std::atomic<bool> gone = false;
    auto q = std::make_unique<turnstile::queue<lingering>>(io, 4);
    BOOST_TEST(q->try_push(lingering(gone)));
    turnstile::queue<lingering>& closing = *q;
    closing.async_join([&, owner = std::move(q)](turnstile::error_code) mutable {
        owner.reset();
        asio::post(io, [&] { gone = true; }); // when this handler has been destroyed
    });
    closing.close(turnstile::close_mode::discard);
    runner.finish();
    BOOST_TEST(gone);
}

// The queue is destroyed while its completions are being delivered. The push of a popped item
// succeeds, so that a producer that pushes again after an error pushes no item twice.
BOOST_AUTO_TEST_CASE(a_push_succeeds_if_its_item_was_popped_whenever_the_queue_is_destroyed)
{
    constexpr std::size_t pairs = 6;
    asio::thread_pool pool(2);
    for (int round = 0; round != kit::rounds(3000); ++round) {
        std::array<std::atomic<int>, pairs> popped{};
        std::array<std::atomic<bool>, pairs> pushed{};
        std::latch handlers(2 * pairs);
        auto q = std::make_unique<turnstile::queue<std::size_t>>(pool, 2);
        for (std::size_t i = 0; i != pairs; ++i) {
            q->async_push(i, [&, i](turnstile::error_code ec) {
                pushed[i] = !ec;
                handlers.count_down();
            });
        }
        for (std::size_t i = 0; i != pairs; ++i) {
            q->async_pop([&](turnstile::error_code ec, std::size_t item) {
                if (!ec)
                    ++popped[item];
                handlers.count_down();
            });
        }
        for (int spin = 0; spin != round % 8; ++spin)
            std::this_thread::yield();
        q.reset();
        handlers.wait();
        for (std::size_t i = 0; i != pairs; ++i) {
            BOOST_TEST_REQUIRE(popped[i] <= 1);
            BOOST_TEST_REQUIRE((pushed[i] || popped[i] == 0), "popped, but reported as an error");
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
