// SPDX-License-Identifier: BSL-1.0
// Rare sequences of a resource pool: a grant, a creation or a check that ends at the same time as
// something else changes the pool.
#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/policies.hpp"
#include "kit/pool_backend.hpp"
#include "kit/run.hpp"

#include <turnstile/work/resource_pool.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using namespace std::chrono_literals;
using kit::behaviour;
using ts::error_code;
using options = ts::resource_pool_options;

template <class Threading>
struct fixture {
    using pool_type = kit::pool_of<Threading>;
    using lease = typename pool_type::lease_type;
    using operations = ts::resource_operations<kit::pool_backend::resource>;

    fixture() { kit::manual_clock::reset(); }

    void open(const options& o, operations functions)
    {
        pool.emplace(io, o, std::move(functions));
        poll();
    }
    void poll() { kit::poll_leaves_work(io); }
    void advance(ts::nanoseconds by)
    {
        kit::manual_clock::advance(io, by);
        poll();
    }
    void start(kit::completion& done, lease& to)
    {
        pool->async_acquire(done.handler([&to](lease l) { to = std::move(l); }));
    }
    lease acquire()
    {
        kit::completion done;
        lease l;
        start(done, l);
        poll();
        BOOST_TEST(done.succeeded());
        return l;
    }

    kit::drained_context io;
    kit::pool_backend backend{io};
    std::optional<pool_type> pool;
};

BOOST_AUTO_TEST_SUITE(resource_pool_edges)

// The state is kept by its handles: a leak checker finds it if the last one does not free it.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_grant_that_is_cancelled_after_the_pool_is_destroyed_ends_it, P,
                              kit::policies)
{
    fixture<P> f;
    f.open({.max_size = 1}, {.create = f.backend.create(), .close = f.backend.close()});
    auto held = f.acquire();
    asio::cancellation_signal signal;
    kit::completion waiter;
    f.pool->async_acquire(asio::bind_cancellation_slot(signal.slot(), waiter.handler([](auto) {})));
    f.poll();
    held.release(); // granted, and posted
    f.pool.reset();
    signal.emit(asio::cancellation_type::terminal);
    f.poll();
    BOOST_TEST(waiter.aborted());
    BOOST_TEST(f.backend.alive == 0);
    BOOST_TEST(f.backend.closes == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_oldest_resource_is_leased_after_its_check, P, kit::policies)
{
    fixture<P> f;
    f.open({.initial_size = 3, .bypass_window = 0s, .order = ts::reuse_order::oldest_first},
           {.create = f.backend.create(), .check = f.backend.check()});
    kit::completion done;
    typename fixture<P>::lease l;
    f.start(done, l);
    f.io.restart();
    for (int i = 0; i != 100 && f.io.poll_one() != 0; ++i)
        continue;
    BOOST_TEST(done.succeeded());
    BOOST_TEST(f.backend.checks == 1);
    BOOST_TEST((l && l->id == 1));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_creation_that_times_out_after_the_recovery_names_its_cause, P,
                              kit::policies)
{
    fixture<P> f;
    std::vector<behaviour> plans{behaviour::hangs, behaviour::succeeds, behaviour::fails};
    f.open({.create_timeout = 10s},
           {.create = [&]() -> asio::awaitable<kit::pool_backend::resource> {
               const behaviour how = plans.back();
               plans.pop_back();
               co_await f.backend.act(how);
               co_return kit::pool_backend::resource(f.backend, ++f.backend.created);
           }});
    std::vector<kit::completion> done(3);
    std::vector<typename fixture<P>::lease> leases(3);
    for (std::size_t i = 0; i != 3; ++i)
        f.start(done[i], leases[i]);
    f.poll();
    BOOST_TEST((done[0].error() == asio::error::connection_refused));
    BOOST_TEST(done[1].succeeded());
    f.advance(10s);
    BOOST_TEST((done[2].error() == ts::errc::timed_out));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_factory_that_throws_no_error_fails_all_the_same, P, kit::policies)
{
    fixture<P> f;
    f.open({.max_size = 1}, {.create = []() -> asio::awaitable<kit::pool_backend::resource> {
               throw boost::system::system_error(error_code());
               co_return co_await asio::awaitable<kit::pool_backend::resource>();
           }});
    kit::completion done;
    typename fixture<P>::lease l;
    f.start(done, l);
    f.poll();
    BOOST_TEST(done.done());
    BOOST_TEST((done.error() == ts::errc::operation_failed));
    BOOST_TEST((f.pool->last_error() == ts::errc::operation_failed));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_caller_that_does_not_wait_receives_the_cause_of_the_last_failure, P,
                              kit::policies)
{
    fixture<P> f;
    f.open({.min_size = 1}, {.create = f.backend.create()});
    auto held = f.acquire();
    f.backend.on_create = behaviour::fails;
    held.discard();
    f.poll();
    BOOST_TEST(f.pool->stats().is_down);
    kit::completion done;
    f.pool->async_acquire(0s, done.handler([](auto) {}));
    f.poll();
    BOOST_TEST((done.error() == asio::error::connection_refused));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_leak_is_reported_of_a_lease_that_did_not_wait, P, kit::policies)
{
    fixture<P> f;
    f.open({.max_size = 1, .leak_threshold = 30s}, {.create = f.backend.create()});
    f.acquire().release();
    f.advance(1min);
    const auto held = f.acquire();
    f.advance(30s);
    BOOST_TEST(f.pool->stats().overdue == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_returned_resource_is_checked_for_a_caller_whose_creation_hangs, P,
                              kit::policies)
{
    fixture<P> f;
    f.open({.create_timeout = 10s, .bypass_window = 0s},
           {.create = f.backend.create(), .check = f.backend.check()});
    auto held = f.acquire();
    f.backend.on_create = behaviour::hangs;
    kit::completion done;
    typename fixture<P>::lease l;
    f.start(done, l);
    f.poll();
    BOOST_TEST(f.backend.running == 1);
    held.release();
    f.poll();
    BOOST_TEST(done.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_pool_that_is_suspended_starts_no_creation, P, kit::policies)
{
    fixture<P> f;
    f.open({}, {.create = f.backend.create()});
    kit::completion done;
    typename fixture<P>::lease l;
    f.start(done, l);
    f.pool->suspend();
    f.poll();
    BOOST_TEST(f.backend.creations == 0);
    f.pool->resume();
    f.poll();
    BOOST_TEST(done.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
