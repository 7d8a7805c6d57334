// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/lock.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>

namespace {

namespace asio = boost::asio;
using turnstile::errc;
using turnstile::error_code;
using turnstile::shared_lock;
using turnstile::unique_lock;

using shared_mutexes = std::tuple<turnstile::shared_mutex, turnstile::local::shared_mutex>;
using mutexes = std::tuple<turnstile::mutex, turnstile::local::mutex, turnstile::shared_mutex,
                           turnstile::local::shared_mutex>;
using upgradable = turnstile::upgrade_lock<turnstile::shared_mutex>;

static_assert(!std::is_copy_constructible_v<unique_lock<turnstile::mutex>>);
static_assert(std::is_nothrow_move_constructible_v<unique_lock<turnstile::mutex>>);
static_assert(std::is_nothrow_move_assignable_v<unique_lock<turnstile::mutex>>);
static_assert(sizeof(unique_lock<turnstile::mutex>) == 2 * sizeof(void*));

static_assert(!std::is_copy_constructible_v<shared_lock<turnstile::shared_mutex>>);
static_assert(std::is_nothrow_move_constructible_v<shared_lock<turnstile::shared_mutex>>);
static_assert(sizeof(shared_lock<turnstile::shared_mutex>) == 2 * sizeof(void*));

static_assert(!std::is_copy_constructible_v<upgradable>);
static_assert(std::is_nothrow_move_constructible_v<upgradable>);
static_assert(std::is_nothrow_move_assignable_v<upgradable>);
static_assert(std::is_same_v<upgradable, turnstile::shared_mutex::upgrade_lock_type>);

const auto is = [](errc code) {
    return [code](const turnstile::system_error& e) { return e.code() == code; };
};

BOOST_AUTO_TEST_SUITE(unique_locks)

BOOST_AUTO_TEST_CASE_TEMPLATE(unlocks_when_it_goes_out_of_scope, M, mutexes)
{
    asio::io_context io;
    M m(io);
    {
        const unique_lock lock(m, std::try_to_lock);
        BOOST_TEST(lock.owns_lock());
        BOOST_TEST(static_cast<bool>(lock));
        BOOST_TEST(lock.mutex() == &m);
        const unique_lock second(m, std::try_to_lock);
        BOOST_TEST(!second.owns_lock());
    }
    BOOST_TEST(!m.is_locked());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(moves_and_swaps_its_lock, M, mutexes)
{
    asio::io_context io;
    M m(io);
    M n(io);
    unique_lock a(m, std::try_to_lock);
    unique_lock<M> b(std::move(a));
    BOOST_TEST(!a.owns_lock());
    BOOST_TEST(!a.mutex());
    unique_lock c(n, std::try_to_lock);
    swap(c, b);
    BOOST_TEST(c.mutex() == &m);
    b = std::move(c);
    BOOST_TEST(!n.is_locked());
    BOOST_TEST(m.is_locked());
    b = unique_lock<M>();
    BOOST_TEST(!m.is_locked());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(locks_and_unlocks_as_often_as_it_likes, M, mutexes)
{
    asio::io_context io;
    M m(io);
    unique_lock lock(m, std::defer_lock);
    BOOST_TEST(!lock.owns_lock());
    BOOST_TEST(lock.mutex() == &m);
    for (int i = 0; i != 2; ++i) {
        BOOST_TEST(lock.try_lock());
        BOOST_TEST(m.is_locked());
        BOOST_CHECK_EXCEPTION((void)lock.try_lock(), turnstile::system_error,
                              is(errc::invalid_argument));
        lock.unlock();
        BOOST_TEST(!m.is_locked());
        BOOST_CHECK_EXCEPTION(lock.unlock(), turnstile::system_error, is(errc::not_locked));
    }
    BOOST_TEST(m.try_lock());
    BOOST_TEST(!lock.try_lock());
    m.unlock();
    BOOST_CHECK_EXCEPTION((void)unique_lock<M>().try_lock(), turnstile::system_error,
                          is(errc::invalid_argument));
    error_code ec;
    lock.unlock(ec);
    BOOST_TEST((ec == errc::not_locked));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(try_lock_reports_misuse_without_throwing, M, mutexes)
{
    asio::io_context io;
    M m(io);
    unique_lock lock(m, std::defer_lock);
    error_code ec = errc::closed;
    BOOST_TEST(lock.try_lock(ec));
    BOOST_TEST(!ec);
    BOOST_TEST(!lock.try_lock(ec));
    BOOST_TEST((ec == errc::invalid_argument), "it owns the lock already");
    BOOST_TEST(lock.owns_lock());
    unique_lock second(m, std::defer_lock);
    BOOST_TEST(!second.try_lock(ec));
    BOOST_TEST(!ec, "a mutex that is locked at the moment is no error");
    BOOST_TEST(!unique_lock<M>().try_lock(ec));
    BOOST_TEST((ec == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(releases_and_adopts_without_unlocking, M, mutexes)
{
    asio::io_context io;
    M m(io);
    unique_lock lock(m, std::try_to_lock);
    BOOST_TEST(lock.release() == &m);
    BOOST_TEST(!lock.mutex());
    BOOST_TEST(m.is_locked());
    {
        const unique_lock adopted(m, std::adopt_lock);
        BOOST_TEST(adopted.owns_lock());
        const unique_lock again(m, std::adopt_lock);
        BOOST_TEST(!again.owns_lock(), "two values own the same lock");
    }
    BOOST_TEST(!m.is_locked());
    const unique_lock nothing(m, std::adopt_lock);
    BOOST_TEST(!nothing.owns_lock());
    BOOST_TEST(m.try_lock());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_mutex_does_not_unlock_a_lock_that_is_owned, M, mutexes)
{
    asio::io_context io;
    M m(io);
    error_code ec;
    unique_lock lock(m, std::try_to_lock);
    m.unlock(ec);
    BOOST_TEST((ec == errc::not_locked));
    BOOST_TEST(m.is_locked());
    lock.release();
    m.unlock(ec);
    BOOST_TEST(!ec);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(has_no_mutex_after_that_is_destroyed, M, mutexes)
{
    asio::io_context io;
    auto m = std::make_unique<M>(io);
    unique_lock lock(*m, std::try_to_lock);
    unique_lock deferred(*m, std::defer_lock);
    m.reset();
    BOOST_TEST(lock.owns_lock());
    BOOST_TEST(!lock.mutex());
    BOOST_TEST(!lock.release());
    BOOST_TEST(!lock.owns_lock());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(unlocks_after_its_mutex_is_destroyed, M, mutexes)
{
    asio::io_context io;
    auto m = std::make_unique<M>(io);
    unique_lock lock(*m, std::try_to_lock);
    m.reset();
    lock.unlock();
    BOOST_CHECK_EXCEPTION(lock.unlock(), turnstile::system_error, is(errc::not_locked));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(shared_locks)

BOOST_AUTO_TEST_CASE_TEMPLATE(several_hold_the_mutex_together, M, shared_mutexes)
{
    asio::io_context io;
    M m(io);
    {
        shared_lock a(m, std::try_to_lock);
        const shared_lock b(m, std::try_to_lock);
        BOOST_TEST((a.owns_lock() && b.owns_lock()));
        BOOST_TEST(!m.try_lock());
        shared_lock<M> c(std::move(a));
        c.unlock();
        BOOST_TEST(m.is_locked_shared());
    }
    BOOST_TEST(!m.is_locked_shared());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_mutex_unlocks_only_locks_that_are_not_owned, M, shared_mutexes)
{
    asio::io_context io;
    M m(io);
    error_code ec;
    const shared_lock owned(m, std::try_to_lock);
    turnstile::upgrade_lock upgradable(m, std::try_to_lock);
    m.unlock_shared(ec);
    BOOST_TEST((ec == errc::not_locked));
    m.unlock_upgrade(ec);
    BOOST_TEST((ec == errc::not_locked));
    BOOST_TEST(m.try_lock_shared());
    m.unlock_shared(ec);
    BOOST_TEST(!ec);
    m.unlock_shared(ec);
    BOOST_TEST((ec == errc::not_locked));
    BOOST_TEST(upgradable.release() == &m);
    m.unlock_shared(ec);
    BOOST_TEST((ec == errc::not_locked), "the lock that was released is the upgradable one");
    m.unlock_upgrade(ec);
    BOOST_TEST(!ec);
    BOOST_TEST(m.is_locked_shared());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(has_no_mutex_after_that_is_destroyed, M, shared_mutexes)
{
    asio::io_context io;
    auto m = std::make_unique<M>(io);
    shared_lock a(*m, std::try_to_lock);
    shared_lock b(*m, std::try_to_lock);
    m.reset();
    BOOST_TEST(!a.mutex());
    BOOST_TEST(!a.release());
    b.unlock();
    BOOST_CHECK_THROW(b.unlock(), turnstile::system_error);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(upgrade_locks)

BOOST_AUTO_TEST_CASE(unlocks_when_it_goes_out_of_scope)
{
    asio::io_context io;
    turnstile::shared_mutex m(io);
    {
        const upgradable lock(m, std::try_to_lock);
        BOOST_TEST(lock.owns_lock());
        BOOST_TEST(bool(lock));
        BOOST_TEST(lock.mutex() == &m);
        const upgradable second(m, std::try_to_lock);
        BOOST_TEST(!second.owns_lock());
    }
    BOOST_TEST(!m.is_locked_upgrade());
}

BOOST_AUTO_TEST_CASE(moves_and_swaps_its_lock)
{
    asio::io_context io;
    turnstile::shared_mutex m(io);
    turnstile::shared_mutex n(io);
    upgradable a(m, std::try_to_lock);
    upgradable b(std::move(a));
    BOOST_TEST(!a.owns_lock());
    BOOST_TEST(b.owns_lock());
    upgradable c(n, std::try_to_lock);
    c.swap(b);
    BOOST_TEST(c.mutex() == &m);
    b = std::move(c); // unlocks n first
    BOOST_TEST(!n.is_locked_upgrade());
    BOOST_TEST(m.is_locked_upgrade());
    b = upgradable();
    BOOST_TEST(!m.is_locked_upgrade());
}

BOOST_AUTO_TEST_CASE(unlocks_early_and_only_once)
{
    asio::io_context io;
    turnstile::shared_mutex m(io);
    upgradable lock(m, std::try_to_lock);
    lock.unlock();
    BOOST_TEST(!m.is_locked_upgrade());
    BOOST_CHECK_EXCEPTION(lock.unlock(), turnstile::system_error,
                          [](const auto& e) { return e.code() == turnstile::errc::not_locked; });
    BOOST_CHECK_THROW(upgradable().unlock(), turnstile::system_error);
}

BOOST_AUTO_TEST_CASE(releases_and_adopts_without_unlocking)
{
    asio::io_context io;
    turnstile::shared_mutex m(io);
    upgradable lock(m, std::try_to_lock);
    BOOST_TEST(lock.release() == &m);
    BOOST_TEST(lock.mutex() == nullptr);
    BOOST_TEST(m.is_locked_upgrade());
    const upgradable adopted(m, std::adopt_lock);
    BOOST_TEST(adopted.owns_lock());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
