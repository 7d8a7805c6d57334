// SPDX-License-Identifier: BSL-1.0
// Operations and results of async_select and async_all whose moves and constructors throw.
#include <turnstile/work/all.hpp>
#include <turnstile/work/select.hpp>
#include <turnstile/work/task_group.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;

std::string text_of(const std::exception_ptr& e)
{
    try {
        if (e)
            std::rethrow_exception(e);
    } catch (const std::exception& thrown) {
        return thrown.what();
    }
    return "success";
}

// An operation whose move constructor throws after a number of moves.
class fragile_operation {
public:
    explicit fragile_operation(int moves) noexcept : moves_(moves) {}
    fragile_operation(fragile_operation&& other) : moves_(other.moves_ - 1)
    {
        if (moves_ < 0)
            throw std::runtime_error("moved too often");
    }
    asio::awaitable<int> operator()() &&
    {
        return []() -> asio::awaitable<int> { co_return 1; }();
    }

private:
    int moves_;
};

asio::awaitable<int> one() { co_return 1; }

// Calls f(moves) for each number of moves until the operation itself starts.
template <class F>
void for_each_number_of_moves(F f)
{
    bool starts = false;
    for (int moves = 0; !starts; ++moves) {
        BOOST_TEST_CONTEXT("moves: " << moves)
        starts = f(moves) == "success";
        BOOST_TEST_REQUIRE(moves < 100);
    }
}

// A value whose default constructor can be made to throw.
struct fragile_value {
    fragile_value()
    {
        if (throws)
            throw std::runtime_error("no default");
    }
    explicit fragile_value(int) noexcept {}
    static inline bool throws = false;
};

BOOST_AUTO_TEST_SUITE(race_moves)

BOOST_AUTO_TEST_CASE(all_fails_if_a_move_of_an_operation_throws)
{
    for_each_number_of_moves([](int moves) {
        asio::io_context io;
        std::string result = "none";
        try {
            ts::async_all(io.get_executor(), one, fragile_operation(moves),
                          [&](std::exception_ptr e, std::tuple<int, int>) { result = text_of(e); });
        } catch (const std::runtime_error& e) {
            return std::string(e.what());
        }
        io.run();
        BOOST_TEST((result == "moved too often" || result == "success"));
        return result;
    });
}

BOOST_AUTO_TEST_CASE(select_takes_the_value_of_another_operation_if_a_move_throws)
{
    for_each_number_of_moves([](int moves) {
        asio::io_context io;
        std::size_t winner = 7;
        try {
            ts::async_select(io.get_executor(), fragile_operation(moves), one,
                             [&](std::exception_ptr e, std::variant<int, int> v) {
                                 BOOST_TEST(!e);
                                 winner = v.index();
                             });
        } catch (const std::runtime_error& e) {
            return std::string(e.what());
        }
        io.run();
        BOOST_TEST(winner < 2u);
        return std::string(winner == 0 ? "success" : "another");
    });
}

BOOST_AUTO_TEST_CASE(a_child_of_a_group_fails_if_a_move_of_its_operation_throws)
{
    for_each_number_of_moves([](int moves) {
        asio::io_context io;
        ts::task_group<> group(io);
        try {
            group.spawn(fragile_operation(moves));
        } catch (const std::runtime_error& e) {
            BOOST_TEST(group.stats().spawned == 0u);
            return std::string(e.what());
        }
        io.run();
        BOOST_TEST(group.stats().running == 0u);
        BOOST_TEST(group.errors().size() == group.stats().failed);
        return group.errors().empty() ? std::string("success") : text_of(group.errors().front());
    });
}

BOOST_AUTO_TEST_CASE(a_default_value_that_cannot_be_made_destroys_the_handler)
{
    asio::io_context io;
    const auto fails = []() -> asio::awaitable<fragile_value> {
        co_await asio::post(asio::use_awaitable);
        fragile_value::throws = true;
        throw std::runtime_error("failed");
    };
    auto owned = std::make_shared<int>();
    const std::weak_ptr<int> observer = owned;
    ts::async_select(io.get_executor(), fails,
                     [owned = std::move(owned)](std::exception_ptr, std::variant<fragile_value>) {
                         BOOST_ERROR("a handler was called without a value");
                     });
    BOOST_CHECK_EXCEPTION(io.run(), std::runtime_error, [](const std::runtime_error& e) {
        return std::string(e.what()) == "no default";
    });
    fragile_value::throws = false;
    BOOST_TEST(observer.expired());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
