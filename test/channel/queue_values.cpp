// SPDX-License-Identifier: BSL-1.0
// Values of every kind: each is delivered, given back or destroyed exactly once.
#include "channel/operation.hpp"
#include "kit/mindful.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace {

using namespace channels;

// Neither copyable nor default constructible; its moves throw on demand.
struct difficult {
    explicit difficult(int v) : value(v) { ++alive; }
    difficult(difficult&& other) : value(other.value)
    {
        if (on_move)
            on_move();
        if (throws)
            throw std::runtime_error("cannot be moved");
        other.value = moved_from;
        ++alive;
    }
    difficult& operator=(difficult&&) = delete;
    ~difficult() { --alive; }

    static constexpr int moved_from = -1;
    static inline int alive = 0;
    static inline bool throws = false;
    static inline std::function<void()> on_move;
    int value;
};

// Uses its queue while it is destroyed, which must not happen under the lock.
struct nosy {
    explicit nosy(turnstile::queue<nosy>* q) : queue(q) {}
    nosy(nosy&& other) noexcept : queue(std::exchange(other.queue, nullptr)) {}
    nosy& operator=(nosy&& other) noexcept
    {
        std::swap(queue, other.queue);
        return *this;
    }
    ~nosy()
    {
        if (queue)
            seen += 1 + queue->size();
    }
    turnstile::queue<nosy>* queue;
    static inline std::size_t seen = 0;
};

template <class Threading>
using difficult_queue = turnstile::basic_queue<difficult, asio::any_io_executor, Threading>;

BOOST_AUTO_TEST_SUITE(queue_values)

BOOST_AUTO_TEST_CASE(values_that_can_only_be_moved)
{
    kit::drained_context io;
    turnstile::queue<std::unique_ptr<int>> q(io, 1);
    std::unique_ptr<int> got;
    q.async_push(std::make_unique<int>(1), [](error_code ec) { BOOST_TEST(!ec); });
    auto kept = std::make_unique<int>(2);
    BOOST_TEST(!q.try_push(std::move(kept)));
    BOOST_TEST(*kept == 2, "a failed try_push has moved from its argument");
    q.async_pop([&](error_code, std::unique_ptr<int> p) { got = std::move(p); });
    kit::run(io);
    BOOST_TEST(*got == 1);
    BOOST_TEST(q.try_push(std::move(kept)));
    BOOST_TEST(**q.try_pop() == 2);
    auto place = q.try_reserve();
    q.close(close_mode::discard);
    kept = std::make_unique<int>(3);
    error_code ec;
    place.push(std::move(kept), ec);
    BOOST_TEST((ec == errc::closed));
    BOOST_TEST(*kept == 3);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(values_whose_moves_throw_and_that_have_no_default, Threading,
                              kit::policies)
{
    {
        kit::drained_context io;
        difficult_queue<Threading> q(io, 2);
        int sum = 0;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                for (int i = 1; i <= 3; ++i)
                    co_await q.async_push(difficult(i));
            },
            asio::detached);
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                std::optional<difficult> first = co_await q.async_pop();
                sum += first->value;
                std::vector<difficult> rest = co_await q.async_pop_n(5);
                for (const auto& d : rest)
                    sum += 10 * d.value;
            },
            asio::detached);
        kit::run(io);
        BOOST_TEST(sum == 1 + 10 * 2 + 10 * 3);

        difficult kept(7);
        BOOST_TEST(q.try_push(difficult(4)));
        BOOST_TEST(q.try_push(difficult(5)));
        error_code full = errc::broken;
        BOOST_TEST(!q.try_push(std::move(kept), full));
        BOOST_TEST(!full);
        BOOST_TEST(kept.value == 7);
        BOOST_TEST(q.try_pop()->value == 4);
        auto place = q.try_reserve();
        place.push(std::move(kept));
        BOOST_TEST(q.size() == 2U);

        // A handler, with a value and without.
        q.async_pop([&](error_code ec, std::optional<difficult> d) {
            BOOST_TEST(!ec);
            sum = d->value;
        });
        kit::run(io);
        BOOST_TEST(sum == 5);
        q.close(close_mode::discard);
        error_code closed;
        BOOST_TEST(!q.try_push(difficult(8), closed));
        BOOST_TEST((closed == errc::closed));
        q.async_pop([&](error_code ec, std::optional<difficult> d) {
            BOOST_TEST((ec == errc::closed));
            BOOST_TEST(!d.has_value());
        });
        kit::run(io);
    }
    BOOST_TEST(difficult::alive == 0);
}

BOOST_AUTO_TEST_CASE(a_move_that_throws_leaves_the_queue_usable)
{
    {
        kit::drained_context io;
        turnstile::queue<difficult> q(io, 1);
        difficult kept(1);
        difficult::throws = true;
        BOOST_CHECK_THROW((void)q.try_push(std::move(kept)), std::runtime_error);
        BOOST_TEST(kept.value == 1);
        auto place = q.try_reserve();
        BOOST_TEST(static_cast<bool>(place), "the place was lost");
        error_code ec;
        BOOST_CHECK_THROW(place.push(std::move(kept), ec), std::runtime_error);
        BOOST_TEST(static_cast<bool>(place));
        difficult::throws = false;
        place.push(std::move(kept));

        // An exception during the hand-over reaches the consumer.
        bool caught = false;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                try {
                    co_await q.async_pop();
                } catch (const std::runtime_error&) {
                    caught = true;
                }
            },
            asio::detached);
        difficult::throws = true;
        kit::run(io);
        difficult::throws = false;
        BOOST_TEST(caught);
        BOOST_TEST(q.empty());
        q.task_done();
    }
    BOOST_TEST(difficult::alive == 0);
}

BOOST_AUTO_TEST_CASE(a_value_that_does_not_enter_is_destroyed_once)
{
    {
        kit::drained_context io;
        turnstile::queue<difficult> q(io, 1);
        std::vector<operation> pushes(4);
        for (auto& op : pushes)
            q.async_push(difficult(1), op.ended());
        pushes[1].cancel();
        q.close();
        kit::run(io);
        BOOST_TEST(pushes[0].succeeded());
        BOOST_TEST(pushes[1].aborted());
        BOOST_TEST(pushes[2].failed_with(errc::closed));
        BOOST_TEST(difficult::alive == 1, "only the one that entered is left");
    }
    BOOST_TEST(difficult::alive == 0);
}

BOOST_AUTO_TEST_CASE(destroying_the_queue_or_the_context_destroys_all_values)
{
    for (const bool context_first : {false, true}) {
        std::optional<asio::io_context> io(std::in_place);
        std::optional<turnstile::queue<difficult>> q(std::in_place, *io, 2);
        operation ops[6];
        for (int i = 0; i != 3; ++i)
            q->async_push(difficult(i), ops[i].ended());
        std::optional<difficult> got;
        q->async_pop([&](error_code, std::optional<difficult>) {});
        if (context_first)
            io.reset();
        q.reset();
        io.reset();
        BOOST_TEST(difficult::alive == 0);
    }
}

BOOST_AUTO_TEST_CASE(no_value_is_destroyed_under_the_lock)
{
    kit::drained_context io;
    nosy::seen = 0;
    operation push;
    turnstile::queue<nosy> q(io, 1, overflow::drop_oldest);
    BOOST_TEST(q.try_push(nosy(&q)));
    BOOST_TEST(q.try_push(nosy(&q)), "displaces the first");
    BOOST_TEST(nosy::seen == 2U);
    q.async_push(nosy(&q), push.ended());
    push.cancel();
    kit::run(io);
    BOOST_TEST(nosy::seen == 4U);
    q.async_pop([](error_code, std::optional<nosy>) {});
    kit::run(io);
    BOOST_TEST(nosy::seen == 5U);
    BOOST_TEST(q.try_push(nosy(&q)));
    q.close(close_mode::discard);
    BOOST_TEST(nosy::seen == 6U);
}

// Its default constructor throws on demand.
struct reluctant {
    reluctant() : value(0)
    {
        if (throws)
            throw std::runtime_error("cannot be made");
    }
    explicit reluctant(int v) noexcept : value(v) {}

    static inline bool throws = false;
    int value;
};

BOOST_AUTO_TEST_CASE(a_value_is_popped_though_its_default_constructor_throws)
{
    kit::drained_context io;
    turnstile::queue<reluctant> q(io, turnstile::unbounded);
    int sum = 0;
    for (int i = 1; i <= 3; ++i)
        BOOST_TEST(q.try_push(reluctant(i)));
    reluctant::throws = true;
    q.async_pop([&](error_code, reluctant r) { sum += r.value; });
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            sum += (co_await q.async_pop()).value;
            sum += (co_await q.async_pop()).value;
            try {
                co_await q.async_pop();
            } catch (const system_error& e) {
                BOOST_TEST((e.code() == errc::closed));
            }
        },
        asio::detached);
    kit::poll_leaves_work(io);
    BOOST_TEST(sum == 6);
    q.close();
    kit::run(io);
    // A failed pop makes an empty value; its exception counts as one of the handler.
    q.async_pop([&](error_code, reluctant) { sum = 0; });
    BOOST_CHECK_THROW(kit::run(io), std::runtime_error);
    reluctant::throws = false;
    kit::run(io);
    BOOST_TEST(sum == 6);
}

BOOST_AUTO_TEST_CASE(a_value_moved_during_a_discarding_close_is_discarded)
{
    {
        kit::drained_context io;
        turnstile::priority_queue<difficult> q(io, turnstile::unbounded);
        auto place = q.try_reserve();
        difficult value(1);
        difficult::on_move = [&] { q.close(close_mode::discard); };
        error_code ec;
        const auto handle = place.push(std::move(value), 1, ec);
        difficult::on_move = nullptr;
        BOOST_TEST(!ec);
        BOOST_TEST(!place);
        BOOST_TEST(value.value == difficult::moved_from);
        BOOST_TEST(static_cast<bool>(handle));
        BOOST_TEST(!q.change_priority(handle, 2));
        BOOST_TEST(q.empty());
        BOOST_TEST(q.unfinished() == 0U);
    }
    BOOST_TEST(difficult::alive == 0);
}

BOOST_AUTO_TEST_CASE(a_priority_queue_of_values_whose_moves_throw)
{
    {
        kit::drained_context io;
        turnstile::priority_queue<difficult> q(io, 2);
        std::vector<int> got;
        BOOST_TEST(static_cast<bool>(q.try_push(difficult(2), 2)));
        operation push;
        q.async_push(difficult(1), 1, push.pushed());
        difficult kept(3);
        BOOST_TEST(!q.try_push(std::move(kept), 3));
        BOOST_TEST(kept.value == 3);
        q.async_pop([&](error_code, std::optional<difficult> d) { got.push_back(d->value); });
        kit::run(io);
        BOOST_TEST(push.succeeded());
        difficult::throws = true;
        BOOST_CHECK_THROW((void)q.try_push(std::move(kept), 3), std::runtime_error);
        difficult::throws = false;
        BOOST_TEST(static_cast<bool>(q.try_push(std::move(kept), 3)));
        const auto handle = q.try_push(difficult(4), 4);
        BOOST_TEST(!handle, "it is full");
        for (const auto& d : q.try_pop_n(5))
            got.push_back(d.value);
        BOOST_TEST((got == numbers{1, 2, 3}));
        BOOST_TEST(q.erase(q.try_push(difficult(5), 5))->value == 5);
    }
    BOOST_TEST(difficult::alive == 0);
}

BOOST_AUTO_TEST_CASE(a_move_that_throws_in_a_batch_loses_the_batch_and_nothing_else)
{
    {
        kit::drained_context io;
        turnstile::queue<difficult> q(io, 3);
        for (int i = 1; i <= 3; ++i)
            BOOST_TEST(q.try_push(difficult(i)));
        int moves = 0;
        difficult::on_move = [&] { difficult::throws = ++moves == 2; };
        BOOST_CHECK_THROW((void)q.try_pop_n(2), std::runtime_error);
        difficult::on_move = nullptr;
        difficult::throws = false;
        BOOST_TEST(q.size() == 1U);
        BOOST_TEST(q.try_pop()->value == 3);
    }
    BOOST_TEST(difficult::alive == 0);
}

// The handler may own the queue, and a value that it receives by reference may use the queue.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_is_destroyed_before_its_handler, P, kit::policies)
{
    kit::drained_context home;
    kit::drained_context away;
    const asio::any_io_executor executors[] = {home.get_executor(), away.get_executor()};
    for (const auto& executor : executors) {
        bool over = false;
        bool called = false;
        auto q = std::make_shared<turnstile::basic_queue<kit::mindful, asio::any_io_executor, P>>(
            home.get_executor(), 1);
        auto last = kit::last_breath(over);
        BOOST_TEST(q->try_push(kit::mindful(over)));
        q->async_pop(asio::bind_executor(
            executor, [&called, last = std::move(last), q](error_code, const kit::mindful& got) {
                called = static_cast<bool>(got);
            }));
        q.reset();
        kit::run(home);
        kit::run(away);
        BOOST_TEST(called);
        BOOST_TEST(over);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
