// SPDX-License-Identifier: BSL-1.0
#include "kit/policies.hpp"

#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/shared_mutex.hpp>
#include <turnstile/sync/unique_lock.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace {

namespace asio = boost::asio;
using turnstile::errc;
using turnstile::error_code;
using turnstile::unique_lock;

using mutexes = std::tuple<turnstile::mutex, turnstile::local::mutex, turnstile::shared_mutex,
                           turnstile::local::shared_mutex>;

static_assert(!std::is_copy_constructible_v<unique_lock<turnstile::mutex>>);
static_assert(std::is_nothrow_move_constructible_v<unique_lock<turnstile::mutex>>);
static_assert(std::is_nothrow_move_assignable_v<unique_lock<turnstile::mutex>>);
static_assert(sizeof(unique_lock<turnstile::mutex>) == 2 * sizeof(void*));

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

BOOST_AUTO_TEST_CASE_TEMPLATE(moves_and_swaps_what_it_holds, M, mutexes)
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

BOOST_AUTO_TEST_CASE_TEMPLATE(a_mutex_does_not_unlock_what_a_lock_owns, M, mutexes)
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

BOOST_AUTO_TEST_CASE_TEMPLATE(has_no_mutex_once_that_is_gone, M, mutexes)
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

BOOST_AUTO_TEST_CASE_TEMPLATE(unlocks_what_is_left_of_a_mutex, M, mutexes)
{
    asio::io_context io;
    auto m = std::make_unique<M>(io);
    unique_lock lock(*m, std::try_to_lock);
    m.reset();
    lock.unlock();
    BOOST_CHECK_EXCEPTION(lock.unlock(), turnstile::system_error, is(errc::not_locked));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
