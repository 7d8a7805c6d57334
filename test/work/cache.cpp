// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/cache.hpp>

#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/operations.hpp"
#include "kit/run.hpp"

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using ts::error_code;
using namespace std::chrono_literals;

struct user {
    std::string name;
};

// As in the documentation of the layer.
asio::awaitable<user> load_user(std::string id)
{
    co_await asio::post(asio::use_awaitable);
    co_return user{"the name of " + id};
}

BOOST_AUTO_TEST_SUITE(cache)

BOOST_AUTO_TEST_CASE(a_missing_value_is_loaded_once_and_kept)
{
    kit::drained_context io;
    turnstile::cache<std::string, user> users(
        io, {.max_entries = 10'000, .ttl = 5min, .stale_if_error = 1h}, load_user);
    int seen = 0;
    const auto run = [&]() -> asio::awaitable<void> {
        std::shared_ptr<const user> u = co_await users.async_get("user:123");
        BOOST_TEST(u->name == "the name of user:123");
        const user copy = co_await users.async_get_copy("user:123");
        BOOST_TEST(copy.name == u->name);
        ++seen;
    };
    for (int i = 0; i != 100; ++i)
        asio::co_spawn(io, run, asio::detached);
    kit::run(io);
    BOOST_TEST(seen == 100);
    const ts::cache_stats s = users.stats();
    BOOST_TEST(s.loads == 1U);
    BOOST_TEST(s.misses == 100U);
    BOOST_TEST(s.hits == 100U);
    BOOST_TEST(users.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
