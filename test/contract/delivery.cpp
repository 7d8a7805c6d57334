// Where, when and in what order handlers run.
#include "contract/subjects.hpp"
#include "kit/run.hpp"

#include <boost/asio.hpp>
#include <boost/asio/any_completion_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace contract;
using kit::completion;

BOOST_AUTO_TEST_SUITE(delivery)

BOOST_AUTO_TEST_CASE_TEMPLATE(never_completes_inside_the_initiator, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    completion waiting;
    start(s, waiting);
    BOOST_TEST(!waiting.done());
    s.grant();
    BOOST_TEST(!waiting.done(), "completed inside the call that let it go");
    kit::run(io);
    BOOST_TEST(waiting.succeeded());

    if (s.available() == 0)
        s.grant();
    completion ready;
    asio::post(io, [&] {
        start(s, ready);
        BOOST_TEST(!ready.done(), "completed inside its initiating function");
    });
    kit::run(io);
    BOOST_TEST(ready.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(completes_in_the_order_of_arrival, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    std::vector<completion> all(20);
    for (const auto& c : all)
        start(s, c);
    for (std::size_t i = 0; i != all.size(); ++i) {
        s.grant();
        kit::poll_leaves_work(io);
        BOOST_TEST(all[i].succeeded());
        if (!S::is_broadcast && i + 1 != all.size())
            BOOST_TEST(!all[i + 1].done());
        if (i != 0)
            BOOST_TEST(all[i - 1].before(all[i]));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nobody_overtakes_a_waiter, S, subjects)
{
    if constexpr (!S::is_broadcast) {
        kit::drained_context io;
        S s(io.get_executor());
        completion first;
        start(s, first);
        BOOST_TEST(!s.try_op());
        s.grant();
        BOOST_TEST(!s.try_op(), "a try took what was granted to a waiter");
        kit::run(io);
        BOOST_TEST(first.succeeded());
        s.grant();
        BOOST_TEST(s.try_op());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(runs_on_the_associated_executor, S, subjects)
{
    kit::drained_context home;
    asio::io_context elsewhere;
    S s(home.get_executor());
    completion there;
    start(s, there, [&](auto h) { return asio::bind_executor(elsewhere, std::move(h)); });
    auto strand = asio::make_strand(home);
    completion in_strand;
    bool inside = false;
    s.async_op(asio::bind_executor(strand, in_strand.handler([&](auto... values) {
        inside = strand.running_in_this_thread();
        s.consume(std::move(values)...);
    })));

    s.grant();
    kit::poll_leaves_work(home);
    BOOST_TEST(!there.done(), "ran on the wrong context");
    kit::run(elsewhere);
    BOOST_TEST(there.succeeded());
    s.grant();
    kit::run(home);
    BOOST_TEST(in_strand.succeeded());
    BOOST_TEST(inside, "ran outside its strand");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(takes_a_handler_that_can_only_be_dispatched_to, S, subjects)
{
    // Posted to the object's executor, and dispatched from there.
    kit::drained_context home;
    kit::drained_context elsewhere;
    S s(home.get_executor());
    completion c;
    completion gone;
    const auto there = asio::any_completion_executor(elsewhere.get_executor());
    start(s, c, [&](auto h) { return asio::bind_executor(there, std::move(h)); });
    BOOST_TEST(kit::poll_leaves_work(home));
    s.grant();
    kit::poll_leaves_work(home);
    BOOST_TEST(!c.done());
    kit::run(elsewhere);
    BOOST_TEST(c.succeeded());

    start(s, gone, [&](auto h) { return asio::bind_executor(there, std::move(h)); });
    s.destroy();
    kit::poll_leaves_work(home);
    kit::run(elsewhere);
    BOOST_TEST(gone.done());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_on_the_system_context_runs_where_it_completes, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    completion c;
    std::thread::id where;
    s.async_op(asio::bind_executor(asio::system_executor(), c.handler([&](auto... values) {
        where = std::this_thread::get_id();
        s.consume(std::move(values)...);
    })));
    s.grant();
    kit::run(io);
    BOOST_TEST(c.succeeded());
    BOOST_TEST((where == std::this_thread::get_id()), "a system thread was started for it");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(works_on_a_strand_and_on_a_thread_pool, S, subjects)
{
    {
        kit::drained_context io;
        S s(asio::make_strand(io));
        completion c;
        start(s, c);
        s.grant();
        kit::run(io);
        BOOST_TEST(c.succeeded());
    }
    {
        kit::drained_context io;
        S s(asio::make_strand(asio::any_io_executor(io.get_executor())));
        completion c;
        start(s, c);
        s.grant();
        kit::run(io);
        BOOST_TEST(c.succeeded());
    }
    asio::thread_pool pool(1);
    S s(asio::make_strand(pool));
    completion c;
    asio::post(s.object->get_executor(), [&] {
        start(s, c);
        s.grant();
    });
    pool.join();
    BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(pending_waits_keep_run_alive, S, subjects)
{
    kit::drained_context home;
    kit::drained_context elsewhere;
    S s(home.get_executor());
    completion c;
    start(s, c, [&](auto h) { return asio::bind_executor(elsewhere, std::move(h)); });
    BOOST_TEST(kit::poll_leaves_work(home), "the object's context ran out of work");
    BOOST_TEST(kit::poll_leaves_work(elsewhere), "the handler's context ran out of work");
    s.grant();
    kit::poll_leaves_work(home);
    kit::run(elsewhere);
    BOOST_TEST(c.succeeded());
    BOOST_TEST(!kit::poll_leaves_work(home));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_may_start_the_next_operation, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    completion second;
    completion first;
    s.async_op(first.handler([&](auto... values) {
        s.consume(std::move(values)...);
        start(s, second);
        s.grant();
        BOOST_TEST(!second.done(), "completed inside a handler");
    }));
    s.grant();
    kit::run(io);
    BOOST_TEST(first.succeeded());
    BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_throwing_handler_loses_no_other, S, subjects)
{
    kit::drained_context io;
    S s(io.get_executor());
    std::vector<completion> others(5);
    start(s, others[0]);
    s.async_op([&](error_code, auto... values) {
        s.consume(std::move(values)...);
        throw std::runtime_error("from a handler");
    });
    for (std::size_t i = 1; i != others.size(); ++i)
        start(s, others[i]);

    int thrown = 0;
    for (std::size_t i = 0; i != others.size() + 1; ++i) {
        s.grant();
        for (bool again = true; again;) {
            again = false;
            try {
                kit::poll_leaves_work(io);
            } catch (const std::runtime_error&) {
                ++thrown;
                again = true;
            }
        }
    }
    BOOST_TEST(thrown == 1);
    for (const auto& c : others)
        BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(many_waiters_need_no_deep_recursion, S, subjects)
{
    constexpr int many = 100'000;
    kit::drained_context io;
    S s(io.get_executor());
    int served = 0;
    for (int i = 0; i != many; ++i) {
        s.async_op([&](error_code ec, auto... values) {
            served += ec ? 0 : 1;
            s.consume(std::move(values)...);
            if (!S::is_broadcast)
                s.grant();
        });
    }
    s.grant();
    kit::run(io);
    BOOST_TEST(served == many);
    int aborted = 0;
    S doomed(io.get_executor());
    for (int i = 0; i != many; ++i)
        doomed.async_op([&](error_code ec, auto...) { aborted += ec ? 1 : 0; });
    doomed.destroy();
    kit::run(io);
    BOOST_TEST(aborted == many);
}

#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
BOOST_AUTO_TEST_CASE_TEMPLATE(completes_through_the_immediate_executor, S, subjects)
{
    // Inside the initiating function, without the lock: the handler may use the object.
    kit::drained_context io;
    S s(io.get_executor());
    completion waiting;
    completion ready;
    auto inline_executor = asio::system_executor();
    start(s, waiting,
          [&](auto h) { return asio::bind_immediate_executor(inline_executor, std::move(h)); });
    BOOST_TEST(!waiting.done());
    s.grant();
    BOOST_TEST(!waiting.done());
    kit::run(io);
    BOOST_TEST(waiting.succeeded());

    if (s.available() == 0)
        s.grant();
    s.async_op(asio::bind_immediate_executor(inline_executor, ready.handler([&](auto... values) {
        s.consume(std::move(values)...);
        s.grant();
    })));
    BOOST_TEST(ready.succeeded());
}
#endif

BOOST_AUTO_TEST_SUITE_END()

} // namespace
