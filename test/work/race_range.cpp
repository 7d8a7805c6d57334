// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/all.hpp>
#include <turnstile/work/select.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;

#if TURNSTILE_SANITIZED
constexpr std::size_t many = 20'000;
#else
constexpr std::size_t many = 100'000;
#endif

asio::awaitable<std::size_t> returns(std::size_t value)
{
    co_await asio::post(asio::use_awaitable);
    co_return value;
}

auto many_operations()
{
    std::vector<std::function<asio::awaitable<std::size_t>()>> operations;
    for (std::size_t i = 0; i != many; ++i)
        operations.emplace_back([i] { return returns(i); });
    return operations;
}

BOOST_AUTO_TEST_SUITE(race_range)

BOOST_AUTO_TEST_CASE(all_of_many_operations_completes_in_linear_time)
{
    asio::io_context io;
    std::vector<std::size_t> values;
    ts::async_all(io.get_executor(), many_operations(),
                  [&](std::exception_ptr e, std::vector<std::size_t> v) {
                      BOOST_TEST(!e);
                      values = std::move(v);
                  });
    io.run();
    BOOST_TEST_REQUIRE(values.size() == many);
    BOOST_TEST(values.front() == 0u);
    BOOST_TEST(values.back() == many - 1);
}

BOOST_AUTO_TEST_CASE(a_select_of_many_operations_cancels_all_but_the_winner)
{
    asio::io_context io;
    std::optional<ts::select_result<std::size_t>> result;
    ts::async_select(io.get_executor(), many_operations(),
                     [&](std::exception_ptr e, ts::select_result<std::size_t> r) {
                         BOOST_TEST(!e);
                         result = r;
                     });
    io.run();
    BOOST_TEST_REQUIRE(result.has_value());
    BOOST_TEST(result->index == result->value);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
