// SPDX-License-Identifier: BSL-1.0
// Recognising the system executor, which starts threads when its context is queried.
#include "kit/completion.hpp"
#include "kit/run.hpp"

#include <turnstile/detail/post/system_executor.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::error_code;

BOOST_AUTO_TEST_SUITE(system_executor)

// An executor of the user whose query() returns its context as an execution_context.
struct opaque_executor {
    asio::io_context::executor_type inner;

    asio::execution_context& query(asio::execution::context_t) const noexcept
    {
        return asio::query(inner, asio::execution::context);
    }
    static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept
    {
        return asio::execution::blocking.never;
    }
    opaque_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    template <class F>
    void execute(F f) const
    {
        asio::require(inner, asio::execution::blocking.never).execute(std::move(f));
    }
    friend bool operator==(const opaque_executor&, const opaque_executor&) = default;
};

// The handler is posted without the object's context.
BOOST_AUTO_TEST_CASE(an_executor_of_the_user_is_not_taken_for_the_system_executor)
{
    kit::drained_context home;
    kit::drained_context away;
    turnstile::event e(home);
    completion c;
    e.async_wait(asio::bind_executor(opaque_executor{away.get_executor()}, c.handler([] {})));
    e.set();
    kit::run(away);
    BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE(the_system_executor_is_recognised_without_a_query_for_its_context)
{
    using turnstile::detail::is_system_executor;
    const asio::system_executor system;
    asio::io_context io;
    BOOST_TEST(is_system_executor(system));
    BOOST_TEST(is_system_executor(asio::any_io_executor(system)));
    BOOST_TEST(is_system_executor(
        asio::any_io_executor(asio::require(system, asio::execution::blocking.never))));
    BOOST_TEST(!is_system_executor(io.get_executor()));
    BOOST_TEST(!is_system_executor(asio::make_strand(io)));
    BOOST_TEST(!is_system_executor(asio::any_io_executor(asio::make_strand(io))));
    BOOST_TEST(!is_system_executor(asio::make_strand(system)));
    BOOST_TEST(!is_system_executor(opaque_executor{io.get_executor()}));
    BOOST_TEST(!is_system_executor(asio::any_io_executor(opaque_executor{io.get_executor()})));
    turnstile::detail::promise_executor* of_a_future = nullptr;
    using other_future = asio::associated_executor_t<asio::async_result<
        asio::use_future_t<>, void(error_code, std::unique_ptr<int>)>::completion_handler_type>;
    BOOST_TEST(turnstile::detail::may_be_system_executor<std::decay_t<decltype(*of_a_future)>>);
    BOOST_TEST(turnstile::detail::may_be_system_executor<other_future>);
}

#ifdef __linux__
BOOST_AUTO_TEST_CASE(a_handler_on_another_executor_starts_no_threads)
{
    const auto threads = [] {
        using entries = std::filesystem::directory_iterator;
        return std::distance(entries("/proc/self/task"), entries());
    };
    const auto before = threads();
    asio::io_context io;
    turnstile::mutex m(io);
    completion c;
    m.async_lock(asio::bind_executor(asio::make_strand(io), c.handler([](auto) {})));
    const auto future = m.async_lock(asio::use_future);
    kit::run(io);
    BOOST_TEST(c.succeeded());
    BOOST_TEST(threads() <= before); // a thread that has just ended may still be counted
}
#endif

BOOST_AUTO_TEST_SUITE_END()

} // namespace
