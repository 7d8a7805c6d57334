// SPDX-License-Identifier: BSL-1.0
// The executor, the time and the order in which handlers run.
#include "contract/subject.hpp"
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

CONTRACT(never_completes_inside_the_initiator)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    completion waiting;
    s->start(waiting);
    BOOST_TEST(!waiting.done());
    s->grant();
    BOOST_TEST(!waiting.done(), "completed inside the call that granted it");
    kit::run(io);
    BOOST_TEST(waiting.succeeded());

    if (!kind.keeps_grants)
        return;
    s = kind.after(s);
    grant_unless_available(*s);
    completion ready;
    asio::post(io, [&] {
        s->start(ready);
        BOOST_TEST(!ready.done(), "completed inside its initiating function");
    });
    kit::run(io);
    BOOST_TEST(ready.succeeded());
}

CONTRACT_WHERE(completes_in_the_order_of_arrival, kind.has_several_waiters())
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    std::vector<completion> all(kind.up_to(20));
    for (const auto& c : all)
        s->start(c);
    for (std::size_t i = 0; i != all.size(); ++i) {
        s->grant();
        kit::poll_leaves_work(io);
        const auto done = static_cast<std::size_t>(std::count_if(
            all.begin(), all.end(), [](const completion& c) { return c.succeeded(); }));
        BOOST_TEST(done == (kind.is_broadcast ? all.size() : i + 1));
        if (!kind.order_is_fifo)
            continue;
        BOOST_TEST(all[i].succeeded());
        if (i != 0)
            BOOST_TEST(all[i - 1].before(all[i]));
    }
}

CONTRACT_WHERE(a_try_overtakes_no_waiter, !kind.is_broadcast && kind.can_try && kind.order_is_fifo)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    completion first;
    s->start(first);
    BOOST_TEST(!s->try_op());
    s->grant();
    BOOST_TEST(!s->try_op(), "a try took what was granted to a waiter");
    kit::run(io);
    BOOST_TEST(first.succeeded());
    if (!kind.keeps_grants)
        return;
    s = kind.after(s);
    s->grant();
    BOOST_TEST(s->try_op());
}

// Checks where two handlers run: one has an executor of another context, one a strand. `as` makes
// the associated executor of these.
template <class As>
void check_executors_of_handlers(const kind& kind, As as)
{
    kit::drained_context home;
    kit::drained_context elsewhere;
    auto s = kind.make(home.get_executor());
    completion there;
    s->start_on(as(elsewhere.get_executor()), there);
    auto strand = asio::make_strand(home.get_executor());
    completion in_strand;
    bool inside = false;
    auto t = kind.beside(s);
    t->start_on(as(strand),
                {in_strand, [&](error_code) { inside = strand.running_in_this_thread(); }});

    s->grant();
    kit::poll_leaves_work(home);
    BOOST_TEST(!there.done(), "ran on the wrong context");
    kit::run(elsewhere);
    BOOST_TEST(there.succeeded());
    t->grant();
    kit::run(home);
    BOOST_TEST(in_strand.succeeded());
    BOOST_TEST(inside, "ran outside its strand");
}

CONTRACT(runs_on_the_associated_executor)
{
    check_executors_of_handlers(kind, [](const auto& executor) { return executor; });
}

CONTRACT(runs_on_a_type_erased_associated_executor)
{
    const auto erase = [](const auto& executor) { return asio::any_io_executor(executor); };
    check_executors_of_handlers(kind, erase);

    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    completion at_home;
    s->start_on(erase(io.get_executor()), at_home);
    s->grant();
    kit::run(io);
    BOOST_TEST(at_home.succeeded());
}

CONTRACT(takes_a_handler_that_can_only_be_dispatched_to)
{
    // The completion is posted to the object's executor, and dispatched from there.
    kit::drained_context home;
    kit::drained_context elsewhere;
    auto s = kind.make(home.get_executor());
    completion c;
    completion aborted;
    const auto there = asio::any_completion_executor(elsewhere.get_executor());
    s->start_on(there, c);
    BOOST_TEST(kit::poll_leaves_work(home));
    s->grant();
    kit::poll_leaves_work(home);
    BOOST_TEST(!c.done());
    kit::run(elsewhere);
    BOOST_TEST(c.succeeded());

    s = kind.after(s);
    s->start_on(there, aborted);
    s->destroy();
    kit::poll_leaves_work(home);
    kit::run(elsewhere);
    BOOST_TEST(aborted.done());
}

CONTRACT(a_handler_on_the_system_context_runs_where_it_completes)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    completion c;
    std::thread::id where;
    s->start_on(asio::system_executor(),
                {c, [&](error_code) { where = std::this_thread::get_id(); }});
    s->grant();
    kit::run(io);
    BOOST_TEST(c.succeeded());
    BOOST_TEST((where == std::this_thread::get_id()), "a system thread was started for it");
}

// Three waits on one executor: one is granted, one is cancelled, one is awaited by a coroutine.
class waits_on {
public:
    waits_on(const kind& kind, const asio::any_io_executor& executor)
    {
        asio::post(executor, [&, executor] {
            for (subject_ptr* s : {&granted_, &cancelled_, &awaited_})
                *s = kind.make(executor);
            granted_->start(was_granted);
            cancelled_->start(operation(was_cancelled).with(signal_.slot()));
            asio::co_spawn(executor, await_one(), asio::detached);
            asio::post(executor, [this] {
                granted_->grant();
                signal_.emit(asio::cancellation_type::partial);
                awaited_->grant();
            });
        });
    }

    completion was_granted;
    completion was_cancelled;
    bool was_awaited = false;

private:
    asio::awaitable<void> await_one()
    {
        auto taken = co_await awaited_->wait(by::use_awaitable);
        taken.consume();
        was_awaited = true;
    }

    subject_ptr granted_;
    subject_ptr cancelled_;
    subject_ptr awaited_;
    asio::cancellation_signal signal_;
};

CONTRACT(works_on_a_strand_and_on_a_thread_pool)
{
    const auto check = [](const waits_on& waits) {
        BOOST_TEST(waits.was_granted.succeeded());
        BOOST_TEST(waits.was_cancelled.aborted());
        BOOST_TEST(waits.was_awaited);
    };
    kit::drained_context io;
    for (const asio::any_io_executor& executor :
         {asio::any_io_executor(io.get_executor()), asio::any_io_executor(asio::make_strand(io)),
          asio::any_io_executor(asio::make_strand(asio::any_io_executor(io.get_executor())))}) {
        waits_on waits(kind, executor);
        kit::run(io);
        check(waits);

        auto s = kind.make(executor);
        completion from_outside;
        s->start(from_outside);
        s->grant();
        kit::run(io);
        BOOST_TEST(from_outside.succeeded());
    }
    asio::thread_pool pool(1);
    waits_on waits(kind, asio::make_strand(pool));
    pool.join();
    check(waits);
}

CONTRACT(the_initiation_names_the_objects_executor)
{
    kit::drained_context io;
    auto s = kind.make(asio::make_strand(io));
    BOOST_TEST((s->initiation_executor() == s->executor()));
}

CONTRACT(pending_waits_keep_run_alive)
{
    kit::drained_context home;
    kit::drained_context elsewhere;
    auto s = kind.make(home.get_executor());
    completion c;
    s->start_on(elsewhere.get_executor(), c);
    BOOST_TEST(kit::poll_leaves_work(home), "the object's context ran out of work");
    BOOST_TEST(kit::poll_leaves_work(elsewhere), "the handler's context ran out of work");
    s->grant();
    kit::poll_leaves_work(home);
    kit::run(elsewhere);
    BOOST_TEST(c.succeeded());
    BOOST_TEST(!kit::poll_leaves_work(home));
}

CONTRACT_WHERE(a_handler_may_start_the_next_operation, kind.is_reusable)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    completion second;
    completion first;
    s->start({first, [&](error_code) {
                  s->start(second);
                  s->grant();
                  BOOST_TEST(!second.done(), "completed inside a handler");
              }});
    s->grant();
    kit::run(io);
    BOOST_TEST(first.succeeded());
    BOOST_TEST(second.succeeded());
}

CONTRACT_WHERE(a_throwing_handler_loses_no_other, kind.has_several_waiters())
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    std::vector<completion> others(kind.up_to(6) - 1);
    s->start(others[0]);
    s->start(operation([](error_code) { throw std::runtime_error("from a handler"); }));
    for (std::size_t i = 1; i != others.size(); ++i)
        s->start(others[i]);

    int thrown = 0;
    for (std::size_t i = 0; i != others.size() + 1; ++i) {
        s->grant();
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

// A confined operation ends on its strand; only its handler and its result leave the strand.
CONTRACT_WHERE(a_completion_posted_to_another_executor_is_no_work_on_the_objects_context,
               kind.is_confined)
{
    kit::drained_context home;
    kit::drained_context away;
    auto s = kind.make(home.get_executor());
    completion c;
    s->start_on(away.get_executor(), c);
    s->grant();
    BOOST_TEST(!kit::poll_leaves_work(home));
    BOOST_TEST(!c.done());
    kit::run(away);
    BOOST_TEST(c.succeeded());
    s.reset();
    kit::run(home); // the completion may have posted to it
}

CONTRACT_WHERE(many_waiters_need_no_deep_recursion, kind.has_several_waiters())
{
#if TURNSTILE_SANITIZED
    const std::size_t many = kind.up_to(20'000); // enough for larger stack frames
#else
    const std::size_t many = kind.up_to(100'000);
#endif
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    std::size_t served = 0;
    const auto serve_the_next = [&](error_code ec) {
        served += ec ? 0 : 1;
        if (!kind.is_broadcast && served != many)
            s->grant();
    };
    for (std::size_t i = 0; i != many; ++i)
        s->start(operation(serve_the_next));
    s->grant();
    kit::run(io);
    BOOST_TEST(served == many);
    std::size_t aborted = 0;
    auto doomed = kind.make(io.get_executor());
    for (std::size_t i = 0; i != many; ++i)
        doomed->start(operation([&](error_code ec) { aborted += ec ? 1 : 0; }));
    doomed->destroy();
    kit::run(io);
    BOOST_TEST(aborted == many);
}

#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
CONTRACT(completes_through_the_immediate_executor)
{
    // The handler runs inside the initiating function, without the lock, and may use the object.
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    completion waiting;
    completion ready;
    kit::allocation_plan memory;
    s->start_immediate(asio::system_executor(), memory, waiting);
    BOOST_TEST(!waiting.done());
    s->grant();
    BOOST_TEST(!waiting.done());
    kit::run(io);
    BOOST_TEST(waiting.succeeded());

    if (!kind.keeps_grants)
        return;
    s = kind.after(s);
    grant_unless_available(*s);
    memory.fail = true; // the fast path is tried before anything is allocated
    s->start_immediate(asio::system_executor(), memory, {ready, [&](error_code) {
                                                             if (kind.is_reusable)
                                                                 s->grant();
                                                         }});
    BOOST_TEST(ready.succeeded());
}
#endif

BOOST_AUTO_TEST_SUITE_END()

} // namespace
