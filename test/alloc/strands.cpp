// SPDX-License-Identifier: BSL-1.0
// Objects on a strand that has no memory for a wake-up: it goes with the next, and until then
// the wait is not over.
#include "alloc/heap.hpp"
#include "kit/completion.hpp"
#include "kit/run.hpp"

#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

namespace {

namespace asio = boost::asio;
using kit::completion;

using semaphores = std::tuple<turnstile::semaphore, turnstile::local::semaphore>;
using events = std::tuple<turnstile::event, turnstile::local::event>;

constexpr auto keep = [](auto permit) { (void)permit.detach(); };

// Calls f() without any memory to be had.
template <class F>
void without_memory(F f)
{
    heap::failing failing(0, heap::failure::for_ever);
    f();
    failing.stop();
    BOOST_TEST_REQUIRE(failing.happened());
}

// What a strand asks for comes from aligned_alloc.
BOOST_AUTO_TEST_SUITE(strands_without_memory,
                      *boost::unit_test::enable_if<heap::sees_aligned_alloc>())

BOOST_AUTO_TEST_CASE_TEMPLATE(the_context_has_work_until_the_next_wake_up, Semaphore, semaphores)
{
    kit::drained_context io;
    Semaphore s(asio::make_strand(io), 0);
    completion late;
    completion next;
    s.async_acquire(late.handler(keep));
    without_memory([&] { s.release(); });
    BOOST_TEST(kit::poll_leaves_work(io), "run() would have returned");
    BOOST_TEST(!late.done());
    s.async_acquire(next.handler(keep));
    s.release();
    BOOST_TEST(!kit::poll_leaves_work(io));
    BOOST_TEST(late.succeeded());
    BOOST_TEST(next.succeeded());
    BOOST_TEST(late.before(next));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_same_if_nobody_had_to_wait, Event, events)
{
    kit::drained_context io;
    Event e(asio::make_strand(io), true);
    completion late;
    completion next;
    // In memory that is there already: only the strand asks for more.
    alignas(std::max_align_t) std::byte room[512];
    const turnstile::detail::buffer_allocator<void, sizeof room> memory(room);
    auto handler = asio::bind_allocator(memory, late.handler([] {}));
    without_memory([&] { e.async_wait(std::move(handler)); });
    BOOST_TEST(kit::poll_leaves_work(io), "run() would have returned");
    BOOST_TEST(!late.done());
    e.async_wait(next.handler([] {}));
    BOOST_TEST(!kit::poll_leaves_work(io));
    BOOST_TEST(late.succeeded());
    BOOST_TEST(next.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancellation_is_a_wake_up, Semaphore, semaphores)
{
    kit::drained_context io;
    Semaphore s(asio::make_strand(io), 0);
    completion late;
    asio::cancellation_signal signal;
    s.async_acquire(asio::bind_cancellation_slot(signal.slot(), late.handler(keep)));
    without_memory([&] { s.release(); });
    BOOST_TEST(kit::poll_leaves_work(io), "run() would have returned");
    signal.emit(asio::cancellation_type::total);
    BOOST_TEST(!kit::poll_leaves_work(io));
    BOOST_TEST(late.aborted());
    BOOST_TEST(s.available() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_end_of_the_object_is_a_wake_up, Semaphore, semaphores)
{
    kit::drained_context io;
    std::optional<Semaphore> s(std::in_place, asio::make_strand(io), 0U);
    completion late;
    s->async_acquire(late.handler(keep));
    without_memory([&] { s->release(); });
    BOOST_TEST(kit::poll_leaves_work(io), "run() would have returned");
    s.reset();
    BOOST_TEST(!kit::poll_leaves_work(io));
    BOOST_TEST(late.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(without_memory_at_the_end_nothing_is_left, Semaphore, semaphores)
{
    kit::drained_context io;
    std::optional<Semaphore> s(std::in_place, asio::make_strand(io), 0U);
    completion late(kit::dropping::is_expected);
    s->async_acquire(late.handler(keep));
    without_memory([&] {
        s->release();
        s.reset();
    });
    BOOST_TEST(late.dropped());
    BOOST_TEST(!kit::poll_leaves_work(io));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
