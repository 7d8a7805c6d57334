// SPDX-License-Identifier: BSL-1.0
// The clauses of resource_pool, with a manual clock.
#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/policies.hpp"
#include "kit/pool_backend.hpp"
#include "kit/run.hpp"

#include <turnstile/work/resource_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using namespace std::chrono_literals;
using kit::behaviour;
using ts::error_code;
using ts::eviction_reason;
using options = ts::resource_pool_options;

template <class Threading>
struct fixture {
    using pool_type = kit::pool_of<Threading>;
    using lease = typename pool_type::lease_type;

    fixture() { kit::manual_clock::reset(); }

    void open(const options& o) { open(o, backend.operations()); }
    void open(const options& o, ts::resource_operations<kit::pool_backend::resource> operations)
    {
        pool.emplace(io, o, std::move(operations));
        poll();
    }
    // Most tests are not about check, reset and close.
    void open_plain(const options& o) { open(o, {.create = backend.create()}); }
    void poll() { kit::poll_leaves_work(io); }
    void advance(ts::nanoseconds by)
    {
        kit::manual_clock::advance(io, by);
        poll();
    }
    auto into(kit::completion& done, lease& to)
    {
        return done.handler([&to](lease l) { to = std::move(l); });
    }
    // Acquires what can be had without the passing of time.
    lease acquire()
    {
        kit::completion done;
        lease l;
        pool->async_acquire(into(done, l));
        poll();
        BOOST_TEST(done.succeeded());
        return l;
    }

    kit::drained_context io;
    kit::pool_backend backend{io};
    std::optional<pool_type> pool;
};

BOOST_AUTO_TEST_SUITE(resource_pool)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_resource_is_created_for_a_caller_and_reused, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({});
    BOOST_TEST(f.backend.creations == 0);
    {
        auto first = f.acquire();
        BOOST_TEST(first->id == 1);
        BOOST_TEST(f.pool->stats().in_use == 1U);
    }
    BOOST_TEST(f.pool->stats().idle == 1U);
    auto second = f.acquire();
    BOOST_TEST((*second).id == 1);
    BOOST_TEST(second.get() == &*second);
    second.release();
    BOOST_TEST(!second);
    BOOST_TEST(second.get() == nullptr);
    BOOST_TEST(f.backend.created == 1);
    BOOST_TEST(f.pool->stats().acquired == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(minimum_and_initial_size_are_created_at_construction, P,
                              kit::policies)
{
    fixture<P> f;
    f.open_plain({.min_size = 2, .initial_size = 4});
    BOOST_TEST(f.backend.created == 4);
    BOOST_TEST(f.pool->stats().idle == 4U);
    f.pool->evict_idle();
    f.poll();
    BOOST_TEST(f.pool->stats().idle == 2U);
    BOOST_TEST(f.pool->stats().evicted(eviction_reason::requested) == 4U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waiters_are_served_in_order_by_direct_hand_over, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.max_size = 1});
    auto held = f.acquire();
    kit::completion first;
    kit::completion second;
    typename fixture<P>::lease a;
    typename fixture<P>::lease b;
    f.pool->async_acquire(f.into(first, a));
    f.pool->async_acquire(f.into(second, b));
    f.poll();
    BOOST_TEST(f.pool->waiting() == 2U);
    held.release();
    BOOST_TEST(!f.pool->try_acquire()); // the resource has been handed over
    f.poll();
    BOOST_TEST(first.succeeded());
    BOOST_TEST(!second.done());
    a.release();
    f.poll();
    BOOST_TEST(second.succeeded());
    BOOST_TEST(f.backend.created == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_caller_gives_up_at_its_limit, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.max_size = 1});
    const auto held = f.acquire();
    kit::completion done;
    typename fixture<P>::lease l;
    f.pool->async_acquire(500ms, f.into(done, l));
    f.advance(500ms - 1ns);
    BOOST_TEST(!done.done());
    f.advance(1ns);
    BOOST_TEST((done.error() == ts::errc::timed_out));
    BOOST_TEST(f.pool->stats().timed_out == 1U);
    // A limit of 0: now or never.
    kit::completion never;
    f.pool->async_acquire(0s, f.into(never, l));
    f.poll();
    BOOST_TEST((never.error() == ts::errc::timed_out));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(limits_may_pass_in_another_order_than_callers_arrive, P,
                              kit::policies)
{
    fixture<P> f;
    f.open_plain({.max_size = 1});
    auto held = f.acquire();
    kit::completion patient;
    kit::completion hasty;
    typename fixture<P>::lease a;
    typename fixture<P>::lease b;
    f.pool->async_acquire(2s, f.into(patient, a));
    f.pool->async_acquire(1s, f.into(hasty, b));
    f.advance(1s);
    BOOST_TEST((hasty.error() == ts::errc::timed_out));
    held.release();
    f.poll();
    BOOST_TEST(patient.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_number_of_waiters_is_bounded, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.max_size = 1, .max_waiters = 1});
    auto held = f.acquire();
    kit::completion first;
    kit::completion second;
    typename fixture<P>::lease l;
    f.pool->async_acquire(f.into(first, l));
    f.pool->async_acquire(f.into(second, l));
    f.poll();
    BOOST_TEST((second.error() == ts::errc::rejected));
    BOOST_TEST(f.pool->stats().rejected == 1U);
    held.release();
    f.poll();
    BOOST_TEST(first.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(try_acquire_takes_an_idle_resource_or_says_why, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.max_size = 1});
    error_code ec;
    BOOST_TEST(!f.pool->try_acquire(ec));
    BOOST_TEST((ec == ts::errc::rejected));
    f.acquire().release();
    auto l = f.pool->try_acquire(ec);
    BOOST_TEST(static_cast<bool>(l));
    BOOST_TEST(!ec);
    f.pool->close();
    BOOST_TEST(!f.pool->try_acquire(ec));
    BOOST_TEST((ec == ts::errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(resources_are_created_for_unmet_demand_only, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.max_size = 10, .max_creating = 2});
    f.backend.on_create = behaviour::hangs;
    std::vector<typename fixture<P>::lease> leases(3);
    std::vector<kit::completion> done(3);
    for (std::size_t i = 0; i != 3; ++i)
        f.pool->async_acquire(f.into(done[i], leases[i]));
    f.poll();
    BOOST_TEST(f.backend.running == 2);
    BOOST_TEST(f.pool->stats().creating == 2U);
    f.backend.let_go();
    f.poll();
    for (const auto& d : done)
        BOOST_TEST(d.succeeded());
    BOOST_TEST(f.backend.created == 3);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_stale_resource_is_checked_before_it_is_leased, P, kit::policies)
{
    fixture<P> f;
    f.open({.bypass_window = 1s}, {.create = f.backend.create(), .check = f.backend.check()});
    f.acquire().release();
    f.advance(1s - 1ns);
    f.acquire().release();
    BOOST_TEST(f.backend.checks == 0);
    f.advance(1s);
    BOOST_TEST(!f.pool->try_acquire());
    f.acquire().release();
    BOOST_TEST(f.backend.checks == 1);
    for (const auto how : {behaviour::says_no, behaviour::throws}) {
        f.advance(1s);
        f.backend.on_check = how;
        const int before = f.backend.created;
        f.acquire().release();
        BOOST_TEST(f.backend.created == before + 1);
    }
    BOOST_TEST(f.pool->stats().evicted(eviction_reason::check_failed) == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_check_that_hangs_ends_at_its_limit, P, kit::policies)
{
    fixture<P> f;
    f.open({.check_timeout = 3s, .bypass_window = 0s},
           {.create = f.backend.create(), .check = f.backend.check()});
    f.acquire().release();
    f.backend.on_check = behaviour::hangs;
    kit::completion done;
    typename fixture<P>::lease l;
    f.pool->async_acquire(f.into(done, l));
    f.advance(3s - 1ns);
    BOOST_TEST(!done.done());
    f.advance(1ns);
    BOOST_TEST(done.succeeded());
    BOOST_TEST(l->id == 2);
    BOOST_TEST(f.backend.running == 0); // the check was cancelled
    BOOST_TEST(f.backend.alive == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(idle_resources_are_checked_in_the_background, P, kit::policies)
{
    fixture<P> f;
    f.open({.min_size = 1, .check_interval = 1min},
           {.create = f.backend.create(), .check = f.backend.check()});
    f.advance(1min);
    BOOST_TEST(f.backend.checks == 1);
    f.backend.on_check = behaviour::says_no;
    f.advance(1min);
    BOOST_TEST(f.backend.created == 2); // the minimum is kept
    BOOST_TEST(f.pool->stats().idle == 1U);
    BOOST_TEST(f.backend.alive == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(idle_resources_are_closed_but_never_below_the_minimum, P,
                              kit::policies)
{
    fixture<P> f;
    f.open({.min_size = 1, .initial_size = 3, .idle_timeout = 10min});
    f.advance(10min - 1ns);
    BOOST_TEST(f.pool->stats().size == 3U);
    f.advance(1ns);
    BOOST_TEST(f.pool->stats().size == 1U);
    BOOST_TEST(f.backend.closes == 2);
    f.advance(1000h);
    BOOST_TEST(f.pool->stats().size == 1U);
    BOOST_TEST(f.backend.created == 3);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_lifetime_of_an_idle_resource_ends_at_its_time, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.min_size = 1, .max_lifetime = 30min, .lifetime_jitter = 0});
    f.advance(30min - 1ns);
    BOOST_TEST(f.backend.created == 1);
    f.advance(1ns);
    BOOST_TEST(f.backend.created == 2);
    BOOST_TEST(f.backend.alive == 1);
    BOOST_TEST(f.pool->stats().evicted(eviction_reason::max_lifetime) == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_resource_is_closed_after_its_uses, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.max_uses = 2});
    f.acquire().release();
    f.acquire().release();
    BOOST_TEST(f.backend.alive == 0);
    BOOST_TEST(f.pool->stats().evicted(eviction_reason::max_uses) == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_order_of_reuse_is_an_option, P, kit::policies)
{
    for (const auto order : {ts::reuse_order::newest_first, ts::reuse_order::oldest_first}) {
        fixture<P> f;
        f.open_plain({.order = order});
        auto a = f.acquire();
        auto b = f.acquire();
        a.release();
        b.release();
        BOOST_TEST(f.acquire()->id == (order == ts::reuse_order::newest_first ? 2 : 1));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(failed_creations_back_off_and_the_pool_recovers, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.min_size = 1, .create_backoff = ts::backoff::exponential(100ms)});
    BOOST_TEST(f.backend.created == 1);
    f.backend.on_create = behaviour::fails;
    f.pool->evict_idle();
    f.poll();
    BOOST_TEST(f.backend.creations == 2);
    BOOST_TEST((f.pool->last_error() == asio::error::connection_refused));
    f.advance(100ms - 1ns);
    BOOST_TEST(f.backend.creations == 2);
    f.advance(1ns);
    BOOST_TEST(f.backend.creations == 3);
    BOOST_TEST(f.pool->stats().is_down);
    f.backend.on_create = behaviour::succeeds;
    f.advance(200ms);
    BOOST_TEST(f.pool->stats().idle == 1U);
    BOOST_TEST(!f.pool->stats().is_down);
    BOOST_TEST(!f.pool->last_error());
    BOOST_TEST(f.pool->stats().failed == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(while_the_backend_is_down_callers_may_fail_fast_with_the_cause, P,
                              kit::policies)
{
    fixture<P> f;
    f.open_plain({.create_backoff = ts::backoff::constant(1s), .fail_fast = true});
    f.backend.on_create = behaviour::fails;
    std::vector<kit::completion> first(3);
    typename fixture<P>::lease l;
    for (auto& done : first)
        f.pool->async_acquire(f.into(done, l));
    f.poll();
    for (const auto& done : first)
        BOOST_TEST((done.error() == asio::error::connection_refused));
    const int creations = f.backend.creations;
    kit::completion refused;
    f.pool->async_acquire(f.into(refused, l));
    f.poll();
    BOOST_TEST((refused.error() == asio::error::connection_refused));
    error_code ec;
    BOOST_TEST(!f.pool->try_acquire(ec));
    BOOST_TEST((ec == asio::error::connection_refused));
    BOOST_TEST(f.backend.creations == creations);
    // After the delay the next caller is the probe.
    f.advance(1s);
    f.backend.on_create = behaviour::succeeds;
    BOOST_TEST(static_cast<bool>(f.acquire()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_limit_that_passes_while_the_backend_is_down_names_the_cause, P,
                              kit::policies)
{
    fixture<P> f;
    f.open_plain({.max_size = 1, .create_backoff = ts::backoff::constant(1min)});
    f.backend.on_create = behaviour::fails;
    kit::completion first;
    kit::completion second;
    typename fixture<P>::lease l;
    f.pool->async_acquire(1s, f.into(first, l));
    f.pool->async_acquire(1s, f.into(second, l));
    f.poll();
    BOOST_TEST((first.error() == asio::error::connection_refused));
    BOOST_TEST(!second.done()); // the next creation is for this one
    f.advance(1s);
    BOOST_TEST((second.error() == asio::error::connection_refused));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_is_thrown_the_exception_of_the_factory, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({});
    f.backend.on_create = behaviour::throws;
    std::string text;
    asio::co_spawn(
        f.io,
        [&]() -> asio::awaitable<void> {
            try {
                auto lease = co_await f.pool->async_acquire();
                static_cast<void>(lease);
            } catch (const std::exception& e) {
                text = e.what();
            }
        },
        asio::detached);
    f.poll();
    BOOST_TEST(text == "no resource");
    BOOST_TEST((f.pool->last_error() == ts::errc::operation_failed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_discarded_resource_is_closed, P, kit::policies)
{
    fixture<P> f;
    f.open({.max_size = 1}, {.create = f.backend.create(), .close = f.backend.close()});
    auto l = f.acquire();
    l.discard();
    BOOST_TEST(!l);
    l.discard(); // no effect
    f.poll();
    BOOST_TEST(f.backend.closes == 1);
    BOOST_TEST(f.backend.alive == 0);
    BOOST_TEST(f.acquire()->id == 2);
    BOOST_TEST(f.pool->stats().evicted(eviction_reason::discarded) == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_detached_resource_leaves_and_one_from_elsewhere_is_added, P,
                              kit::policies)
{
    fixture<P> f;
    f.open({.max_size = 1}, {.create = f.backend.create(), .close = f.backend.close()});
    auto l = f.acquire();
    auto resource = l.detach();
    BOOST_TEST(!l);
    BOOST_TEST(resource.id == 1);
    BOOST_TEST(f.pool->stats().size == 0U);
    BOOST_TEST(f.backend.alive == 1);
    BOOST_TEST(f.pool->try_add(std::move(resource)));
    BOOST_TEST(f.acquire()->id == 1);
    kit::pool_backend::resource other(f.backend, 7);
    BOOST_TEST(!f.pool->try_add(std::move(other)));
    BOOST_TEST(other.id == 7);
    BOOST_TEST(f.backend.closes == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_lease_is_moved_and_returned_once, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.max_size = 2});
    auto a = f.acquire();
    auto b = f.acquire();
    a = std::move(b);
    BOOST_TEST(a->id == 2);
    BOOST_TEST(!b);
    BOOST_TEST(f.pool->stats().in_use == 1U);
    auto& same = a;
    a = std::move(same);
    swap(a, b);
    BOOST_TEST(!a);
    BOOST_TEST(b->id == 2);
    static_assert(!std::is_copy_constructible_v<decltype(a)>);
    static_assert(std::is_nothrow_move_constructible_v<decltype(a)>);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_new_maximum_takes_effect_at_once, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.min_size = 1, .max_size = 1});
    auto held = f.acquire();
    kit::completion done;
    typename fixture<P>::lease l;
    f.pool->async_acquire(f.into(done, l));
    f.poll();
    BOOST_TEST(!done.done());
    f.pool->resize(2);
    f.poll();
    BOOST_TEST(done.succeeded());
    f.pool->resize(1);
    l.release();
    BOOST_TEST(f.backend.alive == 1);
    BOOST_TEST(f.pool->stats().evicted(eviction_reason::resized) == 1U);
    error_code ec;
    f.pool->resize(0, ec);
    BOOST_TEST((ec == ts::errc::invalid_argument));
    BOOST_CHECK_THROW(f.pool->resize(0), boost::system::system_error);
    BOOST_TEST(f.pool->max_size() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_suspended_pool_lets_its_callers_wait, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({});
    f.acquire().release();
    f.pool->suspend();
    BOOST_TEST(f.pool->is_suspended());
    kit::completion done;
    typename fixture<P>::lease l;
    f.pool->async_acquire(f.into(done, l));
    f.poll();
    BOOST_TEST(!done.done());
    BOOST_TEST(f.backend.creations == 1);
    f.pool->evict_idle(); // a failover
    f.pool->resume();
    f.poll();
    BOOST_TEST(done.succeeded());
    BOOST_TEST(l->id == 2);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(closing_waits_for_leases_and_closes_everything, P, kit::policies)
{
    fixture<P> f;
    f.open({});
    auto held = f.acquire();
    f.acquire().release();
    f.poll();
    kit::completion done;
    f.pool->async_close(done.handler([] {}));
    f.poll();
    BOOST_TEST(!done.done());
    BOOST_TEST(f.backend.closes == 1);
    held.release();
    f.poll();
    BOOST_TEST(done.succeeded());
    BOOST_TEST(f.backend.closes == 2);
    BOOST_TEST(f.backend.alive == 0);
    BOOST_TEST(f.pool->is_closed());
    kit::completion again;
    f.pool->async_close(again.handler([] {}));
    kit::completion late;
    f.pool->async_acquire(late.handler([](auto) {}));
    f.poll();
    BOOST_TEST(again.succeeded());
    BOOST_TEST((late.error() == ts::errc::closed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(closing_ends_at_its_deadline, P, kit::policies)
{
    fixture<P> f;
    f.open({.close_timeout = 1h});
    f.backend.on_close = behaviour::hangs;
    f.acquire().release();
    f.poll();
    kit::completion hung;
    f.pool->async_close(5s, hung.handler([] {}));
    f.advance(5s - 1ns);
    BOOST_TEST(!hung.done());
    f.advance(1ns);
    BOOST_TEST(hung.succeeded()); // the operation was cancelled, nothing is left
    BOOST_TEST(f.backend.alive == 0);

    fixture<P> g;
    g.open({});
    auto held = g.acquire();
    kit::completion leased;
    g.pool->async_close(5s, leased.handler([] {}));
    g.advance(5s);
    BOOST_TEST((leased.error() == ts::errc::timed_out));
    held.release();
    g.poll();
    BOOST_TEST(g.backend.closes == 1);
    BOOST_TEST(g.backend.alive == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_leak_is_reported_with_the_line_of_the_caller, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.leak_threshold = 30s});
    std::vector<ts::resource_pool_event> events;
    f.pool->add_listener([&](const ts::resource_pool_event& e) {
        if (e.kind == ts::resource_pool_event_kind::lease_overdue)
            events.push_back(e);
    });
    const auto waited = f.acquire();
    f.acquire().release();
    const auto tried = f.pool->try_acquire();
    const int line = __LINE__ - 1;
    f.advance(30s);
    BOOST_TEST_REQUIRE(events.size() == 2U);
    BOOST_TEST((events.back().held == 30s));
    BOOST_TEST(static_cast<int>(events.back().acquired_at.line()) == line);
    for (const auto& e : events)
        BOOST_TEST(std::strstr(e.acquired_at.file_name(), "resource_pool.cpp") != nullptr);
    BOOST_TEST(f.pool->stats().overdue == 2U);
    f.advance(30s);
    BOOST_TEST(events.size() == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(events_follow_the_life_of_a_resource, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.create_backoff = ts::backoff::constant(1s)});
    std::string log;
    f.pool->add_listener([&](const ts::resource_pool_event& e) {
        log += to_string(e.kind);
        if (e.kind == ts::resource_pool_event_kind::evicted)
            log += std::string(":") + std::string(to_string(e.reason));
        if (e.error)
            log += ":" + std::to_string(e.error.value());
        log += ' ';
        static_cast<void>(f.pool->stats()); // no lock is held
    });
    f.acquire().discard();
    f.backend.on_create = behaviour::fails;
    kit::completion failed;
    f.pool->async_acquire(failed.handler([](auto) {}));
    f.poll();
    f.backend.on_create = behaviour::succeeds;
    f.advance(1s);
    f.acquire().release();
    f.pool->close();
    f.poll();
    BOOST_TEST(log == "created evicted:discarded create_failed:" +
                          std::to_string(asio::error::connection_refused) +
                          " created recovered evicted:closed ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(statistics_have_the_percentiles_of_the_waits, P, kit::policies)
{
    fixture<P> f;
    f.open_plain({.max_size = 1});
    f.acquire().release();
    for (int i = 0; i != 8; ++i)
        f.acquire().release();
    auto held = f.acquire();
    kit::completion done;
    typename fixture<P>::lease l;
    f.pool->async_acquire(f.into(done, l));
    f.advance(80ms);
    BOOST_TEST(f.pool->stats().waiting == 1U);
    held.release();
    f.poll();
    const auto s = f.pool->stats();
    BOOST_TEST(s.acquired == 11U);
    BOOST_TEST((s.wait_median == 0s));
    BOOST_TEST((s.wait_p90 == 0s));
    BOOST_TEST((s.wait_p99 >= 80ms));
    BOOST_TEST((s.wait_p99 <= 90ms));
}

BOOST_AUTO_TEST_CASE(a_pool_without_a_factory_or_with_a_wrong_option_is_refused)
{
    asio::io_context io;
    kit::pool_backend backend(io);
    const auto refused = [](const boost::system::system_error& e) {
        return e.code() == ts::errc::invalid_argument;
    };
    using pool_type = ts::resource_pool<kit::pool_backend::resource>;
    BOOST_CHECK_EXCEPTION(pool_type(io, {}, {}), boost::system::system_error, refused);
    BOOST_CHECK_EXCEPTION(pool_type(io, {.max_size = 0}, backend.operations()),
                          boost::system::system_error, refused);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
