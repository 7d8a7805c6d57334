// SPDX-License-Identifier: BSL-1.0
#include "kit/chaos_executor.hpp"
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"
#include "kit/seed.hpp"
#include "kit/wrapping_executor.hpp"

#include <turnstile/sync/condition.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;

template <class Threading>
using condition_of = turnstile::basic_condition<asio::any_io_executor, Threading>;
template <class Threading>
using mutex_of = turnstile::basic_mutex<asio::any_io_executor, Threading>;

static_assert(!std::is_move_constructible_v<turnstile::condition>);
static_assert(std::is_same_v<turnstile::condition::rebind_executor<asio::system_executor>::other,
                             turnstile::basic_condition<asio::system_executor>>);

// One type for all predicates and handlers, to compile this file quickly.
using predicate = std::function<bool()>;

// A wait with its lock and its result. Its handler unlocks unless `keeps_lock` is set.
template <class P>
struct party {
    explicit party(mutex_of<P>& m) : mutex(m) {}

    void wait(condition_of<P>& c)
    {
        take_lock();
        wait_with_lock(c);
    }
    void wait_with_lock(condition_of<P>& c) { c.async_wait(lock, bound()); }
    void wait(condition_of<P>& c, predicate p)
    {
        take_lock();
        c.async_wait(lock, std::move(p), bound());
    }
    void cancel() { signal.emit(asio::cancellation_type::total); }

    bool succeeded() const { return answered && !error; }
    bool aborted() const { return answered && error == asio::error::operation_aborted; }

    mutex_of<P>& mutex;
    typename mutex_of<P>::lock_type lock;
    asio::cancellation_signal signal;
    bool answered = false;
    bool had_lock = false;
    bool keeps_lock = false;
    int turn = -1;
    error_code error;

private:
    struct handler {
        party* self;
        void operator()(error_code ec) const
        {
            static int turns = 0;
            BOOST_TEST(!self->answered, "a handler was invoked twice");
            self->answered = true;
            self->error = ec;
            self->turn = turns++;
            self->had_lock = self->lock.owns_lock();
            if (!self->keeps_lock && self->had_lock)
                self->lock.unlock();
        }
    };
    auto bound() { return asio::bind_cancellation_slot(signal.slot(), handler{this}); }
    void take_lock()
    {
        lock = typename mutex_of<P>::lock_type(mutex, std::try_to_lock);
        BOOST_TEST_REQUIRE(lock.owns_lock());
    }
};

// A condition with its mutex, and some waiters.
template <class P>
struct scene {
    explicit scene(std::size_t n) : m(io), c(std::in_place, io)
    {
        for (std::size_t i = 0; i != n; ++i)
            all.emplace_back(m);
    }
    void all_wait()
    {
        for (auto& p : all)
            p.wait(*c);
    }
    bool run_some() { return kit::poll_leaves_work(io); }
    std::size_t answered() const
    {
        std::size_t n = 0;
        for (const auto& p : all)
            n += p.answered ? 1 : 0;
        return n;
    }

    kit::drained_context io;
    mutex_of<P> m;
    std::optional<condition_of<P>> c;
    std::deque<party<P>> all;
};

BOOST_AUTO_TEST_SUITE(condition)

BOOST_AUTO_TEST_CASE_TEMPLATE(waiting_releases_the_lock_and_has_it_again, P, kit::policies)
{
    scene<P> s(1);
    s.all_wait();
    BOOST_TEST(!s.m.is_locked());
    BOOST_TEST(!s.all[0].lock.owns_lock());
    BOOST_TEST(s.run_some());
    BOOST_TEST(!s.all[0].answered);
    s.c->notify_one();
    BOOST_TEST(!s.all[0].answered, "completed inside the notification");
    kit::run(s.io);
    BOOST_TEST(s.all[0].succeeded());
    BOOST_TEST(s.all[0].had_lock);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_notified_waiter_waits_for_the_lock, P, kit::policies)
{
    scene<P> s(2);
    s.all_wait();
    BOOST_TEST(s.m.try_lock());
    s.c->notify_all();
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.answered() == 0U);
    BOOST_TEST(!s.m.try_lock());
    s.all[0].keeps_lock = true;
    s.m.unlock();
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.all[0].succeeded());
    BOOST_TEST(!s.all[1].answered);
    s.all[0].lock.unlock();
    kit::run(s.io);
    BOOST_TEST(s.all[1].succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waiters_are_notified_in_the_order_of_arrival, P, kit::policies)
{
    scene<P> s(7);
    s.all_wait();
    const auto woken_by = [&](auto notify) {
        const std::size_t before = s.answered();
        notify();
        s.run_some();
        return s.answered() - before;
    };
    BOOST_TEST(woken_by([&] { s.c->notify_one(); }) == 1U);
    BOOST_TEST(woken_by([&] { s.c->notify(0); }) == 0U);
    BOOST_TEST(woken_by([&] { s.c->notify(2); }) == 2U);
    BOOST_TEST(woken_by([&] { s.c->notify_one(); }) == 1U);
    BOOST_TEST(woken_by([&] { s.c->notify_all(); }) == 3U);
    for (std::size_t i = 1; i != s.all.size(); ++i)
        BOOST_TEST(s.all[i - 1].turn < s.all[i].turn);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_notification_without_a_waiter_is_not_stored, P, kit::policies)
{
    scene<P> s(1);
    s.c->notify_one();
    s.c->notify_all();
    s.c->notify(std::numeric_limits<std::size_t>::max());
    s.all_wait();
    BOOST_TEST(s.run_some());
    BOOST_TEST(!s.all[0].answered);
    s.c->notify(std::numeric_limits<std::size_t>::max());
    kit::run(s.io);
    BOOST_TEST(s.all[0].succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_wait_that_starts_after_a_notification_is_not_completed_by_it, P,
                              kit::policies)
{
    scene<P> s(2);
    s.all[0].wait(*s.c);
    s.c->notify_all();
    s.all[1].wait(*s.c);
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.all[0].succeeded());
    BOOST_TEST(!s.all[1].answered);
    s.c->notify_one();
    kit::run(s.io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waiting_without_the_lock_is_an_error, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    condition_of<P> c(io);
    typename mutex_of<P>::lock_type none;
    typename mutex_of<P>::lock_type not_locked(m, std::defer_lock);
    completion a;
    completion b;
    completion with_predicate;
    int asked = 0;
    const auto nothing = [] {};
    c.async_wait(none, a.handler(nothing));
    c.async_wait(not_locked, b.handler(nothing));
    c.async_wait(not_locked, predicate([&] { return ++asked != 0; }),
                 with_predicate.handler(nothing));
    BOOST_TEST(!a.done(), "completed inside its initiating function");
    kit::run(io);
    for (const completion* failed : {&a, &b, &with_predicate})
        BOOST_TEST((failed->error() == errc::not_locked));
    BOOST_TEST(asked == 0);
    BOOST_TEST(none.mutex() == nullptr);
    BOOST_TEST(not_locked.mutex() == &m);
    BOOST_TEST(m.try_lock());
}

// ---- Cancellation ----------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_wait_has_the_lock, P, kit::policies)
{
    scene<P> s(2);
    s.all_wait();
    s.all[0].cancel();
    BOOST_TEST(!s.all[0].answered);
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.all[0].aborted());
    BOOST_TEST(s.all[0].had_lock);
    BOOST_TEST(!s.all[1].answered);
    s.c->notify_one();
    kit::run(s.io);
    BOOST_TEST(s.all[1].succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_wait_waits_for_the_lock, P, kit::policies)
{
    scene<P> s(1);
    s.all_wait();
    BOOST_TEST(s.m.try_lock());
    s.all[0].cancel();
    BOOST_TEST(s.run_some());
    s.all[0].cancel(); // it still does not complete without the lock
    BOOST_TEST(s.run_some());
    BOOST_TEST(!s.all[0].answered);
    s.m.unlock();
    kit::run(s.io);
    BOOST_TEST(s.all[0].aborted());
    BOOST_TEST(s.all[0].had_lock);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_notification_of_a_cancelled_waiter_is_handed_over, P, kit::policies)
{
    scene<P> s(3);
    s.all_wait();
    s.c->notify_one();
    s.all[0].cancel();
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.all[0].aborted());
    BOOST_TEST(s.all[0].had_lock);
    BOOST_TEST(s.all[1].succeeded());
    BOOST_TEST(!s.all[2].answered);
    s.c->notify_one();
    kit::run(s.io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelled_while_it_waits_for_the_lock_it_hands_over_the_notification,
                              P, kit::policies)
{
    scene<P> s(3);
    s.all_wait();
    BOOST_TEST(s.m.try_lock());
    s.c->notify_one();
    BOOST_TEST(s.run_some()); // the waiter is queued for the lock
    s.all[0].cancel();
    s.m.unlock();
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.all[0].aborted());
    BOOST_TEST(s.all[0].had_lock);
    BOOST_TEST(s.all[1].succeeded());
    BOOST_TEST(!s.all[2].answered);
    s.c->notify_one();
    kit::run(s.io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelled_after_the_lock_is_granted_it_hands_over_the_notification, P,
                              kit::policies)
{
    scene<P> s(2);
    s.all_wait();
    BOOST_TEST(s.m.try_lock());
    s.c->notify_one();
    BOOST_TEST(s.run_some());
    s.m.unlock(); // the lock is granted, but the handler has not run
    s.all[0].cancel();
    kit::run(s.io);
    BOOST_TEST(s.all[0].aborted());
    BOOST_TEST(s.all[0].had_lock);
    BOOST_TEST(s.all[1].succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_waiter_of_notify_all_takes_nothing_from_the_others, P,
                              kit::policies)
{
    scene<P> s(4);
    for (std::size_t i = 0; i != 3; ++i)
        s.all[i].wait(*s.c);
    s.c->notify_all();
    s.all[3].wait(*s.c); // queued after the notification
    s.all[1].cancel();
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.all[0].succeeded());
    BOOST_TEST(s.all[1].aborted());
    BOOST_TEST(s.all[2].succeeded());
    BOOST_TEST(!s.all[3].answered, "completed by a notification for another waiter");
    s.c->notify_one();
    kit::run(s.io);
}

// A notification of notify_all() cannot be handed over, not even after later notifications.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_waiter_of_notify_all_hands_nothing_over_to_later_waiters,
                              P, kit::policies)
{
    scene<P> s(4);
    s.all[0].wait(*s.c);
    s.all[1].wait(*s.c);
    s.c->notify_all();
    s.all[2].wait(*s.c);
    s.all[3].wait(*s.c);
    s.c->notify_one(); // goes to the third waiter
    s.all[0].cancel();
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.all[0].aborted());
    BOOST_TEST(s.all[1].succeeded());
    BOOST_TEST(s.all[2].succeeded());
    BOOST_TEST(!s.all[3].answered, "completed without a notification");
    s.c->notify_one();
    kit::run(s.io);
}

// ---- The way of a notification -----------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(the_notification_of_a_cancelled_waiter_can_be_handed_over_again, P,
                              kit::policies)
{
    scene<P> s(3);
    s.all[0].wait(*s.c);
    s.all[1].wait(*s.c, [] { return false; });
    s.all[2].wait(*s.c);
    s.c->notify_one();
    s.all[0].cancel(); // hands over to the second waiter, which does not use it
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.all[0].aborted());
    BOOST_TEST(!s.all[1].answered);
    BOOST_TEST(s.all[2].succeeded(), "the notification is lost");
    s.c.reset();
    kit::run(s.io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(it_is_not_handed_over_to_a_cancelled_waiter, P, kit::policies)
{
    for (bool was_notified : {false, true}) {
        scene<P> s(4);
        s.all[0].wait(*s.c, [] { return false; });
        for (std::size_t i = 1; i != 4; ++i)
            s.all[i].wait(*s.c);
        s.c->notify(was_notified ? 2 : 1);
        s.all[1].cancel(); // it does not complete before the first predicate is tested
        BOOST_TEST(s.run_some());
        BOOST_TEST(s.all[1].aborted());
        BOOST_TEST(s.all[2].succeeded(), "the notification is lost");
        BOOST_TEST(s.all[3].answered == was_notified);
        s.c.reset();
        kit::run(s.io);
    }
}

// The waiters before a cancelled one have tested their predicates after the notification was
// given.
BOOST_AUTO_TEST_CASE_TEMPLATE(
    no_predicate_is_tested_again_for_the_notification_of_a_cancelled_waiter, P, kit::policies)
{
    scene<P> s(4);
    int asked = 0;
    for (std::size_t i = 0; i != 2; ++i)
        s.all[i].wait(*s.c, [&asked] { return ++asked < 0; });
    s.all[2].wait(*s.c, [&] {
        s.all[3].cancel(); // it has the notification, and has not completed
        return false;
    });
    s.all[3].wait(*s.c);
    asked = 0;
    s.c->notify(4);
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.all[3].aborted());
    BOOST_TEST(asked == 2);
    s.c.reset();
    kit::run(s.io);
}

// Notifications are interchangeable. The second waiter uses a notification that was given for the
// third; so the third gets the other one, although it was queued after that was given.
BOOST_AUTO_TEST_CASE(one_can_be_used_in_place_of_another)
{
    kit::drained_context io;
    turnstile::mutex m(io);
    turnstile::condition c(io);
    struct waiting {
        kit::drained_context io; // its own, so that the test decides when the waiter runs
        turnstile::mutex::lock_type lock;
        bool open = false;
        completion result;
    };
    std::array<waiting, 3> all;
    for (waiting& w : all) {
        w.lock = turnstile::mutex::lock_type(m, std::try_to_lock);
        c.async_wait(
            w.lock, [&w] { return w.open; },
            asio::bind_executor(w.io, w.result.handler([&w] { w.lock.unlock(); })));
    }
    const auto look = [&](std::size_t i) { kit::poll_leaves_work(all[i].io); };
    c.notify(3);
    look(0);
    look(1);
    all[1].open = true;
    c.notify_one(); // goes to the first waiter
    look(2);        // of the first three notifications, its own
    all[2].open = true;
    c.notify_one();
    look(1);
    BOOST_TEST(all[1].result.succeeded());
    look(0); // hands over its own notification
    look(2);
    BOOST_TEST(all[2].result.succeeded(), "the notification is lost");
    all[0].open = true;
    c.notify_all();
    look(0);
    BOOST_TEST(all[0].result.succeeded());
}

// An executor that calls a function whenever a task is posted to it.
struct on_post {
    const std::function<void()>* call;

    template <class Inner, class F>
    void execute(const Inner& inner, F f) const
    {
        inner.execute(std::move(f));
        if (*call)
            (*call)();
    }
};

// An operation that gets the lock because a wait has unlocked may notify at once.
BOOST_AUTO_TEST_CASE_TEMPLATE(it_is_not_missed_between_unlocking_and_waiting, P, kit::policies)
{
    kit::drained_context io;
    std::function<void()> posted;
    mutex_of<P> m(kit::wrapping_executor{io.get_executor(), on_post{&posted}});
    condition_of<P> c(io);
    const auto notify_when_locked = [&] {
        m.async_lock([](error_code, auto) {});
        posted = [&] {
            posted = nullptr;
            c.notify_one();
        };
    };

    party<P> at_start(m);
    typename mutex_of<P>::lock_type held(m, std::try_to_lock);
    notify_when_locked();
    at_start.lock = std::move(held);
    at_start.wait_with_lock(c);
    kit::poll_leaves_work(io);
    BOOST_TEST(at_start.succeeded(), "notified between the release of the lock and the wait");

    party<P> once_more(m);
    int asked = 0;
    once_more.wait(c, [&] {
        if (++asked == 2)
            notify_when_locked();
        return asked == 3;
    });
    c.notify_one();
    kit::poll_leaves_work(io);
    BOOST_TEST(once_more.succeeded(), "notified between the release of the lock and the wait");
    c.notify_all();
    kit::run(io);
}

// ---- Destruction -----------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(when_the_condition_is_destroyed_every_waiter_gets_its_lock, P,
                              kit::policies)
{
    scene<P> s(3);
    s.all_wait();
    BOOST_TEST(s.m.try_lock());
    s.c->notify_one();
    BOOST_TEST(s.run_some()); // the first waiter waits for its lock
    s.c.reset();
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.answered() == 0U);
    s.m.unlock();
    kit::run(s.io);
    for (const auto& p : s.all) {
        BOOST_TEST(p.aborted());
        BOOST_TEST(p.had_lock);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(when_the_mutex_is_destroyed_there_is_no_lock_to_have, P,
                              kit::policies)
{
    kit::drained_context io;
    condition_of<P> c(io);
    auto m = std::make_unique<mutex_of<P>>(io);
    mutex_of<P> other(io);
    std::deque<party<P>> all;
    for (int i = 0; i != 3; ++i)
        all.emplace_back(*m).wait(c);
    party<P> last(other);
    last.wait(c);
    BOOST_TEST(m->try_lock());
    c.notify_one();
    BOOST_TEST(kit::poll_leaves_work(io)); // the first waiter waits for its lock
    c.notify_one();                        // the second waiter is notified, and has not run
    m.reset();
    kit::poll_leaves_work(io);
    BOOST_TEST(all[0].aborted());
    BOOST_TEST(all[1].aborted());
    c.notify_all();
    kit::run(io);
    for (const auto& p : all) {
        BOOST_TEST(p.aborted());
        BOOST_TEST(p.lock.mutex() == nullptr);
    }
    BOOST_TEST(last.succeeded()); // its mutex exists, so it uses the notification
    BOOST_TEST(last.had_lock);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destroying_the_context_destroys_waiters_in_every_phase, P,
                              kit::policies)
{
    // With different executors, the waiter is posted from the mutex's to the condition's.
    for (bool own_executors : {false, true}) {
        for (int phase = 0; phase != (own_executors ? 5 : 4); ++phase) {
            std::optional<asio::io_context> io(std::in_place);
            asio::any_io_executor executor = io->get_executor();
            auto c = std::make_shared<condition_of<P>>(executor);
            if (own_executors)
                executor = asio::make_strand(*io);
            auto m = std::make_shared<mutex_of<P>>(executor);
            auto lock = std::make_shared<typename mutex_of<P>::lock_type>(*m, std::try_to_lock);
            completion dropped(kit::dropping::is_expected);
            // The handler owns the lock, the mutex and the condition.
            c->async_wait(*lock, dropped.handler([m, c, lock] {}));
            if (phase >= 1)
                c->notify_one();
            if (phase >= 2) {
                BOOST_TEST(m->try_lock());
                io->poll(); // the waiter waits for its lock
            }
            if (phase >= 3)
                m->unlock(); // the lock is granted, and not yet delivered
            if (phase >= 4)
                BOOST_TEST(io->poll_one() == 1U); // from one executor to the other
            BOOST_TEST(!dropped.done());
            m.reset();
            c.reset();
            lock.reset();
            executor = nullptr; // a strand must not outlive its context
            io.reset();
            BOOST_TEST(dropped.dropped(), "a handler has leaked");
        }
    }
}

BOOST_AUTO_TEST_CASE(a_waiter_whose_context_is_destroyed_hands_over_notification_and_lock)
{
    kit::drained_context home;
    turnstile::mutex m(home);
    turnstile::condition c(home);
    for (bool waits_for_lock : {false, true}) {
        std::optional<asio::io_context> elsewhere(std::in_place);
        completion lost(kit::dropping::is_expected);
        completion next;
        turnstile::mutex::lock_type first(m, std::try_to_lock);
        c.async_wait(first, asio::bind_executor(*elsewhere, lost.handler([] {})));
        turnstile::mutex::lock_type second(m, std::try_to_lock);
        c.async_wait(second, next.handler([&] { second.unlock(); }));
        if (waits_for_lock)
            BOOST_TEST(m.try_lock());
        c.notify_one();
        if (waits_for_lock) {
            elsewhere->poll();
            m.unlock();
        }
        elsewhere.reset();
        BOOST_TEST(lost.dropped());
        kit::run(home);
        BOOST_TEST(next.succeeded(), "the notification was lost with the context");
        BOOST_TEST(!m.is_locked(), "the lock was lost with the context");
    }
}

// ---- Predicates ------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(a_predicate_that_is_true_at_once_needs_no_notification, P,
                              kit::policies)
{
    scene<P> s(1);
    s.all[0].keeps_lock = true;
    s.all[0].wait(*s.c, [] { return true; });
    BOOST_TEST(s.m.is_locked(), "it has unlocked");
    BOOST_TEST(!s.all[0].answered);
    kit::run(s.io);
    BOOST_TEST(s.all[0].succeeded());
    BOOST_TEST(s.all[0].had_lock);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_predicate_is_called_with_the_lock_held_and_by_its_own_thread, P,
                              kit::policies)
{
    scene<P> s(1);
    int asked = 0;
    bool inside_run = true;
    auto& p = s.all[0];
    p.wait(*s.c, [&] {
        BOOST_TEST(p.lock.owns_lock());
        BOOST_TEST(s.m.is_locked());
        BOOST_TEST(inside_run);
        return ++asked == 3;
    });
    BOOST_TEST(asked == 1);
    for (int round = 2; round <= 3; ++round) {
        inside_run = false;
        s.c->notify_one();
        inside_run = true;
        BOOST_TEST(asked == round - 1, "called inside the notification");
        s.run_some();
        BOOST_TEST(asked == round);
        BOOST_TEST(p.answered == (round == 3));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_unused_notification_is_handed_over, P, kit::policies)
{
    scene<P> s(4);
    int value = 0;
    for (int i = 0; i != 4; ++i)
        s.all[static_cast<std::size_t>(i)].wait(*s.c, [&value, i] { return value == i + 1; });
    for (int turn : {3, 1, 4, 2}) {
        value = turn;
        s.c->notify_one(); // the notified waiter need not be the one that can use it
        s.run_some();
        BOOST_TEST(s.all[static_cast<std::size_t>(turn - 1)].succeeded());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_waiter_whose_predicate_is_false_keeps_its_place, P, kit::policies)
{
    scene<P> s(4);
    bool open = false;
    for (auto& p : s.all)
        p.wait(*s.c, [&open] { return open; });
    s.c->notify_one();
    s.run_some();
    s.c->notify(3);
    s.run_some();
    s.c->notify_all();
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.answered() == 0U);
    open = true;
    for (std::size_t i = 0; i != s.all.size(); ++i) {
        s.c->notify_one();
        s.run_some();
        BOOST_TEST(s.all[i].succeeded());
        BOOST_TEST(s.answered() == i + 1);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_waiter_whose_predicate_is_false_stays_before_later_waiters, P,
                              kit::policies)
{
    scene<P> s(3);
    bool open = false;
    s.all[0].wait(*s.c, [&open] { return open; });
    s.all[1].wait(*s.c);
    s.all[2].wait(*s.c);
    s.c->notify_one(); // the second waiter can use it
    s.run_some();
    BOOST_TEST(s.all[1].succeeded());
    open = true;
    s.c->notify_one();
    s.run_some();
    BOOST_TEST(s.all[0].succeeded());
    BOOST_TEST(!s.all[2].answered);
    s.c->notify_one();
    kit::run(s.io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_predicate_is_tested_twice_for_the_same_notifications, P,
                              kit::policies)
{
    scene<P> s(10);
    int asked = 0;
    for (auto& p : s.all)
        p.wait(*s.c, [&asked] { return ++asked < 0; });
    for (std::size_t n : {1U, 5U, 10U}) {
        asked = 0;
        s.c->notify(n);
        BOOST_TEST(s.run_some());
        BOOST_TEST(asked == 10);
    }
    asked = 0;
    s.c->notify_all();
    BOOST_TEST(s.run_some());
    BOOST_TEST(asked == 10);
    s.c.reset();
    kit::run(s.io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(each_of_several_unused_notifications_finds_a_waiter, P, kit::policies)
{
    scene<P> s(6);
    int items = 0;
    const predicate take = [&items] { return items != 0 && items-- != 0; };
    const predicate never = [] { return false; };
    for (std::size_t i = 0; i != 6; ++i)
        s.all[i].wait(*s.c, i < 3 ? never : take);
    items = 2;
    s.c->notify(2); // both go to waiters that do not use them
    BOOST_TEST(s.run_some());
    BOOST_TEST(s.all[3].succeeded());
    BOOST_TEST(s.all[4].succeeded());
    BOOST_TEST(!s.all[5].answered);
    s.c.reset();
    kit::run(s.io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_unused_notification_does_not_reach_later_waiters, P, kit::policies)
{
    scene<P> s(2);
    s.all[0].wait(*s.c, [] { return false; });
    s.c->notify_one();
    s.all[1].wait(*s.c);
    BOOST_TEST(s.run_some());
    BOOST_TEST(!s.all[1].answered);
    s.c.reset();
    kit::run(s.io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_wait_does_not_test_its_predicate_again, P, kit::policies)
{
    scene<P> s(2);
    int asked = 0;
    s.all[0].wait(*s.c, [&] { return ++asked > 1; });
    s.all[1].wait(*s.c);
    s.c->notify_one();
    s.all[0].cancel();
    kit::run(s.io);
    BOOST_TEST(asked == 1);
    BOOST_TEST(s.all[0].aborted());
    BOOST_TEST(s.all[0].had_lock);
    BOOST_TEST(s.all[1].succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_predicate_may_cancel_its_own_wait, P, kit::policies)
{
    for (bool says : {false, true}) {
        scene<P> s(2);
        int asked = 0;
        s.all[0].wait(*s.c, [&, says] {
            if (++asked == 2) {
                s.all[0].cancel();
                return says;
            }
            return false;
        });
        s.all[1].wait(*s.c);
        s.c->notify_one();
        kit::run(s.io);
        BOOST_TEST(s.all[0].aborted());
        BOOST_TEST(s.all[0].had_lock);
        BOOST_TEST(s.all[1].succeeded());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_predicate_that_throws_leaves_the_lock_held_and_reports, P,
                              kit::policies)
{
    for (int when : {1, 2}) { // called by the initiating function, or after a notification
        scene<P> s(2);
        int asked = 0;
        s.all[0].keeps_lock = true;
        s.all[0].wait(*s.c, [&, when]() -> bool {
            if (++asked == when)
                throw std::runtime_error("from a predicate");
            return false;
        });
        if (when == 2) {
            s.all[1].wait(*s.c);
            s.c->notify_one();
        }
        s.run_some();
        BOOST_TEST((s.all[0].error == errc::predicate_failed));
        BOOST_TEST(s.all[0].had_lock);
        BOOST_TEST(s.m.is_locked());
        s.all[0].lock.unlock();
        kit::run(s.io);
        BOOST_TEST(s.all[1].succeeded() == (when == 2), "the notification is lost");
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_gets_the_exception_of_its_predicate, P, kit::policies)
{
    scene<P> s(0);
    int caught = 0;
    const auto wait_and_throw = [&](int when) -> asio::awaitable<void> {
        auto lock = co_await s.m.async_lock();
        int asked = 0;
        const predicate p = [&asked, when]() -> bool {
            if (++asked == when)
                throw std::runtime_error("from a predicate");
            return false;
        };
        try {
            co_await s.c->async_wait(lock, std::ref(p));
        } catch (const std::runtime_error& e) {
            caught += e.what() == std::string("from a predicate") ? 1 : 0;
        }
        BOOST_TEST(lock.owns_lock());
        auto [ec] = co_await s.c->async_wait(
            lock, [&]() -> bool { throw 1; }, asio::as_tuple(asio::use_awaitable));
        BOOST_TEST((ec == errc::predicate_failed));
        BOOST_TEST(lock.owns_lock());
    };
    for (int when : {1, 2}) {
        asio::co_spawn(s.io, wait_and_throw(when), asio::detached);
        s.run_some();
        s.c->notify_one();
        kit::run(s.io);
        BOOST_TEST(caught == when);
    }
}

// ---- Executors -------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(a_mutex_of_another_context_is_refused_and_stays_locked, P,
                              kit::policies)
{
    kit::drained_context of_mutex;
    kit::drained_context of_condition;
    mutex_of<P> m(of_mutex);
    condition_of<P> c(of_condition);
    typename mutex_of<P>::lock_type lock(m, std::try_to_lock);
    int asked = 0;
    const predicate p = [&asked] { return ++asked != 0; };
    completion bare;
    completion with_predicate;
    error_code thrown;
    c.async_wait(lock, bare.handler([] {}));
    c.async_wait(lock, p, with_predicate.handler([] {}));
    asio::co_spawn(
        of_condition,
        [&]() -> asio::awaitable<void> {
            try {
                co_await c.async_wait(lock, p);
            } catch (const turnstile::system_error& e) {
                thrown = e.code();
            }
        },
        asio::detached);
    BOOST_TEST(!bare.done(), "completed inside its initiating function");
    kit::run(of_condition);
    for (const error_code& ec : {bare.error(), with_predicate.error(), thrown}) {
        BOOST_TEST((ec == errc::context_mismatch));
        BOOST_TEST((ec == std::errc::invalid_argument));
    }
    BOOST_TEST(asked == 0);
    BOOST_TEST(lock.owns_lock());
    BOOST_TEST(!m.try_lock());
    c.notify_all();
    lock.unlock();
    BOOST_TEST(m.try_lock());
    BOOST_TEST(!kit::poll_leaves_work(of_mutex));
    BOOST_TEST(!kit::poll_leaves_work(of_condition));
}

BOOST_AUTO_TEST_CASE(condition_mutex_and_handlers_may_each_have_their_own_executor)
{
    for (bool waits_for_lock : {false, true}) {
        kit::drained_context io;
        kit::drained_context of_handler;
        const auto of_condition = asio::make_strand(io);
        turnstile::mutex m(asio::make_strand(io));
        turnstile::condition c(of_condition);
        completion elsewhere;
        completion at_home;
        int asked_elsewhere = 0;
        int asked_at_home = 0;
        bool inside = false;
        turnstile::mutex::lock_type there(m, std::try_to_lock);
        c.async_wait(there, predicate([&] {
                         BOOST_TEST(inside == (asked_elsewhere != 0));
                         return ++asked_elsewhere == 3;
                     }),
                     asio::bind_executor(of_handler, elsewhere.handler([&] { there.unlock(); })));
        turnstile::mutex::lock_type here(m, std::try_to_lock);
        c.async_wait(here, predicate([&] {
                         BOOST_TEST(of_condition.running_in_this_thread() == (asked_at_home != 0));
                         return ++asked_at_home == 3;
                     }),
                     at_home.handler([&] {
                         BOOST_TEST(of_condition.running_in_this_thread());
                         here.unlock();
                     }));
        const auto run_both = [&] {
            for (int i = 0; i != 4; ++i) { // one may wait for the lock of the other
                kit::poll_leaves_work(io);
                inside = true;
                kit::poll_leaves_work(of_handler);
                inside = false;
            }
        };
        for (int round = 0; round != 2; ++round) {
            BOOST_TEST(!elsewhere.done());
            BOOST_TEST(!at_home.done());
            BOOST_TEST((!waits_for_lock || m.try_lock()));
            c.notify_all();
            run_both();
            if (waits_for_lock)
                m.unlock();
            run_both();
        }
        BOOST_TEST(elsewhere.succeeded());
        BOOST_TEST(at_home.succeeded());
        BOOST_TEST(!m.is_locked());
    }
}

// ---- Coroutines ------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(no_notification_is_missed_between_release_and_wait, P, kit::policies)
{
    // The producer gets the lock as soon as the consumer waits.
    scene<P> s(0);
    std::deque<int> items;
    std::vector<int> got;
    const auto consumer = [&]() -> asio::awaitable<void> {
        auto lock = co_await s.m.async_lock();
        while (got.size() < 50) {
            while (items.empty())
                co_await s.c->async_wait(lock);
            got.push_back(items.front());
            items.pop_front();
        }
    };
    const auto producer = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != 50; ++i) {
            auto lock = co_await s.m.async_lock();
            items.push_back(i);
            s.c->notify_one();
        }
    };
    asio::co_spawn(s.io, consumer(), asio::detached);
    asio::co_spawn(s.io, producer(), asio::detached);
    kit::run(s.io);
    BOOST_TEST(got.size() == 50U);
    BOOST_TEST(std::is_sorted(got.begin(), got.end()));
}

// ---- Any order, any cancellation -------------------------------------------------------

// Consumers of one store, every second of which accepts only even items; one of them is cancelled
// after k steps. A consumer that is cancelled, or finds no item it accepts, hands over its
// notification.
template <class P>
class market {
public:
    explicit market(std::uint64_t seed)
        : chaos_(seed), m_(chaos_.get_executor()), c_(std::in_place, chaos_.get_executor()),
          consumers_(6), chosen_(chaos_.pick(6))
    {
        for (std::size_t i = 0; i != consumers_.size(); ++i) {
            consumers_[i].wants_even = i % 2 == 0;
            post([this, i] { come(consumers_[i]); });
        }
        for (int item = 0; item != 6; ++item)
            post([this, item] { produce(item); });
    }

    bool cancel_after(std::size_t k)
    {
        for (std::size_t step = 0; step != k; ++step) {
            if (!chaos_.run_one())
                return false;
        }
        consumers_[chosen_].signal.emit(asio::cancellation_type::total);
        chaos_.run();
        return true;
    }

    void check()
    {
        std::size_t taken = 0;
        for (std::size_t i = 0; i != consumers_.size(); ++i) {
            const consumer& c = consumers_[i];
            if (c.answers == 0)
                BOOST_TEST(!has_item_for(c), "it waits although there is an item that it accepts");
            BOOST_TEST((!c.failed || i == chosen_));
            taken += c.answers == 1 && !c.failed ? 1 : 0;
        }
        BOOST_TEST(items_.size() + taken == 6U);
        BOOST_TEST(!m_.is_locked());
        c_.reset();
        chaos_.run();
        for (const consumer& c : consumers_)
            BOOST_TEST(c.answers == 1);
        BOOST_TEST(!m_.is_locked());
    }
    // How often a consumer found items, but none that it accepts.
    int declined() const { return declined_; }

private:
    using lock_type = typename mutex_of<P>::lock_type;
    struct consumer {
        asio::cancellation_signal signal;
        lock_type lock;
        bool wants_even = false;
        int answers = 0;
        error_code failed;
    };

    template <class F>
    void post(F f)
    {
        asio::post(chaos_.get_executor(), std::move(f));
    }

    auto item_for(const consumer& c)
    {
        return std::find_if(items_.begin(), items_.end(),
                            [&](int item) { return !c.wants_even || item % 2 == 0; });
    }
    bool has_item_for(const consumer& c) { return item_for(c) != items_.end(); }

    void come(consumer& c)
    {
        m_.async_lock([this, &c](error_code, lock_type lock) {
            c.lock = std::move(lock);
            c_->async_wait(
                c.lock,
                [this, &c] {
                    declined_ += !items_.empty() && !has_item_for(c) ? 1 : 0;
                    return has_item_for(c);
                },
                asio::bind_cancellation_slot(c.signal.slot(), [this, &c](error_code ec) {
                    BOOST_TEST(c.lock.owns_lock());
                    ++c.answers;
                    c.failed = ec;
                    if (!ec) {
                        BOOST_TEST_REQUIRE(has_item_for(c));
                        items_.erase(item_for(c));
                    }
                    post([&c] { c.lock.unlock(); });
                }));
        });
    }

    void produce(int item)
    {
        m_.async_lock([this, item](error_code, lock_type lock) {
            items_.push_back(item);
            c_->notify_one();
            post([held = std::move(lock)] {});
        });
    }

    kit::chaos_context chaos_;
    mutex_of<P> m_;
    std::optional<condition_of<P>> c_;
    std::vector<consumer> consumers_;
    std::deque<int> items_;
    std::size_t chosen_;
    int declined_ = 0;
};

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_at_any_step_loses_no_notification_and_no_lock, P,
                              kit::policies)
{
    int declined = 0;
    kit::for_each_seed(100, [&](std::uint64_t seed) {
        bool reached = true;
        for (std::size_t k = 0; reached; ++k) {
            BOOST_TEST_REQUIRE(k < 1000U);
            market<P> run(seed);
            reached = run.cancel_after(k);
            run.check();
            declined += run.declined();
        }
    });
    BOOST_TEST(declined != 0, "every notification was used by the first consumer that got it");
}

// Waiters with different predicates, and one notification for each change.
BOOST_AUTO_TEST_CASE_TEMPLATE(in_any_order_each_waiter_is_found_by_its_notification, P,
                              kit::policies)
{
    kit::for_each_seed(200, [](std::uint64_t seed) {
        kit::chaos_context chaos(seed);
        mutex_of<P> m(chaos.get_executor());
        condition_of<P> c(chaos.get_executor());
        constexpr std::size_t n = 8;
        std::vector<bool> open(n, false);
        std::deque<party<P>> all;
        for (std::size_t i = 0; i != n; ++i)
            all.emplace_back(m).wait(c, [&open, i]() -> bool { return open[i]; });
        for (std::size_t i = 0; i != n; ++i) {
            asio::post(chaos.get_executor(), [&, i] {
                m.async_lock([&, i](error_code, auto) {
                    open[i] = true;
                    c.notify_one();
                });
            });
        }
        chaos.run();
        for (const auto& p : all)
            BOOST_TEST(p.succeeded());
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
