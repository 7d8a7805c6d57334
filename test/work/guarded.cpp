// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/work/guarded.hpp>
#include <turnstile/work/shared_guarded.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;

template <class T, class P>
using guarded_of = turnstile::basic_guarded<T, asio::any_io_executor, P>;
template <class T, class P>
using shared_of = turnstile::basic_shared_guarded<T, asio::any_io_executor, P>;

using int_handle = turnstile::guarded<int>::lock_type;
using int_reader = turnstile::shared_guarded<int>::read_lock_type;
static_assert(!std::is_move_constructible_v<turnstile::guarded<int>>);
static_assert(!std::is_copy_constructible_v<int_handle>);
static_assert(std::is_nothrow_move_constructible_v<int_handle>);
static_assert(std::is_same_v<decltype(*std::declval<int_handle&>()), int&>);
static_assert(std::is_same_v<decltype(*std::declval<int_reader&>()), const int&>);
static_assert(std::is_same_v<decltype(std::declval<int_reader&>().get()), const int*>);

// Neither copyable nor movable; `alive` counts the objects.
struct pinned {
    pinned(int& count, int n) : alive(count), value(n) { ++alive; }
    pinned(const pinned&) = delete;
    pinned& operator=(const pinned&) = delete;
    ~pinned() { --alive; }
    int& alive;
    int value;
};

struct throwing {
    throwing() { throw std::runtime_error("no value"); }
};

BOOST_AUTO_TEST_SUITE(guarded)

BOOST_AUTO_TEST_CASE(the_sample_runs)
{
    asio::io_context io;
    turnstile::guarded<std::map<int, std::string>> names(io);
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            {
                auto locked = co_await names.async_lock();
                (*locked)[1] = "one";
            }
            auto again = co_await names.async_lock();
            BOOST_TEST(again->at(1) == "one");
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(!names.is_locked());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_value_is_constructed_in_place_from_the_arguments, P,
                              kit::policies)
{
    kit::drained_context io;
    int alive = 0;
    {
        guarded_of<pinned, P> g(io, alive, 7);
        shared_of<pinned, P> s(io.get_executor(), turnstile::lock_preference::prefer_writers, alive,
                               8);
        shared_of<pinned, P> t(io, alive, 9);
        BOOST_TEST(alive == 3);
        BOOST_TEST(g.try_lock()->value == 7);
        BOOST_TEST(s.try_read()->value == 8);
        BOOST_TEST(t.try_read()->value == 9);
        BOOST_TEST((s.preference() == turnstile::lock_preference::prefer_writers));
        BOOST_TEST((t.preference() == turnstile::lock_preference::fair));
    }
    BOOST_TEST(alive == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_exception_of_the_values_constructor_reaches_the_caller, P,
                              kit::policies)
{
    kit::drained_context io;
    BOOST_CHECK_THROW((guarded_of<throwing, P>(io)), std::runtime_error);
    BOOST_CHECK_THROW((shared_of<throwing, P>(io)), std::runtime_error);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handle_is_a_pointer_that_unlocks, P, kit::policies)
{
    kit::drained_context io;
    guarded_of<int, P> g(io, 1);
    auto a = g.try_lock();
    BOOST_TEST_REQUIRE(bool(a));
    BOOST_TEST(a.owns_lock());
    BOOST_TEST(g.is_locked());
    BOOST_TEST(!g.try_lock());
    *a = 2;
    auto b = std::move(a);
    BOOST_TEST(!a); // NOLINT(bugprone-use-after-move)
    BOOST_TEST((a.get() == nullptr));
    BOOST_TEST(*b.get() == 2);
    swap(a, b);
    BOOST_TEST(!b);
    error_code ec;
    b.unlock(ec);
    BOOST_TEST((ec == errc::not_locked));
    BOOST_CHECK_THROW(b.unlock(), turnstile::system_error);
    a.unlock(ec);
    BOOST_TEST(!ec);
    BOOST_TEST(!a);
    BOOST_TEST(!g.is_locked());
    a = g.try_lock();
    a.unlock();
    a = g.try_lock();
    a = {};
    BOOST_TEST(!g.is_locked());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waiters_are_served_in_order, P, kit::policies)
{
    kit::drained_context io;
    guarded_of<std::string, P> g(io);
    auto held = g.try_lock();
    completion all[3];
    for (int i = 0; i != 3; ++i)
        g.async_lock(all[i].handler([i](auto handle) { *handle += std::to_string(i); }));
    BOOST_TEST(g.waiting() == 3U);
    *held += "x";
    held.unlock();
    BOOST_TEST(!all[0].done(), "completed inside unlock");
    kit::run(io);
    BOOST_TEST(*g.try_lock() == "x012");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_value_lives_as_long_as_a_handle, P, kit::policies)
{
    int alive = 0;
    kit::drained_context io;
    std::optional<guarded_of<pinned, P>> g;
    g.emplace(io, alive, 1);
    auto handle = g->try_lock();
    completion waiting;
    g->async_lock(waiting.handler([](auto) {}));
    g.reset();
    kit::run(io);
    BOOST_TEST(waiting.aborted());
    BOOST_TEST(alive == 1);
    handle->value = 5;
    BOOST_TEST(handle->value == 5);
    handle.unlock();
    BOOST_TEST(alive == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_value_lives_as_long_as_the_last_reader, P, kit::policies)
{
    int alive = 0;
    kit::drained_context io;
    std::optional<shared_of<pinned, P>> g;
    g.emplace(io, alive, 1);
    auto first = g->try_read();
    auto second = g->try_read();
    g.reset();
    first.unlock();
    BOOST_TEST(alive == 1);
    BOOST_TEST(second->value == 1);
    second = {};
    BOOST_TEST(alive == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handle_may_outlive_object_and_context, P, kit::policies)
{
    int alive = 0;
    typename guarded_of<pinned, P>::lock_type handle;
    {
        asio::io_context io;
        guarded_of<pinned, P> g(io, alive, 3);
        handle = g.try_lock();
    }
    BOOST_TEST(handle->value == 3);
    handle.unlock();
    BOOST_TEST(alive == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(readers_share_and_writers_exclude, P, kit::policies)
{
    kit::drained_context io;
    shared_of<int, P> g(io, 1);
    auto first = g.try_read();
    auto second = g.try_read();
    BOOST_TEST_REQUIRE((first && second));
    BOOST_TEST(first.get() == second.get());
    BOOST_TEST(!g.try_lock());
    BOOST_TEST(g.is_locked_shared());
    BOOST_TEST(!g.is_locked());

    completion writer;
    completion reader;
    int read = 0;
    g.async_lock(writer.handler([](auto handle) { *handle = 2; }));
    g.async_read(reader.handler([&](auto handle) { read = *handle; }));
    BOOST_TEST(g.waiting() == 2U);
    BOOST_TEST(!g.try_read()); // the writer waits
    first.unlock();
    second.unlock();
    kit::run(io);
    BOOST_TEST(writer.before(reader));
    BOOST_TEST(read == 2);
    BOOST_TEST(bool(g.try_lock()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_a_writer_lets_the_readers_go, P, kit::policies)
{
    kit::drained_context io;
    shared_of<int, P> g(io, 1);
    auto held = g.try_read();
    asio::cancellation_signal signal;
    completion writer;
    completion reader;
    g.async_lock(asio::bind_cancellation_slot(signal.slot(), writer.handler([](auto) {})));
    g.async_read(reader.handler([](auto) {}));
    signal.emit(asio::cancellation_type::total);
    kit::run(io);
    BOOST_TEST(writer.aborted());
    BOOST_TEST(reader.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
