// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/operations.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/work/cache.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
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

template <class P>
using cache_of = ts::basic_cache<std::string, int, std::hash<std::string>,
                                 std::equal_to<std::string>, asio::any_io_executor, P>;
using options = ts::cache_options<std::string, int>;
using value_ptr = std::shared_ptr<const int>;

struct caller {
    error_code error;
    value_ptr value;
    kit::completion done{};
    asio::cancellation_signal signal{};
    auto handler()
    {
        return asio::bind_cancellation_slot(
            signal.slot(), [this, w = done.watched()](error_code ec, value_ptr v) mutable {
                w.called(ec);
                error = ec;
                value = std::move(v);
            });
    }
};

template <class P>
struct fixture {
    explicit fixture(const options& o = {}) : cache(std::in_place, io, o, load) {}
    void poll() { kit::poll_leaves_work(io); }

    kit::drained_context io;
    kit::scripted_operation load{io.get_executor()};
    std::optional<cache_of<P>> cache;
};

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

BOOST_AUTO_TEST_CASE_TEMPLATE(values_are_stored_found_and_removed, P, kit::policies)
{
    fixture<P> f;
    BOOST_TEST(!f.cache->peek("a"));
    f.cache->put("a", 1);
    f.cache->put("b", 2);
    f.cache->put("a", 3);
    BOOST_TEST(*f.cache->peek("a") == 3);
    BOOST_TEST(f.cache->contains("b"));
    BOOST_TEST(f.cache->size() == 2U);
    BOOST_TEST(f.cache->invalidate("a"));
    BOOST_TEST(!f.cache->invalidate("a"));
    BOOST_TEST(!f.cache->contains("a"));
    f.cache->put("c", 4);
    BOOST_TEST(f.cache->invalidate_if([](const std::string&, int v) { return v == 4; }) == 1U);
    BOOST_TEST(f.cache->contains("b"));
    BOOST_TEST(!f.cache->contains("c"));
    const value_ptr kept = f.cache->peek("b");
    f.cache->clear();
    BOOST_TEST(f.cache->size() == 0U);
    BOOST_TEST(*kept == 2);
    BOOST_TEST(f.cache->stats().loads == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_load_outlives_cancelled_callers, P, kit::policies)
{
    fixture<P> f;
    std::vector<caller> callers(100);
    for (caller& c : callers)
        f.cache->async_get("key", c.handler());
    f.poll();
    callers[0].signal.emit(asio::cancellation_type::total);
    f.poll();
    BOOST_TEST(callers[0].done.aborted());
    f.load.succeed(0, 7);
    f.poll();
    for (std::size_t i = 1; i != callers.size(); ++i)
        BOOST_TEST(callers[i].value == f.cache->peek("key"));
    BOOST_TEST(f.load.started() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(without_callers_the_load_is_cancelled_and_not_stored, P,
                              kit::policies)
{
    fixture<P> f;
    f.load.ignore_cancellation();
    caller first;
    f.cache->async_get("key", first.handler());
    f.poll();
    first.signal.emit(asio::cancellation_type::terminal);
    f.poll();
    BOOST_TEST(f.load.was_cancelled(0));
    caller second;
    f.cache->async_get("key", second.handler());
    BOOST_TEST(f.load.started() == 2U);
    f.load.succeed(0, 1); // it unwinds, too late
    f.poll();
    BOOST_TEST(!f.cache->contains("key"));
    f.load.succeed(1, 2);
    f.poll();
    BOOST_TEST(*second.value == 2);
    BOOST_TEST(*f.cache->peek("key") == 2);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_put_during_a_load_wins, P, kit::policies)
{
    fixture<P> f;
    caller c;
    f.cache->async_get("key", c.handler());
    f.cache->put("key", 9);
    f.load.succeed(0, 1);
    f.poll();
    BOOST_TEST(*c.value == 1);
    BOOST_TEST(*f.cache->peek("key") == 9);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_invalidation_during_a_load_wins, P, kit::policies)
{
    for (int how = 0; how != 3; ++how) {
        fixture<P> f;
        caller first;
        f.cache->async_get("key", first.handler());
        if (how == 0)
            BOOST_TEST(!f.cache->invalidate("key"));
        else if (how == 1)
            f.cache->clear();
        else
            f.cache->invalidate_if([](const std::string&, int) { return false; });
        caller second; // must not receive what was invalid before it came
        f.cache->async_get("key", second.handler());
        BOOST_TEST(f.load.started() == 2U);
        f.load.succeed(0, 1);
        f.poll();
        BOOST_TEST(!f.cache->contains("key"));
        f.load.succeed(1, 2);
        f.poll();
        BOOST_TEST(*first.value == 1);
        BOOST_TEST(*second.value == 2);
        BOOST_TEST(*f.cache->peek("key") == 2);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failure_reaches_all_callers_and_is_not_kept, P, kit::policies)
{
    fixture<P> f;
    std::vector<caller> callers(3);
    for (caller& c : callers)
        f.cache->async_get("key", c.handler());
    f.load.fail(0, ts::errc::closed);
    f.poll();
    for (const caller& c : callers)
        BOOST_TEST(c.error == ts::errc::closed);
    caller next;
    f.cache->async_get("key", next.handler());
    BOOST_TEST(f.load.started() == 2U);
    f.load.succeed(1, 1);
    f.poll();
    BOOST_TEST(*next.value == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_refresh_loads_although_there_is_a_value, P, kit::policies)
{
    fixture<P> f;
    f.cache->put("key", 1);
    caller refresher;
    f.cache->async_refresh("key", refresher.handler());
    BOOST_TEST(f.load.started() == 1U);
    caller reader;
    f.cache->async_get("key", reader.handler());
    f.poll();
    BOOST_TEST(*reader.value == 1);
    f.load.succeed(0, 2);
    f.poll();
    BOOST_TEST(*refresher.value == 2);
    BOOST_TEST(*f.cache->peek("key") == 2);
    caller failing;
    f.cache->async_refresh("key", failing.handler());
    f.load.fail(1, ts::errc::closed);
    f.poll();
    BOOST_TEST(failing.error == ts::errc::closed);
    BOOST_TEST(*f.cache->peek("key") == 2);
}

BOOST_AUTO_TEST_CASE(a_call_may_bring_its_loader)
{
    kit::drained_context io;
    ts::cache<int, int> cache(io);
    BOOST_CHECK_THROW((void)cache.async_get(1), ts::system_error);
    int loads = 0;
    const auto run = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != 3; ++i) {
            const auto v = co_await cache.async_get(1, [&](int key) -> asio::awaitable<int> {
                ++loads;
                co_return key + 1;
            });
            BOOST_TEST(*v == 2);
        }
        BOOST_CHECK_THROW(co_await cache.async_get(2,
                                                   []() -> asio::awaitable<int> {
                                                       throw std::logic_error("the load");
                                                       co_return 0;
                                                   }),
                          std::logic_error);
    };
    asio::co_spawn(io, run, asio::detached);
    kit::run(io);
    BOOST_TEST(loads == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_number_of_entries_is_bounded, P, kit::policies)
{
    for (const auto policy : {ts::eviction_policy::w_tiny_lfu, ts::eviction_policy::lru}) {
        for (const std::size_t most : {1U, 3U, 100U, 5000U}) {
            fixture<P> f({.max_entries = most, .policy = policy});
            for (int k = 0; k != 20'000; ++k) {
                f.cache->put(std::to_string(k), k);
                if (k % 1000 == 0)
                    BOOST_TEST(f.cache->size() <= most);
            }
            const ts::cache_stats s = f.cache->stats();
            BOOST_TEST(s.entries <= most);
            BOOST_TEST(s.entries + s.evicted == 20'000U);
            BOOST_TEST(s.entries > most / 2);
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_weight_is_bounded, P, kit::policies)
{
    fixture<P> f({.max_weight = 100, .weigher = [](const std::string&, int v) {
                      return static_cast<std::uint64_t>(v);
                  }});
    for (int k = 0; k != 1000; ++k) {
        f.cache->put(std::to_string(k), k % 40);
        BOOST_TEST(f.cache->stats().weight <= 100U);
    }
    f.cache->put("too heavy", 101);
    BOOST_TEST(!f.cache->contains("too heavy"));
    f.cache->put("weightless", 0);
    BOOST_TEST(f.cache->contains("weightless"));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(listeners_receive_removed_entries_with_the_cause, P, kit::policies)
{
    fixture<P> f({.max_entries = 2, .policy = ts::eviction_policy::lru});
    std::vector<std::string> seen;
    const auto id = f.cache->add_listener([&](const ts::cache_event<std::string, int>& e) {
        seen.push_back(e.key + "=" + std::to_string(*e.value) + " " +
                       std::string(ts::to_string(e.cause)));
        (void)f.cache->contains("a"); // a listener may use the cache
    });
    f.cache->put("a", 1);
    f.cache->put("a", 2);
    f.cache->put("b", 3);
    f.cache->put("c", 4);
    f.cache->invalidate("c");
    f.cache->clear();
    const std::vector<std::string> expected{"a=1 replaced", "a=2 evicted", "c=4 invalidated",
                                            "b=3 invalidated"};
    BOOST_TEST(seen == expected, boost::test_tools::per_element());
    BOOST_TEST(f.cache->remove_listener(id));
    f.cache->put("a", 1);
    f.cache->clear();
    BOOST_TEST(seen.size() == 4U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destruction_aborts_the_callers_and_cancels_the_loads, P,
                              kit::policies)
{
    fixture<P> f({.max_loads = 1});
    f.cache->put("b", 2);
    const value_ptr kept = f.cache->peek("b");
    caller c;
    caller queued;
    f.cache->async_get("key", c.handler());
    f.cache->async_get("other", queued.handler());
    f.poll();
    f.cache.reset();
    f.poll();
    BOOST_TEST(c.done.aborted());
    BOOST_TEST(queued.done.aborted());
    BOOST_TEST(f.load.was_cancelled(0));
    BOOST_TEST(*kept == 2);
}

BOOST_AUTO_TEST_CASE(options_that_break_their_rules_are_named)
{
    asio::io_context io;
    const auto problem = [&](const options& o) -> std::string {
        try {
            ts::cache<std::string, int> c(io, o);
        } catch (const ts::system_error& e) {
            BOOST_TEST(e.code() == ts::errc::invalid_argument);
            const std::string text = e.what();
            return text.substr(0, text.find_first_of(" ", text.find(' ') + 1));
        }
        return "none";
    };
    const auto weigher = [](const std::string&, int) { return std::uint64_t(1); };
    BOOST_TEST(problem({.max_entries = 0}) == "cache: max_entries");
    BOOST_TEST(problem({.max_weight = 5}) == "cache: max_weight");
    BOOST_TEST(problem({.weigher = weigher}) == "cache: max_weight");
    BOOST_TEST(problem({.max_weight = 0, .weigher = weigher}) == "cache: max_weight");
    BOOST_TEST(problem({.max_entries = 5, .max_weight = 5, .weigher = weigher}) ==
               "cache: max_entries");
    BOOST_TEST(problem({.ttl = -1s}) == "cache: ttl");
    BOOST_TEST(problem({.idle_ttl = -1s}) == "cache: idle_ttl");
    BOOST_TEST(problem({.jitter = 1}) == "cache: jitter");
    BOOST_TEST(problem({.jitter = -0.1}) == "cache: jitter");
    BOOST_TEST(problem({.refresh_ahead = -1s}) == "cache: refresh_ahead");
    BOOST_TEST(problem({.stale_while_revalidate = -1s}) == "cache: stale_while_revalidate");
    BOOST_TEST(problem({.stale_if_error = -1s}) == "cache: stale_if_error");
    BOOST_TEST(problem({.negative_ttl = -1s}) == "cache: negative_ttl");
    BOOST_TEST(problem({.load_timeout = 0s}) == "cache: load_timeout");
    BOOST_TEST(problem({.max_loads = 0}) == "cache: max_loads");
    BOOST_TEST(problem({.shards = 3}) == "cache: shards");
    BOOST_TEST(problem({.shards = 512}) == "cache: shards");
    BOOST_TEST(problem({.max_entries = 4, .shards = 8}) == "cache: shards");
    BOOST_TEST(problem({.max_entries = 8, .shards = 8}) == "none");
}

// Keys whose hashes collide, and keys and values whose functions throw or call the cache.
std::function<void()> hook;
void call_hook()
{
    if (hook)
        hook();
}
struct odd_key {
    int id = 0;
    explicit odd_key(int i) : id(i) {}
    odd_key(const odd_key& other) : id(other.id) { call_hook(); }
    ~odd_key() = default;
    bool operator==(const odd_key& other) const
    {
        call_hook();
        return id == other.id;
    }
};
struct odd_hash {
    std::size_t operator()(const odd_key&) const
    {
        call_hook();
        return 1;
    }
};
struct odd_value {
    int number = 0;
    std::function<void()>* on_destruction = nullptr;
    odd_value(int n = 0, std::function<void()>* f = nullptr) : number(n), on_destruction(f) {}
    odd_value(const odd_value& other) : number(other.number) { call_hook(); }
    ~odd_value()
    {
        if (on_destruction)
            (*on_destruction)();
    }
};
using odd_cache = ts::cache<odd_key, odd_value, odd_hash>;

BOOST_AUTO_TEST_CASE(user_code_that_throws_leaves_the_cache_whole)
{
    kit::drained_context io;
    kit::scripted_operation load(io.get_executor());
    odd_cache cache(io, {.max_entries = 10}, load);
    cache.put(odd_key(1), 1);
    cache.put(odd_key(2), 2);
    // Each call of user code throws in turn.
    const auto sweep = [&](auto f) {
        for (int k = 0; k != 100; ++k) {
            int calls = 0;
            hook = [&] {
                if (calls++ == k)
                    throw std::runtime_error("user code");
            };
            try {
                f();
            } catch (const std::runtime_error&) {
            }
            hook = nullptr;
            BOOST_TEST(cache.peek(odd_key(1))->number == 1);
            BOOST_TEST(cache.peek(odd_key(2))->number == 2);
            if (calls <= k)
                return;
        }
        BOOST_ERROR("endless");
    };
    const auto ignore = [](error_code, const auto&) {};
    sweep([&] { cache.put(odd_key(2), 2); });
    sweep([&] { (void)cache.peek(odd_key(1)); });
    sweep([&] { (void)cache.invalidate(odd_key(3)); });
    sweep([&] { cache.async_get(odd_key(1), ignore); });
    sweep([&] { cache.async_get_copy(odd_key(1), [](error_code, const odd_value&) {}); });
    kit::run(io);
    sweep([&] { cache.async_get(odd_key(3), ignore); });
    for (std::size_t i = 0; i != load.started(); ++i)
        load.succeed(i, 3);
    sweep([&] { kit::run(io); });
    BOOST_TEST(cache.stats().loading == 0U);
}

BOOST_AUTO_TEST_CASE(user_code_may_use_the_cache)
{
    kit::drained_context io;
    odd_cache cache(io, {.max_entries = 4, .policy = ts::eviction_policy::lru});
    int depth = 0;
    int destroyed = 0;
    hook = [&] {
        if (depth++ == 0) {
            cache.put(odd_key(100), 100);
            (void)cache.invalidate(odd_key(100));
        }
        --depth;
    };
    std::function<void()> on_destruction = [&] {
        ++destroyed;
        if (depth++ == 0)
            (void)cache.peek(odd_key(1));
        --depth;
    };
    for (int k = 0; k != 20; ++k)
        cache.put(odd_key(k), odd_value(k));
    BOOST_TEST(cache.size() <= 4U);
    hook = nullptr;
    ts::cache<int, std::shared_ptr<odd_value>> owners(io, {.max_entries = 2});
    for (int k = 0; k != 10; ++k)
        owners.put(k, std::make_shared<odd_value>(k, &on_destruction));
    owners.clear();
    BOOST_TEST(destroyed == 10);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
