// SPDX-License-Identifier: BSL-1.0
// A wait that is cancelled before its handler starts to run has taken nothing.
#include "contract/subject.hpp"
#include "kit/run.hpp"

#include <boost/asio.hpp>
#include <boost/asio/any_completion_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <optional>
#include <vector>

namespace {

using namespace contract;
using kit::completion;

// An operation with its cancellation signal.
struct cancellable {
    completion result;
    asio::cancellation_signal signal;

    operation handler() { return operation(result).with(signal.slot()); }
    void start_on(const subject_ptr& s) { s->start(handler()); }
    void cancel() { signal.emit(asio::cancellation_type::terminal); }
};

// A subject on a context of its own, and one operation that waits.
struct one_waiter {
    explicit one_waiter(const kind& k) : s(k.make(io.get_executor())) { op.start_on(s); }

    kit::drained_context io;
    subject_ptr s;
    cancellable op;
};

BOOST_AUTO_TEST_SUITE(cancellation)

CONTRACT(every_type_is_honoured_and_none_is_not)
{
    for (auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                      asio::cancellation_type::total, asio::cancellation_type::all}) {
        one_waiter w(kind);
        w.op.signal.emit(type);
        BOOST_TEST(!w.op.result.done(), "completed inside emit()");
        kit::run(w.io);
        BOOST_TEST(w.op.result.aborted());
    }
    one_waiter w(kind);
    w.op.signal.emit(asio::cancellation_type::none);
    BOOST_TEST(kit::poll_leaves_work(w.io));
    BOOST_TEST(!w.op.result.done());
    w.s->grant();
    kit::run(w.io);
    BOOST_TEST(w.op.result.succeeded());
}

CONTRACT_WHERE(cancelling_first_middle_or_last_keeps_the_order, kind.has_several_waiters())
{
    const std::size_t last = kind.up_to(5) - 1;
    for (std::size_t victim : {std::size_t{0}, last / 2, last}) {
        kit::drained_context io;
        auto s = kind.make(io.get_executor());
        std::vector<cancellable> ops(last + 1);
        for (auto& op : ops)
            op.start_on(s);
        ops[victim].cancel();
        kit::poll_leaves_work(io);
        BOOST_TEST(ops[victim].result.aborted());
        const completion* previous = nullptr;
        for (std::size_t i = 0; i != ops.size(); ++i) {
            if (i == victim)
                continue;
            s->grant();
            kit::poll_leaves_work(io);
            if (!kind.order_is_fifo)
                continue;
            BOOST_TEST(ops[i].result.succeeded());
            if (previous)
                BOOST_TEST(previous->before(ops[i].result));
            previous = &ops[i].result;
        }
        for (std::size_t i = 0; i != ops.size(); ++i)
            BOOST_TEST(ops[i].result.succeeded() == (i != victim));
    }
}

CONTRACT_WHERE(a_grant_of_a_waiter_cancelled_before_delivery_goes_to_the_next,
               kind.has_several_waiters())
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    cancellable first;
    cancellable second;
    first.start_on(s);
    second.start_on(s);
    s->grant();
    first.cancel(); // granted and posted, but not yet run
    kit::poll_leaves_work(io);
    BOOST_TEST(first.result.aborted());
    BOOST_TEST(second.result.succeeded());
}

CONTRACT_WHERE(a_grant_of_a_waiter_cancelled_before_delivery_is_kept, kind.keeps_grants)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    cancellable only;
    only.start_on(s);
    s->grant();
    only.cancel();
    kit::run(io);
    BOOST_TEST(only.result.aborted());
    BOOST_TEST(s->available() == 1U, "the grant is lost");
}

// A confined wait can no longer be cancelled once it has left its strand.
CONTRACT_WHERE(a_grant_between_two_executors_can_still_be_cancelled, !kind.is_confined)
{
    kit::drained_context home;
    kit::drained_context elsewhere;
    auto s = kind.make(home.get_executor());
    cancellable op;
    s->start_on(asio::any_completion_executor(elsewhere.get_executor()), op.handler());
    s->grant();
    kit::poll_leaves_work(home); // dispatched, but not yet run
    op.cancel();
    kit::run(elsewhere);
    BOOST_TEST(op.result.aborted());
    if (kind.keeps_grants)
        BOOST_TEST(s->available() == 1U, "the grant is lost");
}

CONTRACT_WHERE(an_operation_that_need_not_wait_can_be_cancelled_too, kind.keeps_grants)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    s->grant();
    cancellable op;
    op.start_on(s);
    op.cancel();
    kit::run(io);
    BOOST_TEST(op.result.aborted());
    BOOST_TEST(s->available() == 1U, "the grant is lost");
}

CONTRACT(a_signal_before_the_start_does_nothing)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    cancellable op;
    op.cancel();
    op.start_on(s);
    s->grant();
    kit::run(io);
    BOOST_TEST(op.result.succeeded());
}

CONTRACT(a_signal_after_the_completion_does_nothing)
{
    one_waiter w(kind);
    w.s->grant();
    kit::run(w.io);
    w.op.cancel();
    kit::run(w.io);
    BOOST_TEST(w.op.result.succeeded());
}

CONTRACT(a_second_signal_does_nothing)
{
    one_waiter w(kind);
    w.op.cancel();
    w.op.cancel();
    kit::run(w.io);
    w.op.cancel();
    BOOST_TEST(w.op.result.aborted());
}

CONTRACT(a_signal_after_the_destruction_of_the_object_does_nothing)
{
    one_waiter w(kind);
    w.s->destroy();
    w.op.cancel();
    kit::run(w.io);
    w.op.cancel();
    BOOST_TEST(w.op.result.aborted());
}

CONTRACT(a_signal_may_be_destroyed_before_its_operation_completes)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    completion result;
    std::optional<asio::cancellation_signal> signal(std::in_place);
    s->start(operation(result).with(signal->slot()));
    signal.reset();
    s->grant();
    kit::run(io);
    BOOST_TEST(result.succeeded());
}

CONTRACT(a_slot_serves_one_operation_after_the_other)
{
    kit::drained_context io;
    auto s = kind.make(io.get_executor());
    asio::cancellation_signal signal;
    for (int round = 0; round != 4; ++round) {
        completion result;
        s->start(operation(result).with(signal.slot()));
        if (round % 2 == 0)
            signal.emit(asio::cancellation_type::total);
        else
            s->grant();
        kit::run(io);
        BOOST_TEST(result.done());
        BOOST_TEST(result.aborted() == (round % 2 == 0));
        if (round == 1 && (kind.stays_granted || !kind.is_reusable))
            break; // the subject stays granted from here on, or cannot be used again
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
