// Allocation k fails, once or for ever, for every k: nothing is lost, nothing is doubled.
#include "alloc/heap.hpp"
#include "contract/subjects/auto_reset_event.hpp"
#include "contract/subjects/event.hpp"
#include "contract/subjects/mutex.hpp"
#include "contract/subjects/semaphore.hpp"
#include "kit/run.hpp"

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <new>
#include <optional>
#include <tuple>
#include <utility>

namespace {

using namespace contract;
using kit::completion;
using kit::dropping;

// The primitives on permit_gate and flag_gate; those with a state of their own have their test
// beside this one.
using subjects = decltype(std::tuple_cat(
    std::declval<mutex_subjects>(), std::declval<semaphore_subjects>(),
    std::declval<event_subjects>(), std::declval<auto_reset_event_subjects>()));

template <class Subject>
void start(Subject& subject, const completion& c, asio::cancellation_signal& signal)
{
    subject.async_op(asio::bind_cancellation_slot(
        signal.slot(),
        c.handler([&subject](auto... values) { subject.consume(std::move(values)...); })));
}

constexpr heap::failure both_ways[] = {heap::failure::once, heap::failure::for_ever};

// Tries k = 0, 1, 2, ... until an attempt gets by without meeting its failure.
template <class Attempt>
void sweep(Attempt attempt)
{
    for (heap::failure how : both_ways) {
        for (std::size_t k = 0;; ++k) {
            BOOST_TEST_REQUIRE(k < 200U);
            bool met = false;
            BOOST_TEST_CONTEXT("allocation " << k << " fails "
                                             << (how == heap::failure::once ? "once" : "for ever"))
            {
                met = attempt(k, how);
            }
            if (!met)
                break;
        }
    }
}

BOOST_AUTO_TEST_SUITE(allocation_failures)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_callback_starts_wholly_or_not_at_all, S, subjects)
{
    sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        S s(io.get_executor());
        completion first(dropping::is_expected);
        completion second(dropping::is_expected);
        asio::cancellation_signal signals[2];
        int thrown = 0;
        std::optional<heap::failing> failing;
        const auto try_start = [&](const completion& c, asio::cancellation_signal& signal) {
            try {
                start(s, c, signal);
            } catch (const std::bad_alloc&) {
                ++thrown;
            }
        };
        failing.emplace(k, how);
        try_start(first, signals[0]);
        s.grant();                     // never throws
        try_start(second, signals[1]); // need not wait only if the first has failed
        kit::poll_leaves_work(io);
        failing->stop();

        const auto successes = (first.succeeded() ? 1U : 0U) + (second.succeeded() ? 1U : 0U);
        BOOST_TEST(first.done() + first.dropped() == 1);
        if (S::is_broadcast)
            BOOST_TEST(s.available() == 1U);
        else
            BOOST_TEST(successes + s.available() == 1U);
        BOOST_TEST((first.dropped() ? 1 : 0) + (second.dropped() ? 1 : 0) == thrown);
        s.destroy();
        kit::run(io);
        return failing->happened();
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_gets_it_or_an_exception, S, subjects)
{
    if constexpr (heap::sees_aligned_alloc) {
        sweep([](std::size_t k, heap::failure how) {
            kit::drained_context io;
            S s(io.get_executor());
            bool taken = false;
            bool thrown = false;
            bool met = false;
            asio::co_spawn(
                io,
                [&]() -> asio::awaitable<void> {
                    heap::failing failing(k, how);
                    try {
                        auto result = co_await s.async_op(asio::as_tuple(asio::use_awaitable));
                        std::apply(
                            [&](error_code ec, auto&&... values) {
                                taken = !ec;
                                s.consume(std::move(values)...);
                            },
                            std::move(result));
                    } catch (const std::bad_alloc&) {
                        thrown = true;
                    }
                    failing.stop();
                    met = failing.happened();
                },
                asio::detached);
            kit::poll_leaves_work(io);
            s.grant();
            kit::run(io);
            BOOST_TEST(taken != thrown);
            if (!S::is_broadcast)
                BOOST_TEST(taken != (s.available() == 1));
            return met;
        });
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_object_is_made_wholly_or_not_at_all, S, subjects)
{
    sweep([](std::size_t k, heap::failure how) {
        kit::drained_context io;
        heap::failing failing(k, how);
        try {
            S s(io.get_executor());
        } catch (const std::bad_alloc&) {
        }
        failing.stop();
        return failing.happened();
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
