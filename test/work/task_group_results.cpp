// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/run.hpp"

#include <turnstile/work/task_group.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using ts::error_code;

asio::awaitable<std::unique_ptr<int>> give(int n) { co_return std::make_unique<int>(n); }

asio::awaitable<std::unique_ptr<int>> failing()
{
    throw std::runtime_error("child");
    co_return nullptr;
}

template <class Group>
asio::awaitable<void> collect(Group& group, std::vector<int>& out, std::string& text)
{
    try {
        while (auto p = co_await group.async_next())
            out.push_back(**p);
        text = "none";
    } catch (const std::exception& e) {
        text = e.what();
    }
}

using result = std::unique_ptr<int>;
using groups = std::tuple<ts::task_group<result>, ts::local::task_group<result>>;

BOOST_AUTO_TEST_SUITE(task_group_results)

BOOST_AUTO_TEST_CASE_TEMPLATE(every_result_is_taken_once_under_a_limit, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.limit = 3});
    for (int i = 0; i != 100; ++i)
        group.spawn_when_free(give(i));
    kit::poll_leaves_work(io);
    BOOST_TEST(group.stats().results == 3U); // a result keeps its place
    BOOST_TEST(group.stats().queued == 97U);
    std::vector<int> got;
    std::string text;
    asio::co_spawn(io, collect(group, got, text), asio::detached);
    kit::run(io);
    BOOST_TEST(text == "none");
    BOOST_TEST(got.size() == 100U);
    std::sort(got.begin(), got.end());
    BOOST_TEST((std::unique(got.begin(), got.end()) == got.end()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(after_the_results_the_errors_are_reported, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.policy = ts::join_policy::wait_all});
    group.spawn(give(1));
    group.spawn(failing());
    group.spawn(give(2));
    std::vector<int> got;
    std::string text;
    asio::co_spawn(io, collect(group, got, text), asio::detached);
    kit::run(io);
    BOOST_TEST(text == "child");
    BOOST_TEST((got == std::vector<int>{1, 2}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_result_of_a_cancelled_wait_goes_to_the_next, Group, groups)
{
    kit::drained_context io;
    Group group(io);
    kit::completion first;
    kit::completion second;
    asio::cancellation_signal signal;
    group.spawn(give(7));
    BOOST_TEST(group.stats().running == 1U);
    group.async_next(
        asio::bind_cancellation_slot(signal.slot(), first.handler([](std::optional<result>) {})));
    group.async_next(second.handler([](std::optional<result> r) {
        BOOST_TEST_REQUIRE(r.has_value());
        BOOST_TEST(**r == 7);
    }));
    while (group.stats().results == 0)
        io.run_one(); // the first wait is granted, and not delivered
    signal.emit(asio::cancellation_type::total);
    kit::run(io);
    BOOST_TEST(first.aborted());
    BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_join_needs_no_taker_of_results, Group, groups)
{
    kit::drained_context io;
    Group group(io, {.limit = 1});
    for (int i = 0; i != 5; ++i)
        group.spawn_when_free(give(i));
    kit::completion joined;
    group.async_join(joined.handler([] {}));
    kit::run(io);
    BOOST_TEST(joined.succeeded());
    BOOST_TEST(group.stats().results == 5U);
    std::vector<int> got;
    std::string text;
    asio::co_spawn(io, collect(group, got, text), asio::detached);
    kit::run(io);
    BOOST_TEST((got == std::vector<int>{0, 1, 2, 3, 4}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
