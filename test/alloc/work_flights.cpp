// SPDX-License-Identifier: BSL-1.0
// The memory of single_flight, and what becomes of its loads when the heap is empty.
#include "alloc/heap.hpp"
#include "alloc/sweep.hpp"
#include "kit/completion.hpp"
#include "kit/run.hpp"

#include <turnstile/work/single_flight.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <tuple>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;

using flights_types =
    std::tuple<ts::single_flight<std::string, int>, ts::local::single_flight<std::string, int>>;

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

BOOST_AUTO_TEST_SUITE(allocation_work_flights)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_flight_starts_wholly_or_not_at_all, Flights, flights_types)
{
    heap::sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        Flights flights(io);
        std::size_t thrown = 0;
        kit::completion callers[3]{kit::completion(kit::dropping::is_expected),
                                   kit::completion(kit::dropping::is_expected),
                                   kit::completion(kit::dropping::is_expected)};
        heap::failing failing(k, how);
        for (const kit::completion& c : callers) {
            try {
                flights.async_do(
                    "a key on the heap, not in the string", posted_load{&io},
                    c.handler([](std::shared_ptr<const int> v) { BOOST_TEST(*v == 7); }));
            } catch (const std::bad_alloc&) {
                ++thrown;
            }
        }
        poll_all(io);
        failing.stop();
        poll_all(io);
        std::size_t completed = 0;
        for (const kit::completion& c : callers)
            completed += c.done() ? 1 : 0;
        BOOST_TEST(completed + thrown == 3U);
        const ts::single_flight_stats s = flights.stats();
        BOOST_TEST(s.loading == 0U);
        BOOST_TEST(s.waiting == 0U);
        kit::completion next;
        flights.async_do("a key on the heap, not in the string", posted_load{&io},
                         next.handler([](auto) {}));
        kit::run(io);
        BOOST_TEST(next.succeeded());
        return failing.happened();
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_million_keys_one_after_the_other_leave_nothing_behind, Flights,
                              flights_types)
{
    asio::io_context io;
    Flights flights(io);
    std::ptrdiff_t before = 0;
    std::ptrdiff_t after = 1;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != 1'000'300; ++i) {
                if (i == 300)
                    before = heap::in_use();
                const std::string key =
                    "a key on the heap, not in the string: " + std::to_string(1'000'000 + i);
                co_await flights.async_do(key, posted_load{&io});
            }
            after = heap::in_use();
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(after == before);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
