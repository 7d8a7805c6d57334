// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/watch.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using kit::dropping;
using turnstile::errc;
using turnstile::error_code;

template <class P, class T = int>
using watch_of = turnstile::basic_watch<T, asio::any_io_executor, P>;

static_assert(!std::is_move_constructible_v<turnstile::watch<int>>);

BOOST_AUTO_TEST_SUITE(watch)

BOOST_AUTO_TEST_CASE_TEMPLATE(has_the_latest_value_and_a_version, P, kit::policies)
{
    asio::io_context io;
    watch_of<P, std::string> w(io, 3U, 'a');
    const auto before = w.get();
    BOOST_TEST(*before == "aaa");
    BOOST_TEST(before.version() == 1U);
    BOOST_TEST(w.set("b") == 2U);
    BOOST_TEST(w.version() == 2U);
    BOOST_TEST(*w.get() == "b");
    BOOST_TEST(*before == "aaa"); // unchanged
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_change_grants_all_waiters, P, kit::policies)
{
    kit::drained_context io;
    watch_of<P> w(io, 1);
    std::vector<completion> all(200);
    for (const auto& c : all)
        w.async_wait_changed(1, c.handler([](auto now) {
            BOOST_TEST(*now == 3); // the latest when the handler runs
            BOOST_TEST(now.version() == 3U);
        }));
    BOOST_TEST(kit::poll_leaves_work(io));
    w.set(2);
    w.set(3);
    completion knows_two;
    w.async_wait_changed(2, knows_two.handler([](auto now) { BOOST_TEST(*now == 3); }));
    completion knows_all;
    w.async_wait_changed(3, knows_all.handler([](auto now) { BOOST_TEST(*now == 4); }));
    kit::poll_leaves_work(io);
    for (const auto& c : all)
        BOOST_TEST(c.succeeded());
    BOOST_TEST(knows_two.succeeded());
    BOOST_TEST(!knows_all.done());
    w.set(4);
    kit::run(io);
    BOOST_TEST(knows_all.succeeded());
}

// A watch that gets its last value and is closed between the two reads of a reader.
struct racing_writer {
    int looks = 0;
    bool has_written() { return looks++ != 0; }
};
struct racing_version {
    racing_writer& writer;
    std::uint64_t load(std::memory_order) const { return writer.has_written() ? 2 : 1; }
};
struct racing_end {
    racing_writer& writer;
    bool load(std::memory_order) const { return writer.has_written(); }
};

BOOST_AUTO_TEST_CASE(a_read_during_the_last_change_and_close_does_not_miss_the_value)
{
    racing_writer writer;
    const auto now =
        turnstile::detail::watch_decision(racing_version{writer}, racing_end{writer}, 1);
    BOOST_TEST(writer.looks == 2);
    BOOST_TEST(now.is_granted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_last_value_before_close_is_not_missed, P, kit::policies)
{
    kit::drained_context io;
    watch_of<P> w(io, 1);
    std::vector<int> seen;
    error_code end;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            auto now = w.get();
            for (;;) {
                seen.push_back(*now);
                auto [ec, next] = co_await w.async_wait_changed(
                    now.version(), asio::as_tuple(asio::use_awaitable));
                if (ec) {
                    end = ec;
                    co_return;
                }
                now = next;
            }
        },
        asio::detached);
    kit::poll_leaves_work(io);
    w.set(2);
    w.set(3);
    w.close();
    kit::run(io);
    BOOST_TEST((seen == std::vector<int>{1, 3}));
    BOOST_TEST((end == errc::closed));
    BOOST_TEST(w.is_closed());
    error_code ec;
    BOOST_TEST(w.set(4, ec) == 0U);
    BOOST_TEST((ec == errc::closed));
    BOOST_TEST(w.update([](int& v) { ++v; }, ec) == 0U);
    BOOST_TEST((ec == errc::closed));
    BOOST_CHECK_THROW(w.set(4), turnstile::system_error);
    BOOST_CHECK_THROW(w.update([](int& v) { ++v; }), turnstile::system_error);
    BOOST_TEST(*w.get() == 3);
    // A later wait still receives it.
    completion late;
    w.async_wait_changed(1, late.handler([](auto now) { BOOST_TEST(*now == 3); }));
    completion satisfied;
    w.async_wait_for([](int v) { return v == 3; }, satisfied.handler([](auto) {}));
    completion never;
    w.async_wait_for([](int v) { return v == 4; }, never.handler([](auto) {}));
    kit::run(io);
    BOOST_TEST(late.succeeded());
    BOOST_TEST(satisfied.succeeded());
    BOOST_TEST((never.error() == errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_earlier_value_is_put_back_without_a_copy, P, kit::policies)
{
    asio::io_context io;
    watch_of<P, std::string> w(io, "good");
    const auto good = w.get();
    w.set("bad");
    BOOST_TEST(w.set(good) == 3U);
    BOOST_TEST(w.get().get() == good.get());
    error_code ec;
    w.set(turnstile::shared_value<std::string, P>(), ec);
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_TEST(w.version() == 3U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_update_changes_a_copy, P, kit::policies)
{
    asio::io_context io;
    watch_of<P, std::string> w(io, "a");
    const auto before = w.get();
    BOOST_TEST(w.update([](std::string& s) { s += "b"; }) == 2U);
    BOOST_TEST(*w.get() == "ab");
    BOOST_TEST(*before == "a");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_update_that_was_overtaken_starts_anew, P, kit::policies)
{
    asio::io_context io;
    watch_of<P> w(io, 1);
    int calls = 0;
    w.update([&](int& v) {
        if (++calls == 1)
            w.set(10); // another writer, meanwhile
        v += 5;
    });
    BOOST_TEST(calls == 2);
    BOOST_TEST(*w.get() == 15);
    BOOST_TEST(w.version() == 3U);
}

struct fragile {
    explicit fragile(int v) : value(v) {}
    fragile(const fragile& other) : value(other.value)
    {
        if (value < 0)
            throw std::runtime_error("no copy");
    }
    int value;
};

BOOST_AUTO_TEST_CASE_TEMPLATE(an_exception_changes_nothing, P, kit::policies)
{
    asio::io_context io;
    watch_of<P, fragile> w(io, 1);
    const fragile bad(-1);
    BOOST_CHECK_THROW(w.set(bad), std::runtime_error);
    BOOST_CHECK_THROW(w.update([](fragile& f) {
        f.value = 7;
        throw std::runtime_error("no change");
    }),
                      std::runtime_error);
    BOOST_TEST(w.version() == 1U);
    BOOST_TEST(w.get()->value == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waits_for_a_value_that_satisfies_the_predicate, P, kit::policies)
{
    kit::drained_context io;
    watch_of<P> w(io, 1);
    int calls = 0;
    completion callback;
    w.async_wait_for(
        [&](int v) {
            ++calls;
            return v >= 3;
        },
        callback.handler([](auto now) {
            BOOST_TEST(*now == 5);
            BOOST_TEST(now.version() == 4U);
        }));
    int found = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            found = *co_await w.async_wait_for([](int v) { return v >= 2; });
        },
        asio::detached);
    BOOST_TEST(calls == 0); // not inside the initiating function
    kit::poll_leaves_work(io);
    BOOST_TEST(calls == 1);
    w.set(2);
    BOOST_TEST(calls == 1); // nor inside the change
    kit::poll_leaves_work(io);
    BOOST_TEST(calls == 2);
    BOOST_TEST(found == 2);
    w.set(3); // replaced before the predicate tested it
    w.set(5);
    kit::run(io);
    BOOST_TEST(calls == 3);
    BOOST_TEST(callback.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_predicate_runs_on_its_handlers_executor, P, kit::policies)
{
    kit::drained_context home;
    kit::drained_context elsewhere;
    watch_of<P> w(home, 1);
    int calls = 0;
    completion c;
    w.async_wait_for(
        [&](int v) {
            ++calls;
            return v == 2;
        },
        asio::bind_executor(elsewhere, c.handler([](auto) {})));
    // Or on the strand of a confined watch.
    const int at_home = P::is_confined ? 1 : 0;
    BOOST_TEST(kit::poll_leaves_work(home));
    BOOST_TEST(calls == at_home);
    BOOST_TEST(kit::poll_leaves_work(elsewhere));
    BOOST_TEST(calls == 1);
    w.set(2);
    kit::poll_leaves_work(home);
    BOOST_TEST(calls == 1 + at_home);
    BOOST_TEST(!c.done());
    kit::run(elsewhere);
    BOOST_TEST(calls == 2);
    BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_throwing_predicate_ends_only_its_own_wait, P, kit::policies)
{
    kit::drained_context io;
    watch_of<P> w(io, 1);
    const auto picky = [](int v) {
        if (v == 2)
            throw std::runtime_error("from a predicate");
        return v == 3;
    };
    completion before;
    completion broken;
    completion after;
    w.async_wait_for([](int v) { return v == 2; }, before.handler([](auto) {}));
    w.async_wait_for(picky, broken.handler([](auto) {}));
    w.async_wait_for([](int v) { return v == 2; }, after.handler([](auto) {}));
    bool caught = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            try {
                co_await w.async_wait_for(picky);
            } catch (const std::runtime_error&) {
                caught = true;
            }
        },
        asio::detached);
    kit::poll_leaves_work(io);
    w.set(2);
    kit::run(io);
    BOOST_TEST(before.succeeded());
    BOOST_TEST((broken.error() == errc::predicate_failed));
    BOOST_TEST(after.succeeded());
    BOOST_TEST(caught);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_predicate_may_destroy_the_watch, P, kit::policies)
{
    kit::drained_context io;
    std::optional<watch_of<P>> w;
    w.emplace(io.get_executor(), 1);
    completion callback;
    w->async_wait_for(
        [&](int) {
            w.reset();
            return false;
        },
        callback.handler([](auto) {}));
    kit::run(io);
    BOOST_TEST(callback.aborted());

    w.emplace(io.get_executor(), 1);
    error_code end;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const auto ends = [&](int) {
                w.reset();
                return false;
            };
            std::tie(end, std::ignore) =
                co_await w->async_wait_for(ends, asio::as_tuple(asio::use_awaitable));
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST((end == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_predicate_may_cancel_its_wait, P, kit::policies)
{
    for (const bool satisfied : {true, false}) {
        kit::drained_context io;
        watch_of<P> w(io, 1);
        completion callback;
        asio::cancellation_signal signal;
        w.async_wait_for(
            [&](int) {
                signal.emit(asio::cancellation_type::partial);
                return satisfied;
            },
            asio::bind_cancellation_slot(signal.slot(), callback.handler([](auto) {})));
        kit::run(io);
        BOOST_TEST(callback.aborted());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_strand_may_be_its_executor_or_a_handlers, P, kit::policies)
{
    using strand_type = asio::strand<asio::any_io_executor>;
    kit::drained_context io;
    const strand_type strand(io.get_executor());
    turnstile::basic_watch<int, strand_type, P> w(strand, 1);
    completion at_home;
    completion elsewhere;
    w.async_wait_for([](int v) { return v == 2; }, at_home.handler([](auto) {}));
    w.async_wait_for(
        [](int v) { return v == 2; },
        asio::bind_executor(strand_type(io.get_executor()), elsewhere.handler([](auto) {})));
    kit::poll_leaves_work(io);
    asio::post(strand, [&] { w.set(2); });
    kit::run(io);
    BOOST_TEST(at_home.succeeded());
    BOOST_TEST(elsewhere.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
