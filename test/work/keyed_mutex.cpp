// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/work/keyed_mutex.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;

template <class P>
using mutex_of = turnstile::basic_keyed_mutex<std::string, std::hash<std::string>,
                                              std::equal_to<std::string>, asio::any_io_executor, P>;

static_assert(!std::is_move_constructible_v<turnstile::keyed_mutex<int>>);
static_assert(!std::is_copy_constructible_v<turnstile::keyed_lock<int>>);
static_assert(std::is_nothrow_move_constructible_v<turnstile::keyed_lock<int>>);
static_assert(std::is_nothrow_move_constructible_v<turnstile::keyed_lock_set<int>>);

const auto drop = [](auto) {};

// A key whose copy, hash and comparison throw on demand. All keys with equal `hash` collide.
struct fragile {
    static inline int throws_in = -1;
    static void step()
    {
        if (throws_in >= 0 && throws_in-- == 0)
            throw std::runtime_error("fragile");
    }

    explicit fragile(int n) : number(n) {}
    fragile(const fragile& other) : number(other.number) { step(); }
    fragile& operator=(const fragile&) = delete;

    struct hash_type {
        std::size_t operator()(const fragile&) const
        {
            step();
            return 1;
        }
    };
    bool operator==(const fragile& other) const
    {
        step();
        return number == other.number;
    }
    int number;
};

template <class P>
using fragile_mutex =
    turnstile::basic_keyed_mutex<fragile, fragile::hash_type, std::equal_to<fragile>,
                                 asio::any_io_executor, P>;

BOOST_AUTO_TEST_SUITE(keyed_mutex)

BOOST_AUTO_TEST_CASE(the_sample_runs)
{
    asio::io_context io;
    turnstile::keyed_mutex<std::string> locks(io);
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            auto lock = co_await locks.async_lock("user:123");
            BOOST_TEST(lock.key() == "user:123");
            BOOST_TEST(locks.is_locked("user:123"));
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(locks.size() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(keys_do_not_wait_for_each_other, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    auto a = m.try_lock("a");
    auto b = m.try_lock("b");
    BOOST_TEST((a && b));
    BOOST_TEST(m.size() == 2U);
    BOOST_TEST(!m.try_lock("a"));
    BOOST_TEST(m.is_locked("a"));
    BOOST_TEST(!m.is_locked("c"));
    BOOST_TEST(m.size() == 2U);
    a.unlock();
    BOOST_TEST(m.size() == 1U);
    BOOST_TEST(!m.is_locked("a"));
    BOOST_TEST(bool(m.try_lock("a")));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_lock_is_a_handle, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    typename mutex_of<P>::lock_type none;
    error_code ec;
    none.unlock(ec);
    BOOST_TEST((ec == errc::not_locked));
    BOOST_CHECK_THROW(none.unlock(), turnstile::system_error);
    auto a = m.try_lock("a");
    none = std::move(a);
    BOOST_TEST(!a.owns_lock()); // NOLINT(bugprone-use-after-move)
    BOOST_TEST(none.key() == "a");
    none = m.try_lock("b");
    BOOST_TEST(!m.is_locked("a"));
    none.unlock(ec);
    BOOST_TEST(!ec);
    BOOST_TEST(m.size() == 0U);

    typename mutex_of<P>::lock_set_type set;
    set.unlock(ec);
    BOOST_TEST((ec == errc::not_locked));
    BOOST_CHECK_THROW(set.unlock(), turnstile::system_error);
    set = m.try_lock_all({"a", "b"});
    auto moved = std::move(set);
    BOOST_TEST(!set); // NOLINT(bugprone-use-after-move)
    BOOST_TEST(moved.size() == 2U);
    moved.unlock();
    BOOST_TEST(m.size() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waiters_of_a_key_are_served_in_order, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    auto held = m.try_lock("a");
    auto other = m.try_lock("b");
    std::string order;
    completion a[3];
    completion b;
    for (int i = 0; i != 3; ++i)
        m.async_lock("a", a[i].handler([&order, i](auto) { order += std::to_string(i); }));
    m.async_lock("b", b.handler([&](auto) { order += "b"; }));
    BOOST_TEST(m.waiting() == 4U);
    BOOST_TEST(m.waiting("a") == 3U);
    BOOST_TEST(m.waiting("b") == 1U);
    BOOST_TEST(m.waiting("c") == 0U);
    other.unlock();
    kit::poll_leaves_work(io);
    BOOST_TEST(order == "b");
    held.unlock();
    BOOST_TEST(!a[0].done(), "completed inside unlock");
    BOOST_TEST(!m.try_lock("a"), "overtook a waiter");
    kit::run(io);
    BOOST_TEST(order == "b012");
    BOOST_TEST(m.size() == 0U);
    BOOST_TEST(m.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_waiter_leaves_the_queue_of_its_key, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    auto held = m.try_lock("a");
    asio::cancellation_signal signal;
    completion first;
    completion second;
    m.async_lock("a", asio::bind_cancellation_slot(signal.slot(), first.handler(drop)));
    m.async_lock("a", second.handler(drop));
    signal.emit(asio::cancellation_type::total);
    BOOST_TEST(m.waiting("a") == 1U);
    kit::poll_leaves_work(io);
    BOOST_TEST(first.aborted());
    held.unlock();
    kit::run(io);
    BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(locking_all_locks_each_key_once, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    completion c;
    const std::vector<std::string> keys{"b", "a", "b", "c", "a"};
    m.async_lock_all(keys, c.handler([&](auto locks) {
        BOOST_TEST(locks.size() == 3U);
        std::set<std::string> found;
        for (std::size_t i = 0; i != locks.size(); ++i)
            found.insert(locks.key(i));
        BOOST_TEST((found == std::set<std::string>{"a", "b", "c"}));
        BOOST_TEST(m.size() == 3U);
        BOOST_TEST(!m.try_lock("a"));
    }));
    kit::run(io);
    BOOST_TEST(c.succeeded());
    BOOST_TEST(m.size() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_empty_list_is_an_error_that_says_so, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    const std::vector<std::string> none;
    completion c;
    m.async_lock_all(none, c.handler(drop));
    kit::run(io);
    BOOST_TEST((c.error() == errc::invalid_argument));

    std::string thrown;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            try {
                auto locks = co_await m.async_lock_all(none);
            } catch (const turnstile::system_error& e) {
                thrown = e.what();
            }
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(thrown.find("list of keys must not be empty") != std::string::npos, thrown);

    error_code ec;
    BOOST_TEST(!m.try_lock_all(none, ec));
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_CHECK_THROW((void)m.try_lock_all(none), turnstile::system_error);
    BOOST_TEST(m.size() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(try_lock_all_takes_all_or_nothing, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    auto held = m.try_lock("b");
    error_code ec = errc::closed;
    BOOST_TEST(!m.try_lock_all({"a", "b", "c"}, ec));
    BOOST_TEST(!ec);
    BOOST_TEST(m.size() == 1U);
    held.unlock();
    auto all = m.try_lock_all({"a", "b", "c"});
    BOOST_TEST(all.size() == 3U);
    BOOST_TEST(!m.try_lock("c"));
}

// Two operations name the same keys in opposite orders, while another holds each of them.
BOOST_AUTO_TEST_CASE_TEMPLATE(opposite_orders_do_not_deadlock, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    auto a = m.try_lock("a");
    auto b = m.try_lock("b");
    completion one;
    completion two;
    m.async_lock_all({"a", "b"}, one.handler(drop));
    m.async_lock_all({"b", "a"}, two.handler(drop));
    BOOST_TEST(m.waiting() == 2U);
    b.unlock();
    kit::poll_leaves_work(io);
    BOOST_TEST(!one.done());
    a.unlock();
    kit::run(io);
    BOOST_TEST(one.succeeded());
    BOOST_TEST(two.succeeded());
    BOOST_TEST(m.size() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_half_way_hands_everything_over, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    auto a = m.try_lock("a"); // the nodes are numbered in the order a, b
    auto b = m.try_lock("b");
    asio::cancellation_signal signal;
    completion both;
    completion next;
    m.async_lock_all({"b", "a"}, asio::bind_cancellation_slot(signal.slot(), both.handler(drop)));
    m.async_lock("a", next.handler(drop));
    BOOST_TEST(m.waiting("a") == 2U);
    a.unlock(); // the first has a, and waits for b
    kit::poll_leaves_work(io);
    BOOST_TEST(m.waiting("a") == 1U);
    BOOST_TEST(m.waiting("b") == 1U);
    BOOST_TEST(!next.done());
    signal.emit(asio::cancellation_type::terminal);
    kit::poll_leaves_work(io);
    BOOST_TEST(both.aborted());
    BOOST_TEST(next.succeeded());
    BOOST_TEST(m.size() == 1U);
    b.unlock();
    BOOST_TEST(m.size() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destroying_the_mutex_half_way_leaves_the_handles_whole, P,
                              kit::policies)
{
    kit::drained_context io;
    std::optional<mutex_of<P>> m(std::in_place, io);
    auto a = m->try_lock("a");
    auto b = m->try_lock("b");
    completion both;
    m->async_lock_all({"a", "b"}, both.handler(drop));
    a.unlock();
    m.reset();
    kit::run(io);
    BOOST_TEST(both.aborted());
    BOOST_TEST(b.key() == "b");
    b.unlock();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(handles_may_outlive_mutex_and_context, P, kit::policies)
{
    typename mutex_of<P>::lock_type lock;
    typename mutex_of<P>::lock_set_type set;
    {
        asio::io_context io;
        mutex_of<P> m(io);
        lock = m.try_lock("a");
        set = m.try_lock_all({"b", "c"});
    }
    BOOST_TEST(lock.key() == "a");
    lock.unlock();
    BOOST_TEST(set.size() == 2U);
    set.unlock();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_that_was_not_started_may_outlive_the_mutex, P,
                              kit::policies)
{
    kit::drained_context io;
    std::optional<mutex_of<P>> m(std::in_place, io);
    auto deferred = m->async_lock("a", asio::deferred);
    auto copy = deferred;
    auto awaitable = m->async_lock("a");
    auto all = m->async_lock_all({"a", "b"}, asio::deferred);
    auto copy_of_all = all;
    BOOST_TEST(m->size() == 0U);
    completion c;
    std::move(copy)(c.handler(drop));
    completion d;
    std::move(copy_of_all)(d.handler(drop));
    kit::run(io);
    BOOST_TEST(c.succeeded());
    BOOST_TEST(d.succeeded());
    m.reset();
}

// Every copy, hash and comparison throws, one after the other; then the mutex is as before.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_key_that_throws_changes_nothing, P, kit::policies)
{
    kit::drained_context io;
    fragile_mutex<P> m(io);
    const fragile one(1);
    const fragile two(2);
    const fragile three(3);
    auto held = m.try_lock(one);
    auto second = m.try_lock(two);
    const auto sweep = [&](auto body) {
        for (int k = 0;; ++k) {
            BOOST_TEST_REQUIRE(k < 100);
            fragile::throws_in = k;
            try {
                body();
                fragile::throws_in = -1;
                return;
            } catch (const std::runtime_error&) {
            }
            fragile::throws_in = -1;
            BOOST_TEST(m.size() == 2U);
            BOOST_TEST(m.waiting() == 0U);
            BOOST_TEST(!m.is_locked(three));
        }
    };
    sweep([&] { BOOST_TEST(!m.try_lock(two)); });
    sweep([&] { BOOST_TEST(m.waiting(two) == 0U); });
    sweep([&] { BOOST_TEST(bool(m.try_lock(three))); });
    sweep([&] { BOOST_TEST(!m.try_lock_all({three, two, three})); });
    sweep([&] {
        completion c(kit::dropping::is_expected);
        m.async_lock(three, c.handler(drop));
        kit::poll_leaves_work(io);
        BOOST_TEST(c.succeeded());
    });
    sweep([&] {
        bool failed = false;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                try {
                    auto lock = co_await m.async_lock(three);
                } catch (const std::runtime_error&) {
                    failed = true;
                }
            },
            asio::detached);
        kit::run(io);
        if (failed)
            throw std::runtime_error("fragile");
    });
    held.unlock();
    second.unlock();
    BOOST_TEST(m.size() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(many_keys_at_a_time_are_found_again, P, kit::policies)
{
    kit::drained_context io;
    mutex_of<P> m(io);
    std::vector<typename mutex_of<P>::lock_type> all;
    for (int i = 0; i != 1000; ++i)
        all.push_back(m.try_lock(std::to_string(i)));
    BOOST_TEST(m.size() == 1000U);
    for (int i = 0; i != 1000; ++i)
        BOOST_TEST_REQUIRE(!m.try_lock(std::to_string(i)));
    all.clear();
    BOOST_TEST(m.size() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
