// SPDX-License-Identifier: BSL-1.0
// What a resource pool promises when callers storm it, when its operations fail or hang, and when
// it ends while all that happens.
#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/policies.hpp"
#include "kit/pool_backend.hpp"
#include "kit/run.hpp"

#include <turnstile/work/resource_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <optional>
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

    explicit fixture(const options& o) : fixture(o, nullptr) {}
    fixture(const options& o,
            ts::resource_operations<kit::pool_backend::resource> (*which)(kit::pool_backend&))
    {
        kit::manual_clock::reset();
        pool.emplace(io, o, which ? which(backend) : backend.operations());
        poll();
    }
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

BOOST_AUTO_TEST_SUITE(resource_pool_failures)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_storm_of_10000_acquirers_never_exceeds_the_maximum, P,
                              kit::policies)
{
    fixture<P> f({.max_size = 7, .max_uses = 13});
    int served = 0;
    for (int i = 0; i != 10'000; ++i) {
        asio::co_spawn(
            f.io,
            [&, i]() -> asio::awaitable<void> {
                auto l = co_await f.pool->async_acquire();
                co_await asio::post(asio::use_awaitable);
                if (i % 11 == 0)
                    l.discard();
                ++served;
            },
            asio::detached);
    }
    f.poll();
    BOOST_TEST(served == 10'000);
    BOOST_TEST(f.backend.most_alive == 7);
    BOOST_TEST(f.pool->stats().in_use == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_factory_that_fails_gives_its_place_back_and_the_next_waiter_tries,
                              P, kit::policies)
{
    for (const auto how :
         {behaviour::throws, behaviour::fails, behaviour::hangs, behaviour::is_deaf}) {
        fixture<P> f(
            {.max_size = 1, .create_timeout = 2s, .create_backoff = ts::backoff::constant(1s)});
        f.backend.on_create = how;
        kit::completion first;
        kit::completion second;
        typename fixture<P>::lease a;
        typename fixture<P>::lease b;
        f.pool->async_acquire(f.into(first, a));
        f.pool->async_acquire(f.into(second, b));
        f.poll();
        if (how == behaviour::hangs || how == behaviour::is_deaf) {
            BOOST_TEST(!first.done());
            f.advance(2s);
            BOOST_TEST((first.error() == ts::errc::timed_out));
        }
        BOOST_TEST(first.done());
        BOOST_TEST(!second.done());
        f.backend.on_create = behaviour::succeeds;
        f.advance(1s);
        BOOST_TEST(second.succeeded());
        BOOST_TEST(f.backend.running == (how == behaviour::is_deaf ? 1 : 0));
        f.backend.let_go(); // its late resource is destroyed
        f.poll();
        BOOST_TEST(f.backend.alive == 1);
        BOOST_TEST(f.pool->stats().size == 1U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_waiter_cancelled_during_a_creation_does_not_waste_the_resource, P,
                              kit::policies)
{
    fixture<P> f({});
    f.backend.on_create = behaviour::hangs;
    asio::cancellation_signal signal;
    kit::completion cancelled;
    f.pool->async_acquire(
        asio::bind_cancellation_slot(signal.slot(), cancelled.handler([](auto) {})));
    f.poll();
    signal.emit(asio::cancellation_type::terminal);
    f.poll();
    BOOST_TEST(cancelled.aborted());
    BOOST_TEST(f.backend.running == 1);
    f.backend.let_go();
    f.poll();
    BOOST_TEST(f.pool->stats().idle == 1U);
    BOOST_TEST(f.acquire()->id == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(with_all_idle_ones_broken_a_caller_gets_a_fresh_one_after_few_checks,
                              P, kit::policies)
{
    fixture<P> f({.initial_size = 10, .bypass_window = 0s});
    BOOST_TEST(f.backend.created == 10);
    f.backend.on_check = behaviour::says_no;
    BOOST_TEST(f.acquire()->id == 11);
    BOOST_TEST(f.backend.checks == 3);
    BOOST_TEST(f.backend.closes == 10);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_resource_whose_reset_hangs_is_discarded, P, kit::policies)
{
    for (const auto how : {behaviour::hangs, behaviour::is_deaf}) {
        fixture<P> f({.max_size = 1, .reset_timeout = 5s});
        f.backend.on_reset = how;
        f.acquire().release();
        kit::completion done;
        typename fixture<P>::lease l;
        f.pool->async_acquire(f.into(done, l));
        f.advance(5s - 1ns);
        BOOST_TEST(!done.done());
        f.advance(1ns);
        BOOST_TEST(done.succeeded());
        BOOST_TEST(l->id == 2);
        BOOST_TEST(f.pool->stats().evicted(eviction_reason::reset_failed) == 1U);
        f.backend.let_go();
        f.poll();
        BOOST_TEST(f.backend.alive == 1);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_resource_whose_reset_throws_is_discarded, P, kit::policies)
{
    fixture<P> f({.max_size = 1});
    f.backend.on_reset = behaviour::throws;
    f.acquire().release();
    f.poll();
    BOOST_TEST(f.backend.alive == 0);
    BOOST_TEST(f.backend.closes == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_close_that_hangs_gives_its_place_back, P, kit::policies)
{
    fixture<P> f({.max_size = 1, .close_timeout = 5s});
    f.backend.on_close = behaviour::hangs;
    f.acquire().discard();
    kit::completion done;
    typename fixture<P>::lease l;
    f.pool->async_acquire(f.into(done, l));
    f.advance(5s - 1ns);
    BOOST_TEST(!done.done());
    f.advance(1ns);
    BOOST_TEST(done.succeeded());
    BOOST_TEST(f.backend.alive == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(closing_tells_every_waiter_once, P, kit::policies)
{
    fixture<P> f({.max_size = 1});
    auto held = f.acquire();
    std::vector<kit::completion> waiters(100);
    for (auto& w : waiters)
        f.pool->async_acquire(1h, w.handler([](auto) {}));
    f.poll();
    f.pool->close();
    f.pool->close();
    f.poll();
    for (const auto& w : waiters)
        BOOST_TEST((w.error() == ts::errc::closed));
    held.release();
    f.poll();
    BOOST_TEST(f.backend.alive == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_lifetime_that_ends_while_leased_closes_on_return, P, kit::policies)
{
    fixture<P> f({.max_lifetime = 30min, .lifetime_jitter = 0});
    auto held = f.acquire();
    f.advance(30min);
    BOOST_TEST(f.backend.alive == 1);
    BOOST_TEST(held->id == 1);
    held.release();
    f.poll();
    BOOST_TEST(f.backend.alive == 0);
    BOOST_TEST(f.backend.closes == 1);
    BOOST_TEST(f.backend.resets == 0);
    BOOST_TEST(f.pool->stats().evicted(eviction_reason::max_lifetime) == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_pool_may_be_destroyed_with_leases_out_and_operations_running, P,
                              kit::policies)
{
    fixture<P> f({.max_size = 4, .initial_size = 2, .bypass_window = 0s});
    auto held = f.acquire();
    BOOST_TEST(f.pool->stats().idle == 1U);
    f.backend.on_check = behaviour::hangs;
    f.backend.on_create = behaviour::hangs;
    std::vector<kit::completion> waiters(3);
    for (auto& w : waiters)
        f.pool->async_acquire(w.handler([](auto) {}));
    f.poll();
    BOOST_TEST(f.backend.running == 3);
    f.pool.reset();
    f.poll();
    for (const auto& w : waiters)
        BOOST_TEST(w.aborted());
    BOOST_TEST(f.backend.running == 0);
    BOOST_TEST(f.backend.alive == 1);
    BOOST_TEST(held->id == 2);
    held.release();
    BOOST_TEST(f.backend.alive == 0);
    BOOST_TEST(f.backend.closes == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_granted_lease_that_is_not_delivered_dies_with_the_pool, P,
                              kit::policies)
{
    fixture<P> f({.max_size = 1},
                 [](kit::pool_backend& b) -> ts::resource_operations<kit::pool_backend::resource> {
                     return {.create = b.create()};
                 });
    auto held = f.acquire();
    kit::completion waiter;
    f.pool->async_acquire(waiter.handler([](auto) {}));
    f.poll();
    held.release(); // granted, and posted
    f.pool.reset();
    f.poll();
    BOOST_TEST(waiter.aborted());
    BOOST_TEST(f.backend.alive == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_granted_waiter_that_is_cancelled_passes_its_resource_on, P,
                              kit::policies)
{
    fixture<P> f({.max_size = 1},
                 [](kit::pool_backend& b) -> ts::resource_operations<kit::pool_backend::resource> {
                     return {.create = b.create()};
                 });
    auto held = f.acquire();
    asio::cancellation_signal signal;
    kit::completion first;
    kit::completion second;
    typename fixture<P>::lease l;
    f.pool->async_acquire(asio::bind_cancellation_slot(signal.slot(), first.handler([](auto) {})));
    f.pool->async_acquire(f.into(second, l));
    f.poll();
    held.release();
    signal.emit(asio::cancellation_type::total);
    f.poll();
    BOOST_TEST(first.aborted());
    BOOST_TEST(second.succeeded());
    BOOST_TEST(f.pool->stats().acquired == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(leases_outlive_the_context, P, kit::policies)
{
    auto io = std::make_unique<asio::io_context>();
    kit::pool_backend backend(*io); // destroyed after the context: its events allow that
    typename kit::pool_of<P>::lease_type lease;
    {
        kit::pool_of<P> pool(*io, {.initial_size = 3, .bypass_window = 0s}, backend.operations());
        io->poll();
        asio::co_spawn(
            *io, [&]() -> asio::awaitable<void> { lease = co_await pool.async_acquire(); },
            asio::detached);
        io->restart();
        io->poll();
        BOOST_TEST_REQUIRE(static_cast<bool>(lease));
        backend.on_check = behaviour::hangs;
        pool.async_acquire(asio::detached);
        io->restart();
        io->poll();
        BOOST_TEST(backend.running == 1);
    }
    io.reset();
    BOOST_TEST(backend.running == 0);
    BOOST_TEST(backend.alive == 1);
    lease.release();
    BOOST_TEST(backend.alive == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_context_may_be_destroyed_under_a_busy_pool, P, kit::policies)
{
    auto io = std::make_unique<asio::io_context>();
    kit::pool_backend backend(*io);
    kit::pool_of<P> pool(*io, {.max_size = 3, .initial_size = 2, .bypass_window = 0s},
                         backend.operations());
    io->poll();
    typename kit::pool_of<P>::lease_type lease;
    pool.async_acquire([&](error_code, auto l) { lease = std::move(l); });
    io->restart();
    io->poll();
    BOOST_TEST_REQUIRE(static_cast<bool>(lease));
    backend.on_create = backend.on_check = behaviour::hangs;
    for (int i = 0; i != 5; ++i)
        pool.async_acquire(1h, asio::detached);
    io->restart();
    io->poll();
    io.reset();
    BOOST_TEST(backend.alive == 1);
    lease.release();
    BOOST_TEST(backend.alive == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_at_any_step_loses_no_resource, P, kit::policies)
{
    for (int step = 0;; ++step) {
        fixture<P> f({.max_size = 2, .bypass_window = 0s});
        asio::cancellation_signal signal;
        kit::completion done;
        bool completed_alone = false;
        f.pool->async_acquire(
            asio::bind_cancellation_slot(signal.slot(), done.handler([](auto) {})));
        f.io.restart();
        for (int i = 0; i != step && f.io.poll_one() != 0; ++i)
            continue;
        completed_alone = done.done();
        signal.emit(asio::cancellation_type::terminal);
        f.poll();
        BOOST_TEST(done.done());
        const auto s = f.pool->stats();
        BOOST_TEST(s.in_use == 0U);
        BOOST_TEST(s.size == static_cast<std::size_t>(f.backend.alive));
        BOOST_TEST(static_cast<bool>(f.acquire()));
        if (completed_alone)
            break;
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
