// SPDX-License-Identifier: BSL-1.0
// The memory of a cache, and what becomes of it when the heap is empty.
#include "alloc/heap.hpp"
#include "alloc/sweep.hpp"
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/work/cache.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;

template <class P, class Key = std::string>
using cache_of =
    ts::basic_cache<Key, int, std::hash<Key>, std::equal_to<Key>, asio::any_io_executor, P>;

// An operation, not a coroutine: Asio's co_spawn calls terminate() if it has no memory for a post.
struct posted_load {
    asio::io_context* io;

    template <class Token>
    auto operator()(Token&& token) const
    {
        return asio::async_initiate<Token, void(ts::error_code, int)>(
            [c = io](auto handler) {
                asio::post(
                    *c, [h = std::move(handler)]() mutable { std::move(h)(ts::error_code(), 7); });
            },
            token);
    }
};

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

BOOST_AUTO_TEST_SUITE(allocation_work_cache)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_hit_does_not_allocate, P, kit::policies)
{
    asio::io_context io;
    cache_of<P> cache(io, {.max_entries = 100, .ttl = std::chrono::hours(1)}, posted_load{&io});
    std::size_t before = 0;
    std::size_t after = 1;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != 1300; ++i) {
                if (i == 300)
                    before = heap::allocations();
                co_await cache.async_get("user:123");
            }
            after = heap::allocations();
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(after == before);
    BOOST_TEST(cache.stats().hits == 1299U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ten_million_entries_pass_through_a_cache_that_does_not_grow, P,
                              kit::policies)
{
    constexpr std::uint64_t total = heap::sees_aligned_alloc ? 10'000'000 : 300'000;
    asio::io_context io;
    cache_of<P, std::uint64_t> cache(io, {.max_entries = 10'000});
    std::ptrdiff_t before = 0;
    for (std::uint64_t k = 0; k != total; ++k) {
        if (k == total / 10)
            before = heap::in_use();
        cache.put(k, 1);
    }
    BOOST_TEST(cache.stats().evicted == total - 10'000);
    BOOST_TEST(heap::in_use() - before < 100'000);
    cache.clear();
    BOOST_TEST(heap::in_use() < before);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_load_is_stored_wholly_or_not_at_all, P, kit::policies)
{
    heap::sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        cache_of<P> cache(io, {.max_entries = 100}, posted_load{&io});
        const std::string key = "a key on the heap, not in the string";
        std::size_t thrown = 0;
        kit::completion callers[3]{kit::completion(kit::dropping::is_expected),
                                   kit::completion(kit::dropping::is_expected),
                                   kit::completion(kit::dropping::is_expected)};
        heap::failing failing(k, how);
        for (const kit::completion& c : callers) {
            try {
                cache.async_get(
                    key, c.handler([](std::shared_ptr<const int> v) { BOOST_TEST(*v == 7); }));
            } catch (const std::bad_alloc&) {
                ++thrown;
            }
        }
        poll_all(io);
        failing.stop();
        poll_all(io);
        std::size_t completed = 0;
        bool succeeded = false;
        for (const kit::completion& c : callers) {
            completed += c.done() ? 1 : 0;
            succeeded = succeeded || c.succeeded();
        }
        BOOST_TEST(completed + thrown == 3U);
        BOOST_TEST(cache.contains(key) == succeeded);
        BOOST_TEST(cache.stats().loading == 0U);
        kit::completion next;
        cache.async_get(key, next.handler([](auto) {}));
        kit::run(io);
        BOOST_TEST(next.succeeded());
        return failing.happened();
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_is_put_wholly_or_not_at_all, P, kit::policies)
{
    heap::sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        cache_of<P> cache(io, {.max_entries = 100});
        int events = 0;
        cache.add_listener([&](const auto&) { ++events; });
        std::size_t put = 0;
        heap::failing failing(k, how);
        for (int i = 0; i != 20; ++i) {
            try {
                cache.put("a key on the heap, not in the string " + std::to_string(i), i);
                ++put;
            } catch (const std::bad_alloc&) {
            }
        }
        cache.clear();
        failing.stop();
        BOOST_TEST(cache.size() == 0U);
        BOOST_TEST(static_cast<std::uint64_t>(events) + cache.dropped_events() == put);
        return failing.happened();
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
