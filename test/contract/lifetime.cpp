// SPDX-License-Identifier: BSL-1.0
// Operations whose object or context is destroyed, or whose memory cannot be allocated.
#include "contract/subject.hpp"
#include "kit/run.hpp"

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace {

using namespace contract;
using kit::completion;
using kit::dropping;

BOOST_AUTO_TEST_SUITE(lifetime)

CONTRACT(destroying_the_object_aborts_its_waiters)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    std::vector<completion> all(kind.up_to(3));
    for (const auto& c : all)
        s->start(c);
    s->destroy();
    for (const auto& c : all)
        BOOST_TEST(!c.done(), "completed inside the destructor");
    kit::run(io);
    for (const auto& c : all)
        BOOST_TEST(c.aborted());
}

CONTRACT(destroying_the_object_aborts_a_granted_wait_before_delivery)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    completion c;
    s->start(c);
    s->grant();
    s->destroy();
    kit::run(io);
    BOOST_TEST(c.aborted());
}

CONTRACT(a_handler_may_destroy_the_object)
{
    const bool another_waits = kind.has_several_waiters() && kind.order_is_fifo;
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    completion first;
    completion second;
    s->start({first, [&](error_code) { s->destroy(); }});
    if (another_waits)
        s->start(second);
    s->grant();
    kit::run(io);
    BOOST_TEST(first.succeeded());
    BOOST_TEST(second.aborted() == another_waits);
}

CONTRACT(destroying_the_context_destroys_handlers_uninvoked)
{
    std::optional<asio::io_context> io(std::in_place);
    auto s = kind.make(io->get_executor());
    std::vector<completion> all;
    for (std::size_t i = 0; i != kind.up_to(3); ++i)
        s->start(all.emplace_back(dropping::is_expected));
    s->grant(); // one wait, or all, before delivery
    io.reset();
    for (const auto& c : all) {
        BOOST_TEST(!c.done());
        BOOST_TEST(c.dropped(), "a handler has leaked");
    }
} // the object outlives its context here

CONTRACT(destroying_the_context_frees_a_handler_that_owns_the_object)
{
    std::optional<asio::io_context> io(std::in_place);
    completion queued(dropping::is_expected);
    completion granted(dropping::is_expected);
    {
        auto s = kind.make(io->get_executor());
        s->start({queued, [s](error_code) {}});
        auto t = kind.make(io->get_executor());
        t->start({granted, [t](error_code) {}});
        t->grant();
    }
    io.reset();
    BOOST_TEST(queued.dropped());
    BOOST_TEST(granted.dropped());
}

CONTRACT_WHERE(a_handlers_context_may_be_destroyed_before_delivery,
               !kind.is_confined && !kind.is_broadcast && kind.has_several_waiters())
{
    kit::drained_context home;
    std::optional<asio::io_context> elsewhere(std::in_place);
    auto s = kind.make(home.get_executor());
    completion lost(dropping::is_expected);
    completion next;
    s->start_on(elsewhere->get_executor(), lost);
    s->start(next);
    s->grant();
    elsewhere.reset();
    BOOST_TEST(lost.dropped());
    kit::poll_leaves_work(home);
    BOOST_TEST(next.succeeded(), "the grant was lost with the context");
}

CONTRACT(a_handlers_context_may_be_destroyed_after_the_object)
{
    kit::drained_context home;
    std::optional<asio::io_context> elsewhere(std::in_place);
    completion queued(dropping::is_expected);
    completion granted(dropping::is_expected);
    auto s = kind.make(home.get_executor());
    s->start_on(elsewhere->get_executor(), queued);
    auto t = kind.make(home.get_executor());
    t->start_on(elsewhere->get_executor(), granted);
    t->grant();
    s->destroy();
    t->destroy();
    kit::poll_leaves_work(home); // a confined operation ends on its strand first
    elsewhere.reset();
    BOOST_TEST(queued.dropped());
    BOOST_TEST(granted.dropped());
}

CONTRACT(uses_the_associated_allocator_and_frees_before_the_handler)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    kit::allocation_plan plan;
    completion c;
    std::size_t live_inside = 99;
    s->start_in(plan, {c, [&](error_code) { live_inside = plan.live(); }});
    BOOST_TEST(plan.allocated == 1U);
    s->grant();
    kit::run(io);
    BOOST_TEST(c.succeeded());
    BOOST_TEST(live_inside == 0U, "memory was still held while the handler ran");
    BOOST_TEST(plan.allocated == 1U);
}

CONTRACT(a_failed_allocation_changes_nothing)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    kit::allocation_plan plan;
    plan.fail = true;
    auto start_failing = [&] { s->start_in(plan, completion(dropping::is_expected)); };
    BOOST_CHECK_THROW(start_failing(), std::bad_alloc); // the operation would have to wait
    completion waiting;
    s->start(waiting);
    s->grant();
    kit::run(io);
    BOOST_TEST(waiting.succeeded());

    if (!kind.keeps_grants)
        return;
    s = kind.after(s);
    grant_unless_available(*s);
    BOOST_CHECK_THROW(start_failing(), std::bad_alloc); // the operation need not wait
    BOOST_TEST(s->available() == 1U, "the grant is lost");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
