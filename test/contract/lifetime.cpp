// What happens when the object, the context, or the memory of an operation goes away.
#include "contract/subjects.hpp"
#include "kit/failing_allocator.hpp"
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

BOOST_AUTO_TEST_CASE_TEMPLATE(destroying_the_object_aborts_its_waiters, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    std::vector<completion> all(3);
    for (const auto& c : all)
        start(s, c);
    s.destroy();
    for (const auto& c : all)
        BOOST_TEST(!c.done(), "completed inside the destructor");
    kit::run(io);
    for (const auto& c : all)
        BOOST_TEST(c.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destroying_the_object_aborts_a_grant_on_its_way, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    completion c;
    start(s, c);
    s.grant();
    s.destroy();
    kit::run(io);
    BOOST_TEST(c.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_may_destroy_the_object, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    completion first;
    completion second;
    s.async_op(first.handler([&](auto... values) {
        s.consume(std::move(values)...);
        s.destroy();
    }));
    start(s, second);
    s.grant();
    kit::run(io);
    BOOST_TEST(first.succeeded());
    BOOST_TEST(second.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destroying_the_context_destroys_handlers_uninvoked, S, subjects)
{
    std::optional<asio::io_context> io(std::in_place);
    S s(io->get_executor());
    std::vector<completion> all(3, completion(dropping::is_expected));
    for (auto& c : all) {
        c = completion(dropping::is_expected);
        start(s, c);
    }
    s.grant(); // one, or all, on their way
    io.reset();
    for (const auto& c : all) {
        BOOST_TEST(!c.done());
        BOOST_TEST(c.dropped(), "a handler has leaked");
    }
} // the object outlives its context here

BOOST_AUTO_TEST_CASE_TEMPLATE(destroying_the_context_frees_a_handler_that_owns_the_object, S,
                              subjects)
{
    std::optional<asio::io_context> io(std::in_place);
    completion queued(dropping::is_expected);
    completion on_its_way(dropping::is_expected);
    {
        auto s = std::make_shared<S>(io->get_executor());
        s->async_op(queued.handler([s](auto...) {}));
        auto t = std::make_shared<S>(io->get_executor());
        t->async_op(on_its_way.handler([t](auto...) {}));
        t->grant();
    }
    io.reset();
    BOOST_TEST(queued.dropped());
    BOOST_TEST(on_its_way.dropped());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handlers_context_may_go_with_a_grant_on_its_way, S, subjects)
{
    if constexpr (!S::is_confined && !S::is_broadcast) {
        kit::drained_context home;
        std::optional<asio::io_context> elsewhere(std::in_place);
        S s(home.get_executor());
        completion lost(dropping::is_expected);
        completion next;
        start(s, lost, [&](auto h) { return asio::bind_executor(*elsewhere, std::move(h)); });
        start(s, next);
        s.grant();
        elsewhere.reset();
        BOOST_TEST(lost.dropped());
        kit::run(home);
        BOOST_TEST(next.succeeded(), "the grant went down with the context");
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(uses_the_associated_allocator_and_frees_before_the_handler, S,
                              subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    kit::allocation_plan plan;
    completion c;
    std::size_t live_inside = 99;
    s.async_op(
        asio::bind_allocator(kit::failing_allocator<void*>(plan), c.handler([&](auto... values) {
            live_inside = plan.live();
            s.consume(std::move(values)...);
        })));
    BOOST_TEST(plan.allocated == 1U);
    s.grant();
    kit::run(io);
    BOOST_TEST(c.succeeded());
    BOOST_TEST(live_inside == 0U, "memory was still held while the handler ran");
    BOOST_TEST(plan.allocated == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failed_allocation_changes_nothing, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    kit::allocation_plan plan;
    plan.fail = true;
    auto start_failing = [&] {
        completion c(dropping::is_expected);
        start(s, c, [&](auto h) {
            return asio::bind_allocator(kit::failing_allocator<void*>(plan), std::move(h));
        });
    };
    BOOST_CHECK_THROW(start_failing(), std::bad_alloc); // while it would have to wait
    completion waiting;
    start(s, waiting);
    s.grant();
    kit::run(io);
    BOOST_TEST(waiting.succeeded());

    if (s.available() == 0)
        s.grant();
    BOOST_CHECK_THROW(start_failing(), std::bad_alloc); // while it need not
    BOOST_TEST(s.available() == 1U, "the grant is lost");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
