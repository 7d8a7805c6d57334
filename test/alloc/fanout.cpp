// SPDX-License-Identifier: BSL-1.0
// How often broadcast, watch and oneshot go to the global heap, and what becomes of them when
// it is empty.
#include "alloc/heap.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/broadcast.hpp>
#include <turnstile/channel/oneshot.hpp>
#include <turnstile/channel/watch.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <new>
#include <optional>
#include <tuple>

namespace {

namespace asio = boost::asio;
using turnstile::error_code;
using policies = std::tuple<turnstile::thread_safe, turnstile::strand_confined>;

constexpr int warm_up = 300;
constexpr int rounds = 1000;

// Counts the allocations of body() in a coroutine, after the first rounds.
template <class Body>
std::size_t allocations_of(Body body)
{
    asio::io_context io;
    std::size_t before = 0;
    std::size_t after = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            auto round = body(io);
            for (int i = 0; i != warm_up + rounds; ++i) {
                if (i == warm_up)
                    before = heap::allocations();
                co_await round();
            }
            after = heap::allocations();
        },
        asio::detached);
    io.run();
    return after - before;
}

BOOST_AUTO_TEST_SUITE(fanout_allocations)

BOOST_AUTO_TEST_CASE_TEMPLATE(sending_and_receiving_does_not_allocate_once_warm, P, policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        using channel = turnstile::basic_broadcast<int, asio::any_io_executor, P>;
        using cell = turnstile::basic_watch<int, asio::any_io_executor, P>;
        std::optional<channel> b;
        std::optional<typename channel::receiver_type> r;
        BOOST_TEST(allocations_of([&](asio::io_context& io) {
                       r.reset();
                       b.emplace(io.get_executor(), 4U);
                       r.emplace(b->subscribe());
                       return [&]() -> asio::awaitable<void> {
                           b->send(1);
                           co_await r->async_receive();
                       };
                   }) == 0U);
        std::optional<cell> w;
        BOOST_TEST(allocations_of([&](asio::io_context& io) {
                       w.emplace(io.get_executor(), 1);
                       return [&]() -> asio::awaitable<void> {
                           const auto seen = w->version();
                           w->set(2);
                           co_await w->async_wait_changed(seen);
                           co_await w->async_wait_for([](int v) { return v == 2; });
                       };
                   }) == 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waking_many_receivers_does_not_allocate, P, policies)
{
    if constexpr (heap::sees_aligned_alloc) {
        asio::io_context io;
        turnstile::basic_broadcast<int, asio::any_io_executor, P> b(io, 4);
        turnstile::basic_watch<int, asio::any_io_executor, P> w(io, 1);
        std::vector<decltype(b.subscribe())> receivers;
        int woken = 0;
        for (int i = 0; i != 500; ++i) {
            receivers.push_back(b.subscribe());
            receivers.back().async_receive([&](error_code, auto) { ++woken; });
            w.async_wait_changed(1, [&](error_code, auto) { ++woken; });
        }
        std::size_t before = 0;
        asio::post(io, [&] {
            before = heap::allocations();
            b.send(1);
            w.set(2);
        });
        io.run();
        BOOST_TEST(heap::allocations() - before <= 2U); // one for each value
        BOOST_TEST(woken == 1000);
    }
}

// Tries with allocation 0, 1, 2, ... failing until it gets by without; says how often it was
// done, which is once.
template <class Attempt>
int sweep(Attempt attempt)
{
    int done = 0;
    for (std::size_t k = 0;; ++k) {
        BOOST_TEST_REQUIRE(k < 100U);
        heap::failing failing(k, heap::failure::once);
        try {
            attempt();
            ++done;
        } catch (const std::bad_alloc&) {
        }
        failing.stop();
        if (!failing.happened())
            return done;
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failed_allocation_leaves_no_trace, P, policies)
{
    asio::io_context io;
    turnstile::basic_broadcast<int, asio::any_io_executor, P> b(io, 4);
    auto r = b.subscribe();
    BOOST_TEST(sweep([&] { b.send(1); }) == 1);
    BOOST_TEST(r.available() == 1U);
    BOOST_TEST(sweep([&] { (void)b.subscribe(); }) == 1);
    BOOST_TEST(b.receivers() == 1U);

    turnstile::basic_watch<int, asio::any_io_executor, P> w(io, 0);
    BOOST_TEST(sweep([&] { w.update([](int& v) { ++v; }); }) == 1);
    BOOST_TEST(*w.get() == 1);

    int received = 0;
    BOOST_TEST(sweep([&] {
                   turnstile::basic_oneshot<int, asio::any_io_executor, P> o(io);
                   o.sender.send(1);
                   received += o.receiver.try_receive().value_or(0);
               }) == 1);
    BOOST_TEST(received == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
