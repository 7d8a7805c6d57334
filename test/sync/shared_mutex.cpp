// SPDX-License-Identifier: BSL-1.0
#include "kit/chaos_executor.hpp"
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"
#include "kit/seed.hpp"

#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;
using turnstile::lock_preference;

template <class Threading>
using mutex_of = turnstile::basic_shared_mutex<asio::any_io_executor, Threading>;

static_assert(!std::is_move_constructible_v<turnstile::shared_mutex>);
static_assert(std::is_same_v<turnstile::shared_mutex::rebind_executor<asio::system_executor>::other,
                             turnstile::basic_shared_mutex<asio::system_executor>>);

constexpr lock_preference all_preferences[] = {
    lock_preference::fair, lock_preference::prefer_readers, lock_preference::prefer_writers};
constexpr lock_preference barring[] = {lock_preference::fair, lock_preference::prefer_writers};

// A lock that is granted stays locked until the test unlocks it.
struct keep {
    template <class Lock>
    void operator()(Lock lock) const
    {
        BOOST_TEST(lock.owns_lock());
        lock.release();
    }
};

template <class M>
void read(M& m, const completion& c)
{
    m.async_lock_shared(c.handler(keep()));
}

template <class M>
void write(M& m, const completion& c)
{
    m.async_lock(c.handler(keep()));
}

template <class M>
void read_upgradable(M& m, const completion& c)
{
    m.async_lock_upgrade(c.handler(keep()));
}

bool run_some(asio::io_context& io) { return kit::poll_leaves_work(io); }

BOOST_AUTO_TEST_SUITE(shared_mutex)

BOOST_AUTO_TEST_CASE_TEMPLATE(is_fair_by_default, P, kit::policies)
{
    asio::io_context io;
    BOOST_TEST((mutex_of<P>(io).preference() == lock_preference::fair));
    for (auto preference : all_preferences)
        BOOST_TEST((mutex_of<P>(io.get_executor(), preference).preference() == preference));
    BOOST_TEST((mutex_of<P>(io).get_executor() == io.get_executor()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(readers_share_and_a_writer_does_not, P, kit::policies)
{
    asio::io_context io;
    for (auto preference : all_preferences) {
        mutex_of<P> m(io, preference);
        BOOST_TEST(m.try_lock_shared());
        BOOST_TEST(m.try_lock_shared());
        BOOST_TEST(!m.try_lock());
        m.unlock_shared();
        BOOST_TEST(!m.try_lock());
        BOOST_TEST(m.is_locked_shared());
        m.unlock_shared();
        BOOST_TEST(!m.is_locked_shared());
        BOOST_TEST(m.try_lock());
        BOOST_TEST(m.is_locked());
        BOOST_TEST(!m.try_lock());
        BOOST_TEST(!m.try_lock_shared());
        BOOST_TEST(!m.try_lock_upgrade());
        m.unlock();
        BOOST_TEST(!m.is_locked());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_upgradable_lock_is_held_beside_readers, P, kit::policies)
{
    asio::io_context io;
    mutex_of<P> m(io);
    BOOST_TEST(m.try_lock_shared());
    BOOST_TEST(m.try_lock_upgrade());
    BOOST_TEST(m.is_locked_upgrade());
    BOOST_TEST(m.try_lock_shared());
    BOOST_TEST(!m.try_lock_upgrade());
    m.unlock_shared();
    m.unlock_shared();
    BOOST_TEST(!m.try_lock());
    m.unlock_upgrade();
    BOOST_TEST(m.try_lock());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(unlocking_an_unlocked_mutex_is_an_error, P, kit::policies)
{
    asio::io_context io;
    mutex_of<P> m(io);
    using M = mutex_of<P>;
    struct way {
        bool (M::*take)();
        void (M::*give)(error_code&);
        void (M::*give_or_throw)();
    };
    const way ways[] = {{&M::try_lock, &M::unlock, &M::unlock},
                        {&M::try_lock_shared, &M::unlock_shared, &M::unlock_shared},
                        {&M::try_lock_upgrade, &M::unlock_upgrade, &M::unlock_upgrade}};
    // Unlocked, then locked in each of the three ways.
    for (const way* held : {static_cast<const way*>(nullptr), &ways[0], &ways[1], &ways[2]}) {
        if (held)
            BOOST_TEST((m.*held->take)());
        for (const way& wrong : ways) {
            if (&wrong == held)
                continue;
            error_code ec;
            (m.*wrong.give)(ec);
            BOOST_TEST((ec == errc::not_locked));
            BOOST_CHECK_EXCEPTION((m.*wrong.give_or_throw)(), turnstile::system_error,
                                  [](const auto& e) { return e.code() == errc::not_locked; });
        }
        if (held) {
            error_code ec = errc::closed;
            (m.*held->give)(ec);
            BOOST_TEST(!ec);
        }
    }
    BOOST_TEST(m.try_lock(), "a failed unlock has changed the state");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_wrong_unlock_is_noticed_while_others_wait, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    BOOST_TEST(m.try_lock());
    completion reader;
    read(m, reader);
    error_code ec;
    m.unlock_shared(ec);
    BOOST_TEST((ec == errc::not_locked));
    m.unlock_upgrade(ec);
    BOOST_TEST((ec == errc::not_locked));
    BOOST_TEST(run_some(io));
    BOOST_TEST(!reader.done());
    m.unlock();
    kit::run(io);
    BOOST_TEST(reader.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(works_with_the_guards_of_std, P, kit::policies)
{
    asio::io_context io;
    mutex_of<P> m(io);
    {
        const std::shared_lock first(m, std::try_to_lock);
        const std::shared_lock second(m, std::try_to_lock);
        const std::unique_lock writer(m, std::try_to_lock);
        BOOST_TEST(first.owns_lock());
        BOOST_TEST(second.owns_lock());
        BOOST_TEST(!writer.owns_lock());
    }
    const std::unique_lock writer(m, std::try_to_lock);
    BOOST_TEST(writer.owns_lock());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(dropped_locks_are_granted_to_the_next_waiters, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    std::array<completion, 5> all;
    const auto drop = [](auto) {};
    m.async_lock(all[0].handler(drop));
    m.async_lock_shared(all[1].handler(drop));
    m.async_lock_upgrade(all[2].handler(drop));
    m.async_lock(all[3].handler(drop));
    m.async_lock_shared(all[4].handler(drop));
    kit::run(io);
    for (const auto& c : all)
        BOOST_TEST(c.succeeded());
    BOOST_TEST(m.try_lock());
}

// ---- Order of grants -------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(a_queued_writer_stops_new_readers, P, kit::policies)
{
    for (auto preference : barring) {
        kit::drained_context io;
        mutex_of<P> m(io, preference);
        BOOST_TEST(m.try_lock_shared());
        completion writer;
        completion reader;
        completion upgradable;
        write(m, writer);
        read(m, reader);
        read_upgradable(m, upgradable);
        BOOST_TEST(!m.try_lock_shared());
        BOOST_TEST(!m.try_lock_upgrade());
        BOOST_TEST(run_some(io));
        BOOST_TEST(!reader.done());
        m.unlock_shared();
        run_some(io);
        BOOST_TEST(writer.succeeded());
        BOOST_TEST(!reader.done());
        BOOST_TEST(!upgradable.done());
        m.unlock();
        kit::run(io);
        BOOST_TEST(reader.succeeded());
        BOOST_TEST(upgradable.succeeded());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(preferred_readers_overtake_a_writer, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io, lock_preference::prefer_readers);
    BOOST_TEST(m.try_lock_shared());
    completion writer;
    completion reader;
    completion upgradable;
    write(m, writer);
    read(m, reader);
    read_upgradable(m, upgradable);
    BOOST_TEST(m.try_lock_shared());
    BOOST_TEST(!m.try_lock());
    run_some(io);
    BOOST_TEST(reader.succeeded());
    BOOST_TEST(upgradable.succeeded());
    BOOST_TEST(!m.try_lock_upgrade());
    m.unlock_upgrade();
    for (int i = 0; i != 3; ++i) {
        BOOST_TEST(!writer.done());
        m.unlock_shared();
        run_some(io);
    }
    BOOST_TEST(writer.succeeded());
    BOOST_TEST(!m.try_lock_shared());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_the_writer_grants_the_readers_at_once, P, kit::policies)
{
    for (auto preference : barring) {
        kit::drained_context io;
        mutex_of<P> m(io, preference);
        BOOST_TEST(m.try_lock_shared());
        asio::cancellation_signal signal;
        completion writer;
        std::array<completion, 3> readers;
        completion upgradable;
        m.async_lock(asio::bind_cancellation_slot(signal.slot(), writer.handler(keep())));
        for (const auto& c : readers)
            read(m, c);
        read_upgradable(m, upgradable);
        BOOST_TEST(run_some(io));
        signal.emit(asio::cancellation_type::terminal);
        kit::run(io);
        BOOST_TEST(writer.aborted());
        for (const auto& c : readers)
            BOOST_TEST(c.succeeded());
        BOOST_TEST(upgradable.succeeded());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_one_of_two_writers_keeps_readers_behind_the_other, P,
                              kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    BOOST_TEST(m.try_lock_shared());
    asio::cancellation_signal signal;
    completion first;
    completion between;
    completion second;
    completion last;
    m.async_lock(asio::bind_cancellation_slot(signal.slot(), first.handler(keep())));
    read(m, between);
    write(m, second);
    read(m, last);
    signal.emit(asio::cancellation_type::terminal);
    run_some(io);
    BOOST_TEST(between.succeeded());
    BOOST_TEST(!second.done());
    BOOST_TEST(!last.done());
    m.unlock_shared();
    m.unlock_shared();
    run_some(io);
    BOOST_TEST(second.succeeded());
    BOOST_TEST(!last.done());
    m.unlock();
    kit::run(io);
    BOOST_TEST(last.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_writers_release_admits_all_readers_up_to_the_next_writer, P,
                              kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    BOOST_TEST(m.try_lock());
    std::array<completion, 3> run;
    completion upgradable;
    completion writer;
    completion late;
    read(m, run[0]);
    read_upgradable(m, upgradable);
    read(m, run[1]);
    read(m, run[2]);
    write(m, writer);
    read(m, late);
    m.unlock();
    BOOST_TEST(run_some(io));
    for (const auto& c : run)
        BOOST_TEST(c.succeeded());
    BOOST_TEST(upgradable.succeeded());
    BOOST_TEST(!writer.done());
    BOOST_TEST(!late.done());
    for (std::size_t i = 0; i != run.size(); ++i)
        m.unlock_shared();
    BOOST_TEST(run_some(io));
    BOOST_TEST(!writer.done());
    m.unlock_upgrade();
    run_some(io);
    BOOST_TEST(writer.succeeded());
    m.unlock();
    kit::run(io);
    BOOST_TEST(late.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(preferred_writers_overtake_earlier_readers, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io, lock_preference::prefer_writers);
    BOOST_TEST(m.try_lock());
    completion reader;
    std::array<completion, 2> writers;
    read(m, reader);
    for (const auto& c : writers)
        write(m, c);
    for (const auto& c : writers) {
        m.unlock();
        run_some(io);
        BOOST_TEST(c.succeeded());
        BOOST_TEST(!reader.done());
    }
    m.unlock();
    kit::run(io);
    BOOST_TEST(reader.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_fair_mutex_keeps_the_order_of_arrival, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    BOOST_TEST(m.try_lock());
    std::vector<int> order;
    const auto note = [&order](int i) {
        return [&order, i](error_code, auto) { order.push_back(i); };
    };
    for (int i = 0; i != 6; ++i) {
        if (i % 2 == 0)
            m.async_lock(note(i));
        else
            m.async_lock_shared(note(i));
    }
    m.unlock();
    kit::run(io);
    BOOST_TEST(order.size() == 6U);
    BOOST_TEST(std::is_sorted(order.begin(), order.end()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(readers_overtake_a_waiter_for_the_upgradable_lock, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    BOOST_TEST(m.try_lock_upgrade());
    completion upgradable;
    completion reader;
    read_upgradable(m, upgradable);
    read(m, reader);
    BOOST_TEST(run_some(io));
    BOOST_TEST(reader.succeeded());
    BOOST_TEST(!upgradable.done());
    m.unlock_upgrade();
    kit::run(io);
    BOOST_TEST(upgradable.succeeded());
}

// ---- Upgrade and downgrade -------------------------------------------------------------

// An upgrade together with the lock it upgrades.
template <class M, class Lock>
struct upgrade {
    explicit upgrade(M& m) : lock(m, std::try_to_lock) { BOOST_TEST_REQUIRE(lock.owns_lock()); }
    ~upgrade()
    {
        if (result.succeeded())
            BOOST_TEST(!lock.owns_lock());
    }

    void start(M& m)
    {
        m.async_upgrade(lock, asio::bind_cancellation_slot(signal.slot(), result.handler(keep())));
    }
    void cancel() { signal.emit(asio::cancellation_type::total); }

    Lock lock;
    completion result;
    asio::cancellation_signal signal;
};

template <class P>
using upgrade_of_upgradable = upgrade<mutex_of<P>, turnstile::upgrade_lock<mutex_of<P>>>;
template <class P>
using upgrade_of_shared = upgrade<mutex_of<P>, turnstile::shared_lock<mutex_of<P>>>;

using upgrades = std::tuple<upgrade_of_upgradable<turnstile::thread_safe>,
                            upgrade_of_upgradable<turnstile::strand_confined>,
                            upgrade_of_shared<turnstile::thread_safe>,
                            upgrade_of_shared<turnstile::strand_confined>>;

template <class M, class Lock>
M mutex_type_of(const upgrade<M, Lock>&);
template <class U>
using mutex_for = decltype(mutex_type_of(std::declval<U>()));

template <class M, class Lock>
bool still_holds(const M& m, const upgrade<M, Lock>& u)
{
    constexpr bool is_shared = std::is_same_v<Lock, turnstile::shared_lock<M>>;
    return u.lock.owns_lock() && (is_shared ? m.is_locked_shared() : m.is_locked_upgrade());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_upgrade_waits_for_other_readers_and_stops_new_ones, U, upgrades)
{
    for (auto preference : barring) {
        kit::drained_context io;
        mutex_for<U> m(io, preference);
        U u(m);
        BOOST_TEST(m.try_lock_shared());
        u.start(m);
        completion reader;
        completion writer;
        read(m, reader);
        write(m, writer);
        BOOST_TEST(!m.try_lock_shared());
        BOOST_TEST(run_some(io));
        BOOST_TEST(!u.result.done());
        BOOST_TEST(!reader.done());
        m.unlock_shared();
        run_some(io);
        BOOST_TEST(u.result.succeeded());
        BOOST_TEST(m.is_locked());
        BOOST_TEST(!reader.done());
        BOOST_TEST(!writer.done());
        m.unlock();
        run_some(io);
        BOOST_TEST(reader.done() == (preference == lock_preference::fair));
        BOOST_TEST(writer.done() != reader.done());
        if (reader.done())
            m.unlock_shared();
        else
            m.unlock();
        kit::run(io);
        BOOST_TEST(reader.succeeded());
        BOOST_TEST(writer.succeeded());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_upgrade_precedes_an_earlier_writer, U, upgrades)
{
    kit::drained_context io;
    mutex_for<U> m(io);
    U u(m);
    completion writer;
    write(m, writer);
    u.start(m);
    BOOST_TEST(run_some(io));
    BOOST_TEST(u.result.succeeded());
    BOOST_TEST(!writer.done());
    m.unlock();
    kit::run(io);
    BOOST_TEST(writer.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_upgrade_keeps_its_lock, U, upgrades)
{
    kit::drained_context io;
    mutex_for<U> m(io);
    U u(m);
    BOOST_TEST(m.try_lock_shared());
    u.start(m);
    completion reader;
    read(m, reader);
    u.cancel();
    kit::run(io);
    BOOST_TEST(u.result.aborted());
    BOOST_TEST(still_holds(m, u));
    BOOST_TEST(reader.succeeded(), "the reader it held back was not granted");
    BOOST_TEST(!m.try_lock());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(
    an_upgrade_cancelled_after_its_grant_keeps_its_lock_and_grants_readers, U, upgrades)
{
    kit::drained_context io;
    mutex_for<U> m(io);
    U u(m);
    u.start(m); // granted at once, and not yet delivered
    BOOST_TEST(m.is_locked());
    completion reader;
    completion writer;
    read(m, reader);
    write(m, writer);
    u.cancel();
    BOOST_TEST(!m.is_locked());
    run_some(io);
    BOOST_TEST(u.result.aborted());
    BOOST_TEST(still_holds(m, u));
    BOOST_TEST(reader.succeeded());
    BOOST_TEST(!writer.done());
    m.unlock_shared();
    u.lock.unlock();
    kit::run(io);
    BOOST_TEST(writer.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_two_upgrades_the_second_gets_an_error, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    upgrade_of_shared<P> first(m);
    upgrade_of_shared<P> second(m);
    upgrade_of_upgradable<P> third(m);
    first.start(m);
    second.start(m);
    third.start(m);
    run_some(io);
    BOOST_TEST(!first.result.done());
    BOOST_TEST((second.result.error() == errc::upgrade_conflict));
    BOOST_TEST((third.result.error() == errc::upgrade_conflict));
    BOOST_TEST(still_holds(m, second));
    BOOST_TEST(still_holds(m, third));
    second.lock.unlock();
    BOOST_TEST(run_some(io));
    BOOST_TEST(!first.result.done());
    third.lock.unlock();
    kit::run(io);
    BOOST_TEST(first.result.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(upgrading_a_lock_that_is_not_held_is_an_error, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    mutex_of<P> other(io);
    turnstile::upgrade_lock<mutex_of<P>> none;
    turnstile::shared_lock<mutex_of<P>> elsewhere(other, std::try_to_lock);
    completion a;
    completion b;
    m.async_upgrade(none, a.handler(keep()));
    m.async_upgrade(elsewhere, b.handler(keep()));
    BOOST_TEST(!a.done());
    kit::run(io);
    BOOST_TEST((a.error() == errc::not_locked));
    BOOST_TEST((b.error() == errc::not_locked));
    BOOST_TEST(elsewhere.owns_lock());
    BOOST_TEST(m.try_lock());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_upgrade_of_a_lock_that_is_unlocked_meanwhile_fails, P,
                              kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    upgrade_of_upgradable<P> upgradable(m);
    BOOST_TEST(m.try_lock_shared());
    upgradable.start(m);
    upgradable.lock.unlock();
    kit::run(io);
    BOOST_TEST((upgradable.result.error() == errc::not_locked));
    m.unlock_shared();

    upgrade_of_shared<P> shared(m);
    BOOST_TEST(m.try_lock_upgrade());
    shared.start(m);
    shared.lock.unlock();
    kit::run(io);
    BOOST_TEST((shared.result.error() == errc::not_locked));
    m.unlock_upgrade();
    BOOST_TEST(m.try_lock());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_upgrade_does_not_take_the_shared_lock_of_another_reader, P,
                              kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    turnstile::shared_lock reader(m, std::try_to_lock);
    upgrade_of_shared<P> unlocked(m);
    unlocked.start(m);
    unlocked.lock.unlock();
    kit::run(io);
    BOOST_TEST((unlocked.result.error() == errc::not_locked));

    upgrade_of_shared<P> released(m);
    released.start(m);
    released.lock.release();
    kit::run(io);
    BOOST_TEST((released.result.error() == errc::not_locked));
    m.unlock_shared();
    BOOST_TEST(m.is_locked_shared()); // the other reader holds it
    reader.unlock();
    BOOST_TEST(m.try_lock());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_lock_on_its_way_to_be_exclusive_cannot_be_unlocked, U, upgrades)
{
    kit::drained_context io;
    mutex_for<U> m(io);
    U u(m);
    u.start(m);
    BOOST_CHECK_THROW(u.lock.unlock(), turnstile::system_error);
    BOOST_TEST(u.lock.owns_lock());
    kit::run(io);
    BOOST_TEST(u.result.succeeded());
    BOOST_TEST(m.is_locked());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_lock_that_could_not_be_unlocked_is_owned_after_a_cancelled_upgrade,
                              U, upgrades)
{
    kit::drained_context io;
    mutex_for<U> m(io);
    {
        U u(m);
        u.start(m);
        error_code ec;
        u.lock.unlock(ec);
        BOOST_TEST((ec == errc::not_locked));
        u.cancel();
        kit::run(io);
        BOOST_TEST(u.result.aborted());
        BOOST_TEST(u.lock.owns_lock());
    }
    BOOST_TEST(m.try_lock());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_downgrade_admits_readers_and_never_a_writer, P, kit::policies)
{
    for (auto preference : all_preferences) {
        kit::drained_context io;
        mutex_of<P> m(io, preference);
        turnstile::unique_lock writing(m, std::try_to_lock);
        completion reader;
        completion writer;
        completion late;
        read(m, reader);
        write(m, writer);
        read(m, late);
        auto reading = m.downgrade(std::move(writing));
        BOOST_TEST(!writing.owns_lock());
        BOOST_TEST(reading.owns_lock());
        BOOST_TEST(run_some(io));
        BOOST_TEST(reader.succeeded() == (preference != lock_preference::prefer_writers));
        BOOST_TEST(late.succeeded() == (preference == lock_preference::prefer_readers));
        BOOST_TEST(!writer.done());
        BOOST_TEST(!m.is_locked());
        reading.unlock();
        for (const completion* c : {&reader, &late})
            if (c->done())
                m.unlock_shared();
        run_some(io);
        BOOST_TEST(writer.succeeded());
        m.unlock();
        kit::run(io);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_upgradable_lock_is_downgraded_too, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    turnstile::upgrade_lock upgradable(m, std::try_to_lock);
    completion next;
    read_upgradable(m, next);
    const auto reading = m.downgrade(std::move(upgradable));
    BOOST_TEST(!upgradable.owns_lock());
    kit::run(io);
    BOOST_TEST(next.succeeded());
    BOOST_TEST(m.is_locked_shared());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(downgrading_an_unlocked_mutex_is_an_error, P, kit::policies)
{
    asio::io_context io;
    mutex_of<P> m(io);
    mutex_of<P> other(io);
    turnstile::unique_lock elsewhere(other, std::try_to_lock);
    error_code ec;
    BOOST_TEST(!m.downgrade(std::move(elsewhere), ec).owns_lock());
    BOOST_TEST((ec == errc::not_locked));
    BOOST_TEST(elsewhere.owns_lock());
    BOOST_CHECK_THROW((void)m.downgrade(turnstile::upgrade_lock<mutex_of<P>>()),
                      turnstile::system_error);
    BOOST_TEST(m.try_lock());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_reads_upgrades_and_downgrades, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    int value = 0;
    int most_readers = 0;
    int readers = 0;
    const auto reader = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != 20; ++i) {
            auto lock = co_await m.async_lock_shared();
            most_readers = std::max(most_readers, ++readers);
            const int before = value;
            co_await asio::post(asio::use_awaitable);
            BOOST_TEST(value == before);
            --readers;
        }
    };
    const auto updater = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != 20; ++i) {
            auto reading = co_await m.async_lock_upgrade();
            const int before = value;
            co_await asio::post(asio::use_awaitable);
            auto writing = co_await m.async_upgrade(reading);
            BOOST_TEST(readers == 0);
            BOOST_TEST(value == before);
            ++value;
            auto again = m.downgrade(std::move(writing));
            co_await asio::post(asio::use_awaitable);
            BOOST_TEST(value >= before + 1);
        }
    };
    for (int i = 0; i != 3; ++i) {
        asio::co_spawn(io, reader(), asio::detached);
        asio::co_spawn(io, updater(), asio::detached);
    }
    kit::run(io);
    BOOST_TEST(value == 60);
    BOOST_TEST(most_readers == 3);
    BOOST_TEST(m.try_lock());
}

// ---- Any order, any cancellation -------------------------------------------------------

// Readers, writers and upgrades that arrive, hold their lock and unlock in a random order. Some of
// them are cancelled at a random step.
template <class P>
class crowd {
    using mutex = mutex_of<P>;

public:
    crowd(std::uint64_t seed, lock_preference preference)
        : chaos_(seed), m_(chaos_.get_executor(), preference), parties_(12)
    {
        for (party& p : parties_) {
            const auto role = chaos_.pick(4);
            post([this, &p, role] { arrive(p, role); });
            if (chaos_.pick(3) == 0)
                post([&p] { p.signal.emit(asio::cancellation_type::total); });
        }
    }

    void run()
    {
        chaos_.run();
        for (const party& p : parties_) {
            BOOST_TEST(p.answers == 1);
            BOOST_TEST((!p.failed || p.failed == asio::error::operation_aborted ||
                        p.failed == errc::upgrade_conflict));
        }
        BOOST_TEST(m_.try_lock(), "a lock was not released");
    }

private:
    struct party {
        asio::cancellation_signal signal;
        int answers = 0;
        error_code failed;
        turnstile::upgrade_lock<mutex> upgradable;
        turnstile::shared_lock<mutex> shared;
    };

    template <class F>
    void post(F f)
    {
        asio::post(chaos_.get_executor(), std::move(f));
    }

    void arrive(party& p, std::size_t role)
    {
        if (role == 0)
            m_.async_lock(stay(p, writers_));
        else if (role == 1)
            m_.async_lock_shared(stay(p, readers_));
        else if (role == 2)
            m_.async_lock_upgrade([this, &p](error_code, auto lock) {
                this->upgrade(p, p.upgradable = std::move(lock));
            });
        else
            m_.async_lock_shared([this, &p](error_code, auto lock) {
                this->upgrade(p, p.shared = std::move(lock));
            });
    }

    template <class Lock>
    void upgrade(party& p, Lock& lock)
    {
        BOOST_TEST(lock.owns_lock());
        ++readers_;
        check();
        m_.async_upgrade(lock,
                         asio::bind_cancellation_slot(
                             p.signal.slot(), [this, &p, &lock](error_code ec, auto exclusive) {
                                 --readers_;
                                 BOOST_TEST(lock.owns_lock() == bool(ec));
                                 BOOST_TEST(exclusive.owns_lock() != bool(ec));
                                 lock = Lock();
                                 this->answer(p, ec, std::move(exclusive), writers_);
                             }));
    }

    auto stay(party& p, int& kind)
    {
        return asio::bind_cancellation_slot(p.signal.slot(),
                                            [this, &p, &kind](error_code ec, auto lock) {
                                                this->answer(p, ec, std::move(lock), kind);
                                            });
    }

    template <class Lock>
    void answer(party& p, error_code ec, Lock lock, int& kind)
    {
        ++p.answers;
        p.failed = ec;
        if (ec)
            return;
        ++kind;
        check();
        post([&kind, held = std::move(lock)]() mutable {
            --kind;
            held = Lock();
        });
    }

    void check() const { BOOST_TEST((writers_ == 0 || (writers_ == 1 && readers_ == 0))); }

    kit::chaos_context chaos_;
    mutex m_;
    std::vector<party> parties_;
    int readers_ = 0;
    int writers_ = 0;
};

BOOST_AUTO_TEST_CASE_TEMPLATE(in_any_order_every_operation_completes_and_no_lock_is_left, P,
                              kit::policies)
{
    kit::for_each_seed(300, [](std::uint64_t seed) {
        for (auto preference : all_preferences)
            crowd<P>(seed, preference).run();
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
