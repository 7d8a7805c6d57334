// SPDX-License-Identifier: BSL-1.0
// Several keys of a cache that are loaded by one operation.
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/work/cache.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using ts::error_code;
using values_type = std::vector<std::shared_ptr<const std::string>>;

template <class P>
using cache_of =
    ts::basic_cache<int, std::string, std::hash<int>, std::equal_to<int>, asio::any_io_executor, P>;

// Loads positive keys, and has the time of a few steps.
struct counted_load {
    std::vector<std::vector<int>>* calls;
    asio::awaitable<std::map<int, std::string>> operator()(const std::vector<int>& keys) const
    {
        calls->push_back(keys);
        for (int i = 0; i != 3; ++i)
            co_await asio::post(asio::use_awaitable);
        std::map<int, std::string> found;
        for (int k : keys) {
            if (k > 1000)
                throw std::runtime_error("the load");
            if (k > 0)
                found.emplace(k, std::to_string(k));
        }
        co_return found;
    }
};

template <class P>
struct fixture {
    kit::drained_context io;
    cache_of<P> cache{io};
    std::vector<std::vector<int>> calls;
    counted_load load{&calls};
};

BOOST_AUTO_TEST_SUITE(cache_bulk)

BOOST_AUTO_TEST_CASE_TEMPLATE(missing_keys_are_loaded_together, P, kit::policies)
{
    fixture<P> f;
    f.cache.put(2, "two");
    const std::vector<int> five{1, 2, -3, 4, 1};
    const std::vector<int> two{4, 1};
    const auto run = [&]() -> asio::awaitable<void> {
        const values_type v = co_await f.cache.async_get_all(five, f.load);
        BOOST_TEST_REQUIRE(v.size() == 5U);
        BOOST_TEST(*v[0] == "1");
        BOOST_TEST(*v[1] == "two");
        BOOST_TEST(!v[2]);
        BOOST_TEST(*v[3] == "4");
        BOOST_TEST(v[4] == v[0]);
        const values_type again = co_await f.cache.async_get_all(two, f.load);
        BOOST_TEST(again[0] == v[3]);
        const values_type none = co_await f.cache.async_get_all(std::vector<int>(), f.load);
        BOOST_TEST(none.empty());
    };
    asio::co_spawn(f.io, run, asio::detached);
    kit::run(f.io);
    BOOST_TEST_REQUIRE(f.calls.size() == 1U);
    const std::vector<int> expected{1, -3, 4};
    BOOST_TEST(f.calls[0] == expected, boost::test_tools::per_element());
    BOOST_TEST(f.cache.stats().loading == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(other_callers_join_a_bulk_load, P, kit::policies)
{
    fixture<P> f;
    int done = 0;
    const auto single = [](int) -> asio::awaitable<std::string> { co_return "single"; };
    f.cache.async_get_all(std::vector{1, -2}, f.load, [&](error_code ec, const values_type& v) {
        BOOST_TEST(!ec);
        BOOST_TEST(*v[0] == "1");
        ++done;
    });
    f.cache.async_get(1, single, [&](error_code ec, const auto& v) {
        BOOST_TEST(!ec);
        BOOST_TEST(*v == "1");
        ++done;
    });
    f.cache.async_get(-2, single, [&](error_code ec, const auto&) {
        BOOST_TEST(ec == asio::error::not_found);
        ++done;
    });
    f.cache.async_get_all(std::vector{1, 5}, f.load, [&](error_code, const values_type& v) {
        BOOST_TEST(*v[0] == "1");
        BOOST_TEST(*v[1] == "5");
        ++done;
    });
    kit::run(f.io);
    BOOST_TEST(done == 4);
    BOOST_TEST(f.calls.size() == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failure_of_the_bulk_load_is_thrown, P, kit::policies)
{
    fixture<P> f;
    bool thrown = false;
    const std::vector<int> keys{1, 2000};
    const auto run = [&]() -> asio::awaitable<void> {
        try {
            co_await f.cache.async_get_all(keys, f.load);
        } catch (const std::runtime_error&) {
            thrown = true;
        }
    };
    asio::co_spawn(f.io, run, asio::detached);
    kit::run(f.io);
    BOOST_TEST(thrown);
    BOOST_TEST(f.cache.size() == 0U);
    BOOST_TEST(f.cache.stats().failed == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_bulk_load_is_cancelled_with_its_last_caller, P, kit::policies)
{
    fixture<P> f;
    asio::cancellation_signal first;
    asio::cancellation_signal second;
    bool cancelled = false;
    const auto endless =
        [&](const std::vector<int>&) -> asio::awaitable<std::map<int, std::string>> {
        asio::steady_timer timer(f.io, asio::steady_timer::time_point::max());
        try {
            co_await timer.async_wait(asio::use_awaitable);
        } catch (const ts::system_error&) {
            cancelled = true;
        }
        co_return std::map<int, std::string>{};
    };
    kit::completion all;
    kit::completion one;
    f.cache.async_get_all(std::vector{1, 2}, endless,
                          asio::bind_cancellation_slot(first.slot(), all.handler([](auto) {})));
    f.cache.async_get(
        1, [](int) -> asio::awaitable<std::string> { co_return "1"; },
        asio::bind_cancellation_slot(second.slot(), one.handler([](auto) {})));
    kit::poll_leaves_work(f.io);
    first.emit(asio::cancellation_type::terminal);
    kit::poll_leaves_work(f.io);
    BOOST_TEST(all.aborted());
    BOOST_TEST(!cancelled);
    second.emit(asio::cancellation_type::terminal);
    kit::poll_leaves_work(f.io);
    BOOST_TEST(one.aborted());
    BOOST_TEST(cancelled);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_bulk_loader_may_throw_and_the_cache_may_go, P, kit::policies)
{
    kit::drained_context io;
    std::optional<cache_of<P>> cache(std::in_place, io);
    kit::completion failed;
    const auto throws = [](const std::vector<int>&) -> asio::awaitable<std::map<int, std::string>> {
        throw std::logic_error("no operation");
    };
    const auto wrong = [throws](const std::vector<int>& keys) {
        if (keys.size() == 1)
            throw std::logic_error("no operation");
        return throws(keys);
    };
    cache->async_get_all(std::vector{1}, wrong, failed.handler([](auto) {}));
    kit::poll_leaves_work(io);
    BOOST_TEST(failed.error() == ts::errc::operation_failed);
    kit::completion aborted;
    std::vector<std::vector<int>> calls;
    cache->async_get_all(std::vector{1, 2}, counted_load{&calls}, aborted.handler([](auto) {}));
    cache.reset();
    kit::run(io);
    BOOST_TEST(aborted.aborted());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
