// SPDX-License-Identifier: BSL-1.0
// Allocation k fails, once or for ever, for every k: nothing is lost, nothing is doubled.
#include "alloc/sweep.hpp"
#include "contract/subject.hpp"
#include "contract/subjects/task_group.hpp"
#include "kit/run.hpp"

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <new>
#include <optional>
#include <utility>

namespace {

using namespace contract;
using kit::completion;
using kit::dropping;

[[maybe_unused]] const bool groups_use_the_context = contract::children_are_work() = true;

BOOST_AUTO_TEST_SUITE(allocation_failures)

// Where an object must remember something for the wait, it may also be refused.
CONTRACT(a_callback_starts_wholly_or_not_at_all)
{
    heap::sweep([&](std::size_t k, heap::failure how) {
        kit::drained_context io;
        auto s = kind.make(io.get_executor());
        completion c(dropping::is_expected);
        asio::cancellation_signal signal;
        operation op = operation(c).with(signal.slot());
        bool thrown = false;
        heap::failing failing(k, how);
        try {
            s->start(std::move(op));
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        failing.stop();
        kit::poll_leaves_work(io);
        BOOST_TEST(c.dropped() == thrown);
        const bool waits = !c.done() && !thrown;
        s->grant();
        kit::poll_leaves_work(io);
        BOOST_TEST(c.succeeded() == waits);
        if (kind.keeps_grants)
            BOOST_TEST(s->available() == (waits && !kind.is_broadcast ? 0U : 1U));
        s->destroy();
        kit::run(io);
        return failing.happened();
    });
}

CONTRACT_WHERE(what_need_not_wait_starts_wholly_or_not_at_all, kind.keeps_grants)
{
    heap::sweep([&](std::size_t k, heap::failure how) {
        kit::drained_context io;
        auto s = kind.make(io.get_executor());
        if (s->available() == 0)
            s->grant();
        completion c(dropping::is_expected);
        asio::cancellation_signal signal;
        operation op = operation(c).with(signal.slot());
        bool thrown = false;
        heap::failing failing(k, how);
        try {
            s->start(std::move(op));
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        kit::poll_leaves_work(io); // the delivery needs no memory
        failing.stop();
        BOOST_TEST(c.dropped() == thrown);
        BOOST_TEST(c.done() != thrown);
        if (!kind.is_broadcast)
            BOOST_TEST(s->available() == (c.succeeded() ? 0U : 1U));
        s->destroy();
        kit::run(io);
        return failing.happened();
    });
}

// A handler elsewhere needs more than one piece of memory.
CONTRACT_WHERE(what_need_not_wait_is_given_back_if_it_cannot_start, kind.keeps_grants)
{
    heap::sweep([&](std::size_t k, heap::failure how) {
        kit::drained_context home;
        kit::drained_context elsewhere;
        auto s = kind.make(home.get_executor());
        if (s->available() == 0)
            s->grant();
        completion c(dropping::is_expected);
        bool thrown = false;
        heap::failing failing(k, how);
        try {
            s->start_on(elsewhere.get_executor(), c);
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        failing.stop();
        kit::poll_leaves_work(home);
        kit::poll_leaves_work(elsewhere);
        BOOST_TEST(c.dropped() == thrown);
        BOOST_TEST(c.done() != thrown);
        if (!kind.is_broadcast)
            BOOST_TEST(s->available() == (thrown ? 1U : 0U));
        s->destroy();
        kit::run(home);
        return failing.happened();
    });
}

CONTRACT(a_coroutine_gets_it_or_an_exception)
{
    if constexpr (heap::sees_aligned_alloc) {
        heap::sweep([&](std::size_t k, heap::failure how) {
            kit::drained_context io;
            auto s = kind.make(io.get_executor());
            bool succeeded = false;
            bool failed = false;
            bool met = false;
            asio::co_spawn(
                io,
                [&]() -> asio::awaitable<void> {
                    heap::failing failing(k, how);
                    try {
                        auto got = co_await s->wait(by::as_tuple);
                        failing.stop();
                        succeeded = !got.error();
                        failed = !succeeded;
                        if (succeeded)
                            got.consume();
                    } catch (const std::bad_alloc&) {
                        failed = true;
                    }
                    failing.stop();
                    met = failing.happened();
                },
                asio::detached);
            kit::poll_leaves_work(io);
            const bool did_not_wait = failed;
            s->grant();
            kit::run(io);
            BOOST_TEST(succeeded != failed);
            // What is given to a coroutine that then has no memory to keep it is not looked for.
            if (kind.keeps_grants && !kind.is_broadcast && (succeeded || did_not_wait))
                BOOST_TEST(s->available() == (succeeded ? 0U : 1U));
            return met;
        });
    }
}

CONTRACT(an_object_is_made_wholly_or_not_at_all)
{
    heap::sweep([&](std::size_t k, heap::failure how) {
        kit::drained_context io;
        heap::failing failing(k, how);
        try {
            kind.make(io.get_executor());
        } catch (const std::bad_alloc&) {
        }
        failing.stop();
        return failing.happened();
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
