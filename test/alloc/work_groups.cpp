// SPDX-License-Identifier: BSL-1.0
// The memory of groups and cancellation sources, and what becomes of them, of select and of all
// when the heap is empty.
#include "alloc/heap.hpp"
#include "alloc/sweep.hpp"
#include "kit/completion.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/queue.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/work/all.hpp>
#include <turnstile/work/cancellation_source.hpp>
#include <turnstile/work/task_group.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using ts::error_code;

using groups = std::tuple<ts::task_group<>, ts::local::task_group<>>;

// Runs the ready handlers. A handler that finds no memory to reach its strand is destroyed.
void poll_all(asio::io_context& io)
{
    for (;;) {
        try {
            kit::poll_leaves_work(io);
            return;
        } catch (const std::bad_alloc&) {
        }
    }
}

BOOST_AUTO_TEST_SUITE(allocation_work_groups)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_million_children_under_a_limit_need_the_memory_of_the_limit, Group,
                              groups)
{
    asio::io_context io;
    Group group(io, {.limit = 100});
    std::size_t running = 0;
    std::size_t most_running = 0;
    std::ptrdiff_t before = 0;
    std::ptrdiff_t most = 0;
    const auto child = [&]() -> asio::awaitable<void> {
        most_running = std::max(most_running, ++running);
        co_await asio::post(asio::use_awaitable);
        --running;
    };
    const auto run = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != 1'000'000; ++i) {
            if (i == 1000)
                before = most = heap::in_use();
            co_await group.async_spawn(child());
            if (i > 1000)
                most = std::max(most, heap::in_use());
        }
    };
    asio::co_spawn(io, run, asio::detached);
    io.run();
    BOOST_TEST(group.stats().succeeded == 1'000'000U);
    BOOST_TEST(most_running == 100U);
    BOOST_TEST(most - before < 200'000); // 100 children
}

BOOST_AUTO_TEST_CASE(binding_does_not_allocate_once_warm)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        ts::cancellation_source stop(io);
        ts::queue<int> numbers(io, 4);
        std::size_t allocations = 1;
        const auto work = [&]() -> asio::awaitable<void> {
            std::size_t before = 0;
            for (int i = 0; i != 1300; ++i) {
                if (i == 300)
                    before = heap::allocations();
                asio::post(io, [&] { BOOST_TEST(numbers.try_push(1)); });
                co_await numbers.async_pop(stop.bind());
            }
            allocations = heap::allocations() - before;
        };
        asio::co_spawn(io, work, asio::detached);
        io.run();
        BOOST_TEST(allocations == 0U);
    }
}

BOOST_AUTO_TEST_CASE(an_operation_is_bound_wholly_or_not_at_all)
{
    heap::sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        ts::event never(io);
        ts::cancellation_source stop(io);
        kit::completion c(kit::dropping::is_expected);
        bool thrown = false;
        heap::failing failing(k, how);
        try {
            never.async_wait(stop.bind(c.handler([] {})));
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        stop.cancel(); // needs no memory
        failing.stop();
        kit::run(io);
        BOOST_TEST(c.dropped() == thrown);
        BOOST_TEST(c.aborted() != thrown);
        BOOST_TEST(never.waiting() == 0U);
        return failing.happened();
    });
}

// The children are no coroutines: Asio's co_spawn calls terminate() if it has no memory for a post.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_child_is_started_wholly_or_not_at_all, Group, groups)
{
    heap::sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        Group group(io, {.limit = 2, .policy = ts::join_policy::wait_all});
        const auto child = [&](auto token) { return asio::post(io, std::move(token)); };
        std::size_t spawned = 0;
        heap::failing failing(k, how);
        for (int i = 0; i != 3; ++i) {
            try {
                if (i == 0)
                    group.spawn(child);
                else
                    group.spawn_when_free(child);
                ++spawned;
            } catch (const std::bad_alloc&) {
            }
        }
        poll_all(io);
        failing.stop();
        kit::run(io);
        const auto stats = group.stats();
        BOOST_TEST(stats.running + stats.queued == 0U);
        BOOST_TEST(stats.spawned == spawned);
        BOOST_TEST(stats.succeeded + stats.failed == spawned);
        group.spawn(child); // both places are free
        group.spawn(child);
        kit::run(io);
        BOOST_TEST(group.stats().succeeded == stats.succeeded + 2);
        return failing.happened();
    });
}

// An operation whose completion cannot be posted to the strand completes with the next event of its
// object, here its destruction; see doc/cancellation.md.
BOOST_AUTO_TEST_CASE(a_select_that_finds_no_memory_takes_nothing)
{
    heap::sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        std::optional<ts::queue<int>> a(std::in_place, io, 2);
        std::optional<ts::queue<int>> b(std::in_place, io, 2);
        BOOST_TEST(a->try_push(1));
        BOOST_TEST(b->try_push(1));
        int calls = 0;
        bool thrown = false;
        bool failed = false;
        heap::failing failing(k, how);
        try {
            ts::async_select(io.get_executor(), a->async_pop(asio::deferred),
                             b->async_pop(asio::deferred),
                             [&](std::exception_ptr e, std::variant<int, int>) {
                                 ++calls;
                                 failed = e != nullptr;
                             });
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        poll_all(io);
        failing.stop();
        poll_all(io);
        const std::size_t left = a->size() + b->size();
        a.reset();
        b.reset();
        kit::run(io);
        // Without any memory the handler may be destroyed.
        if (how == heap::failure::once || thrown)
            BOOST_TEST(calls == (thrown ? 0 : 1));
        BOOST_TEST(calls <= 1);
        BOOST_TEST(left == (calls == 1 && !failed ? 1U : 2U));
        return failing.happened();
    });
}

BOOST_AUTO_TEST_CASE(a_select_of_a_range_that_finds_no_memory_fails)
{
    heap::sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        std::optional<ts::queue<int>> a(std::in_place, io, 2);
        BOOST_TEST(a->try_push(1));
        const auto pop = [&] { return a->async_pop(asio::deferred); };
        std::vector<decltype(pop())> pops;
        pops.push_back(pop());
        pops.push_back(pop());
        int calls = 0;
        bool thrown = false;
        bool failed = false;
        int value = 0;
        heap::failing failing(k, how);
        try {
            ts::async_select(io.get_executor(), std::move(pops),
                             [&](std::exception_ptr e, ts::select_result<int> r) {
                                 ++calls;
                                 failed = e != nullptr;
                                 value = r.value;
                             });
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        poll_all(io);
        failing.stop();
        poll_all(io);
        const std::size_t left = a->size();
        a.reset();
        kit::run(io);
        BOOST_TEST(calls <= (thrown ? 0 : 1));
        BOOST_TEST(value == (calls == 1 && !failed ? 1 : 0));
        BOOST_TEST(left + static_cast<std::size_t>(value) == 1U);
        return failing.happened();
    });
}

BOOST_AUTO_TEST_CASE(an_all_that_finds_no_memory_ends_once)
{
    heap::sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        std::optional<ts::event> set(std::in_place, io);
        set->set();
        int calls = 0;
        bool thrown = false;
        heap::failing failing(k, how);
        try {
            ts::async_all(
                io.get_executor(), set->async_wait(asio::deferred), set->async_wait(asio::deferred),
                [&](std::exception_ptr, std::tuple<std::monostate, std::monostate>) { ++calls; });
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        poll_all(io);
        failing.stop();
        poll_all(io);
        set.reset();
        kit::run(io);
        // Without any memory the handler may be destroyed.
        if (how == heap::failure::once || thrown)
            BOOST_TEST(calls == (thrown ? 0 : 1));
        BOOST_TEST(calls <= 1);
        return failing.happened();
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
