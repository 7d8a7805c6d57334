// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/shared_lock.hpp>
#include <turnstile/sync/shared_mutex.hpp>

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
using turnstile::shared_lock;

using mutexes = std::tuple<turnstile::shared_mutex, turnstile::local::shared_mutex>;

static_assert(!std::is_copy_constructible_v<shared_lock<turnstile::shared_mutex>>);
static_assert(std::is_nothrow_move_constructible_v<shared_lock<turnstile::shared_mutex>>);
static_assert(sizeof(shared_lock<turnstile::shared_mutex>) == 2 * sizeof(void*));

BOOST_AUTO_TEST_SUITE(shared_locks)

BOOST_AUTO_TEST_CASE_TEMPLATE(several_hold_the_mutex_together, M, mutexes)
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

BOOST_AUTO_TEST_CASE_TEMPLATE(a_mutex_unlocks_only_what_no_lock_owns, M, mutexes)
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
    BOOST_TEST((ec == errc::not_locked), "it was the upgradable lock that was let go");
    m.unlock_upgrade(ec);
    BOOST_TEST(!ec);
    BOOST_TEST(m.is_locked_shared());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(has_no_mutex_once_that_is_gone, M, mutexes)
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

} // namespace
