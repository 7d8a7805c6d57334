// SPDX-License-Identifier: BSL-1.0
// The time rules of a cache, on a manual clock.
#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/operations.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/work/cache.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using ts::error_code;
using namespace std::chrono_literals;

template <class P>
using timed_cache = ts::basic_cache<int, int, std::hash<int>, std::equal_to<int>,
                                    asio::any_io_executor, P, kit::manual_clock>;
using options = ts::cache_options<int, int>;

struct outcome {
    bool done = false;
    error_code error;
    int value = 0; // 0 if there is none
};

template <class P>
struct fixture {
    explicit fixture(options o) : cache((kit::manual_clock::reset(), io), o, load) {}

    // Starts a get, and runs what is ready.
    std::shared_ptr<outcome> get(int key)
    {
        auto result = std::make_shared<outcome>();
        cache.async_get(key, [result](error_code ec, const std::shared_ptr<const int>& v) {
            *result = {true, ec, v ? *v : 0};
        });
        poll();
        return result;
    }
    // The value that the cache has at once; 0 if it has to load.
    int now(int key)
    {
        const auto r = get(key);
        return r->done ? r->value : 0;
    }
    void succeed(int value)
    {
        load.succeed(load.started() - 1, value);
        poll();
    }
    void fail(error_code ec = ts::errc::closed)
    {
        load.fail(load.started() - 1, ec);
        poll();
    }
    void poll() { kit::poll_leaves_work(io); }
    void advance(ts::nanoseconds by) { kit::manual_clock::advance(io, by); }

    kit::drained_context io;
    kit::scripted_operation load{io.get_executor()};
    timed_cache<P> cache;
};

BOOST_AUTO_TEST_SUITE(cache_times)

BOOST_AUTO_TEST_CASE_TEMPLATE(an_entry_expires_exactly_at_its_ttl, P, kit::policies)
{
    fixture<P> f({.ttl = 10s});
    f.cache.put(1, 5);
    f.advance(10s - 1ns);
    BOOST_TEST(f.now(1) == 5);
    BOOST_TEST(f.cache.contains(1));
    f.advance(1ns);
    BOOST_TEST(!f.cache.contains(1));
    const auto r = f.get(1);
    BOOST_TEST(!r->done);
    f.succeed(6);
    BOOST_TEST(r->value == 6);
    BOOST_TEST(f.cache.stats().expired == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_ttl_of_a_loaded_value_begins_with_the_end_of_the_load, P,
                              kit::policies)
{
    fixture<P> f({.ttl = 10s});
    f.get(1);
    f.advance(20s);
    f.succeed(5);
    f.advance(10s - 1ns);
    BOOST_TEST(f.now(1) == 5);
    f.advance(1ns);
    BOOST_TEST(!f.cache.contains(1));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_idle_entry_expires_exactly_at_its_idle_ttl, P, kit::policies)
{
    fixture<P> f({.idle_ttl = 10s});
    f.cache.put(1, 5);
    f.advance(10s - 1ns);
    BOOST_TEST(f.now(1) == 5); // a use
    f.advance(10s - 1ns);
    BOOST_TEST(*f.cache.peek(1) == 5); // no use
    f.advance(1ns);
    BOOST_TEST(!f.cache.contains(1));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_function_of_the_value_sets_its_lifetime, P, kit::policies)
{
    fixture<P> f({.ttl = 1s, .lifetime_of = [](int, int v) {
                      return ts::cache_lifetime{.ttl = std::chrono::seconds(v), .idle_ttl = 5s};
                  }});
    f.cache.put(1, 3);
    f.cache.put(2, 100);
    f.advance(3s);
    BOOST_TEST(!f.cache.contains(1));
    BOOST_TEST(f.cache.contains(2));
    f.advance(2s);
    BOOST_TEST(!f.cache.contains(2)); // idle
}

BOOST_AUTO_TEST_CASE(jitter_shortens_lifetimes_by_random_parts)
{
    fixture<ts::thread_safe> f({.ttl = 100s, .jitter = 0.5});
    for (int k = 0; k != 1000; ++k)
        f.cache.put(k, 1);
    f.advance(50s - 1ns);
    const auto left = [&] {
        std::size_t n = 0;
        for (int k = 0; k != 1000; ++k)
            n += f.cache.contains(k) ? 1 : 0;
        return n;
    };
    BOOST_TEST(left() == 1000U);
    f.advance(25s);
    BOOST_TEST(left() > 400U);
    BOOST_TEST(left() < 600U);
    f.advance(25s + 1ns);
    BOOST_TEST(left() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_entry_is_refreshed_ahead_once_under_many_readers, P, kit::policies)
{
    fixture<P> f({.ttl = 10s, .refresh_ahead = 2s});
    f.cache.put(1, 5);
    f.advance(8s - 1ns);
    BOOST_TEST(f.now(1) == 5);
    BOOST_TEST(f.load.started() == 0U);
    f.advance(1ns);
    for (int i = 0; i != 100; ++i)
        BOOST_TEST(f.now(1) == 5);
    BOOST_TEST(f.load.started() == 1U);
    f.succeed(6);
    BOOST_TEST(f.now(1) == 6);
    BOOST_TEST(f.cache.stats().misses == 0U);
    f.advance(8s - 1ns);
    BOOST_TEST(f.now(1) == 6);
    BOOST_TEST(f.load.started() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_refresh_that_fails_leaves_the_value_until_it_expires, P,
                              kit::policies)
{
    fixture<P> f({.ttl = 10s, .refresh_ahead = 2s});
    f.cache.put(1, 5);
    f.advance(9s);
    BOOST_TEST(f.now(1) == 5);
    f.fail();
    BOOST_TEST(f.now(1) == 5); // starts another refresh
    BOOST_TEST(f.load.started() == 2U);
    f.advance(1s);
    const auto r = f.get(1); // joins it
    BOOST_TEST(f.load.started() == 2U);
    f.fail();
    BOOST_TEST(r->error == ts::errc::closed);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_stale_value_is_handed_out_while_it_is_loaded_again, P,
                              kit::policies)
{
    fixture<P> f({.ttl = 10s, .stale_while_revalidate = 5s});
    f.cache.put(1, 5);
    f.advance(10s);
    BOOST_TEST(f.now(1) == 5);
    BOOST_TEST(f.now(1) == 5);
    BOOST_TEST(!f.cache.contains(1)); // it has expired
    BOOST_TEST(f.load.started() == 1U);
    BOOST_TEST(f.cache.stats().stale_hits == 2U);
    f.advance(5s - 1ns);
    BOOST_TEST(f.now(1) == 5);
    f.advance(1ns);
    const auto r = f.get(1); // waits for the refresh
    BOOST_TEST(!r->done);
    BOOST_TEST(f.load.started() == 1U);
    f.succeed(6);
    BOOST_TEST(r->value == 6);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_stale_value_replaces_an_error_up_to_the_limit, P, kit::policies)
{
    fixture<P> f({.ttl = 10s, .stale_if_error = 5s});
    f.cache.put(1, 5);
    f.advance(10s);
    const auto first = f.get(1);
    BOOST_TEST(!first->done); // it loads first
    f.fail();
    BOOST_TEST(first->value == 5);
    BOOST_TEST(!first->error);
    BOOST_TEST(f.cache.stats().stale_errors == 1U);
    const auto second = f.get(1);
    f.advance(5s - 1ns);
    f.fail();
    BOOST_TEST(second->value == 5);
    const auto third = f.get(1);
    f.advance(1ns); // the limit passes while the load runs
    f.fail();
    BOOST_TEST(third->error == ts::errc::closed);
    const auto fourth = f.get(1);
    f.fail();
    BOOST_TEST(fourth->error == ts::errc::closed);
    BOOST_TEST(f.cache.size() == 0U);
}

// A value may expire while a refresh runs, so that further callers wait for the refresh.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_stale_value_replaces_the_error_of_a_refresh, P, kit::policies)
{
    for (const bool is_asked_for : {false, true}) {
        fixture<P> f({.ttl = 10s, .refresh_ahead = 2s, .stale_if_error = 5s});
        f.cache.put(1, 5);
        f.advance(9s);
        error_code refreshed;
        if (is_asked_for)
            f.cache.async_refresh(1, [&](error_code ec, const auto&) { refreshed = ec; });
        else
            BOOST_TEST(f.now(1) == 5);
        f.advance(1s);
        const auto joined = f.get(1);
        BOOST_TEST(!joined->done);
        BOOST_TEST(f.load.started() == 1U);
        f.fail();
        BOOST_TEST(joined->value == 5);
        if (is_asked_for)
            BOOST_TEST(refreshed == ts::errc::closed); // it has asked for a new value
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_invalidated_value_replaces_no_error, P, kit::policies)
{
    fixture<P> f({.ttl = 10s, .stale_if_error = 5s});
    f.cache.put(1, 5);
    f.advance(10s);
    const auto r = f.get(1);
    BOOST_TEST(f.cache.invalidate(1));
    f.fail();
    BOOST_TEST(r->error == ts::errc::closed);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(failures_are_kept_for_the_negative_ttl, P, kit::policies)
{
    fixture<P> f({.negative_ttl = 10s});
    const auto first = f.get(1);
    f.fail();
    BOOST_TEST(first->error == ts::errc::closed);
    BOOST_TEST(f.get(1)->error == ts::errc::closed);
    BOOST_TEST(!f.cache.contains(1));
    f.advance(10s - 1ns);
    BOOST_TEST(f.get(1)->error == ts::errc::closed);
    BOOST_TEST(f.load.started() == 1U);
    f.advance(1ns);
    const auto again = f.get(1);
    BOOST_TEST(f.load.started() == 2U);
    f.succeed(5);
    BOOST_TEST(again->value == 5);
    BOOST_TEST(f.now(1) == 5);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_failure_of_a_refresh_is_not_kept_instead_of_the_value, P,
                              kit::policies)
{
    fixture<P> f(
        {.ttl = 10s, .refresh_ahead = 2s, .stale_while_revalidate = 5s, .negative_ttl = 60s});
    f.cache.put(1, 5);
    f.cache.async_refresh(1, [](error_code, const auto&) {});
    f.fail();
    BOOST_TEST(f.cache.contains(1));
    f.advance(9s);
    BOOST_TEST(f.now(1) == 5);
    f.fail();
    BOOST_TEST(f.now(1) == 5);
    f.fail();
    f.advance(6s - 1ns);
    BOOST_TEST(f.now(1) == 5);
    f.advance(1ns);
    f.fail(); // now there is no value
    BOOST_TEST(f.get(1)->error == ts::errc::closed);
    BOOST_TEST(f.load.started() == 4U);
}

BOOST_AUTO_TEST_CASE(the_program_chooses_the_failures_that_are_kept)
{
    fixture<ts::thread_safe> f({.negative_ttl = 10s, .is_negative = [](const ts::failure& why) {
                                    return why.code() == ts::errc::too_large;
                                }});
    f.get(1);
    f.fail(ts::errc::closed);
    f.get(1);
    BOOST_TEST(f.load.started() == 2U);
    f.fail(ts::errc::too_large);
    f.get(1);
    BOOST_TEST(f.load.started() == 2U);
    f.cache.put(1, 3);
    BOOST_TEST(f.now(1) == 3);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_load_is_cancelled_at_its_timeout, P, kit::policies)
{
    fixture<P> f({.load_timeout = 3s});
    const auto r = f.get(1);
    f.advance(3s - 1ns);
    BOOST_TEST(!f.load.was_cancelled(0));
    f.advance(1ns);
    f.poll();
    BOOST_TEST(f.load.was_cancelled(0));
    BOOST_TEST(r->error == ts::errc::timed_out);
    BOOST_TEST(f.cache.stats().failed == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(loads_wait_for_a_place, P, kit::policies)
{
    fixture<P> f({.max_loads = 2});
    std::vector<std::shared_ptr<outcome>> all;
    for (int k = 0; k != 5; ++k)
        all.push_back(f.get(k));
    BOOST_TEST(f.load.started() == 2U);
    BOOST_TEST(f.cache.stats().loading == 5U);
    for (int k = 0; k != 5; ++k) {
        f.load.succeed(static_cast<std::size_t>(k), k + 1);
        f.poll();
    }
    for (int k = 0; k != 5; ++k)
        BOOST_TEST(all[static_cast<std::size_t>(k)]->value == k + 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_refresh_starts_after_the_destruction, P, kit::policies)
{
    kit::manual_clock::reset();
    kit::drained_context io;
    int loads = 0;
    std::optional<timed_cache<P>> cache(std::in_place, io, options{.ttl = 10s, .refresh_ahead = 2s},
                                        [&](int key) -> asio::awaitable<int> {
                                            ++loads;
                                            co_return key;
                                        });
    cache->put(1, 5);
    kit::manual_clock::advance(io, 9s);
    cache->async_get(1, [](error_code, const auto&) {}); // posts the start of a refresh
    cache.reset();
    kit::run(io);
    BOOST_TEST(loads == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(expired_entries_leave_the_table, P, kit::policies)
{
    fixture<P> f({.ttl = 10s, .shards = 1});
    for (int k = 0; k != 1000; ++k)
        f.cache.put(k, 1);
    f.advance(10s);
    BOOST_TEST(f.cache.size() == 1000U);
    for (int k = 0; k != 1000; ++k)
        f.cache.put(10'000 + k % 10, 1);
    BOOST_TEST(f.cache.size() < 100U); // each insertion has examined some
    f.advance(10s);
    f.cache.purge();
    BOOST_TEST(f.cache.size() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
