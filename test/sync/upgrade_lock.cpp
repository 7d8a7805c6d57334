// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/shared_mutex.hpp>
#include <turnstile/sync/upgrade_lock.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <type_traits>
#include <utility>

namespace {

namespace asio = boost::asio;
using lock_type = turnstile::upgrade_lock<turnstile::shared_mutex>;

static_assert(!std::is_copy_constructible_v<lock_type>);
static_assert(std::is_nothrow_move_constructible_v<lock_type>);
static_assert(std::is_nothrow_move_assignable_v<lock_type>);
static_assert(std::is_same_v<lock_type, turnstile::shared_mutex::upgrade_lock_type>);

BOOST_AUTO_TEST_SUITE(upgrade_lock)

BOOST_AUTO_TEST_CASE(unlocks_when_it_goes_out_of_scope)
{
    asio::io_context io;
    turnstile::shared_mutex m(io);
    {
        const lock_type lock(m, std::try_to_lock);
        BOOST_TEST(lock.owns_lock());
        BOOST_TEST(bool(lock));
        BOOST_TEST(lock.mutex() == &m);
        const lock_type second(m, std::try_to_lock);
        BOOST_TEST(!second.owns_lock());
    }
    BOOST_TEST(!m.is_locked_upgrade());
}

BOOST_AUTO_TEST_CASE(moves_and_swaps_what_it_holds)
{
    asio::io_context io;
    turnstile::shared_mutex m(io);
    turnstile::shared_mutex n(io);
    lock_type a(m, std::try_to_lock);
    lock_type b(std::move(a));
    BOOST_TEST(!a.owns_lock());
    BOOST_TEST(b.owns_lock());
    lock_type c(n, std::try_to_lock);
    c.swap(b);
    BOOST_TEST(c.mutex() == &m);
    b = std::move(c); // lets go of n first
    BOOST_TEST(!n.is_locked_upgrade());
    BOOST_TEST(m.is_locked_upgrade());
    b = lock_type();
    BOOST_TEST(!m.is_locked_upgrade());
}

BOOST_AUTO_TEST_CASE(unlocks_early_and_only_once)
{
    asio::io_context io;
    turnstile::shared_mutex m(io);
    lock_type lock(m, std::try_to_lock);
    lock.unlock();
    BOOST_TEST(!m.is_locked_upgrade());
    BOOST_CHECK_EXCEPTION(lock.unlock(), turnstile::system_error,
                          [](const auto& e) { return e.code() == turnstile::errc::not_locked; });
    BOOST_CHECK_THROW(lock_type().unlock(), turnstile::system_error);
}

BOOST_AUTO_TEST_CASE(releases_and_adopts_without_unlocking)
{
    asio::io_context io;
    turnstile::shared_mutex m(io);
    lock_type lock(m, std::try_to_lock);
    BOOST_TEST(lock.release() == &m);
    BOOST_TEST(lock.mutex() == nullptr);
    BOOST_TEST(m.is_locked_upgrade());
    const lock_type adopted(m, std::adopt_lock);
    BOOST_TEST(adopted.owns_lock());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
