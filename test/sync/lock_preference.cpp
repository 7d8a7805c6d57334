// SPDX-License-Identifier: BSL-1.0
// The names of the preferences, and that a shared_mutex keeps its preference. Its effect on waiting
// readers and writers is tested in shared_mutex.cpp.
#include <turnstile/sync/lock_preference.hpp>
#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

namespace {

namespace asio = boost::asio;
using turnstile::lock_preference;
using turnstile::to_string;

static_assert(to_string(lock_preference::fair) == "fair");
static_assert(to_string(lock_preference::prefer_readers) == "prefer_readers");
static_assert(to_string(lock_preference::prefer_writers) == "prefer_writers");

BOOST_AUTO_TEST_SUITE(lock_preferences)

BOOST_AUTO_TEST_CASE(a_shared_mutex_is_fair_by_default)
{
    asio::io_context io;
    const turnstile::shared_mutex by_default(io);
    BOOST_TEST((by_default.preference() == lock_preference::fair));
    const turnstile::local::shared_mutex chosen(io, lock_preference::prefer_writers);
    BOOST_TEST((chosen.preference() == lock_preference::prefer_writers));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
