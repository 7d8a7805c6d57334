// SPDX-License-Identifier: BSL-1.0
// The rules of a resource pool, step by step: times go in, actions come out.
#include <turnstile/work/detail/resource_pool_machine.hpp>

#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace ts = turnstile;
using namespace std::chrono_literals;
using ts::eviction_reason;
using ts::detail::pool_slot;
using ts::detail::pool_slot_ptr;
using ts::detail::resource_pool_machine;
using ts::detail::slot_phase;
using options = ts::resource_pool_options;
using ts::nanoseconds;

struct fixture : resource_pool_machine::observer {
    void on_event(const ts::resource_pool_event& e) noexcept override { events.push_back(e); }

    void make(const options& o, resource_pool_machine::abilities has = {})
    {
        machine = std::make_unique<resource_pool_machine>(o, has, *this, 1);
        plan();
    }
    void plan(std::size_t waiting = 0) { machine->plan(now, waiting); }
    // Begins a creation that was decided; null if none was.
    pool_slot* begin()
    {
        const pool_slot_ptr s(new pool_slot);
        return machine->begin_creation(*s, now) ? s.get() : nullptr;
    }
    // Decides and completes creations for callers.
    std::vector<pool_slot*> create(std::size_t n)
    {
        std::vector<pool_slot*> all;
        plan(n);
        while (pool_slot* const s = begin()) {
            machine->created(*s, now);
            all.push_back(s);
        }
        return all;
    }
    void give_back(pool_slot* s, bool used = true) { machine->give_back(*s, now, used); }
    // Carries out what follows a release.
    void drop_released()
    {
        ts::detail::slot_work_list list;
        machine->take_released(list);
        while (!list.empty()) {
            const pool_slot_ptr s(&list.front(), false);
            list.pop_front();
            machine->destroyed(s->keeps_place() ? 1 : 0);
            ++dropped;
        }
    }
    // The number of slots that were released since the last call.
    std::size_t released()
    {
        drop_released();
        return std::exchange(dropped, 0);
    }
    std::size_t size()
    {
        drop_released();
        return machine->size();
    }
    std::uint64_t evicted(eviction_reason why)
    {
        ts::resource_pool_stats s;
        machine->write(s);
        return s.evicted(why);
    }

    nanoseconds now = 1h;
    std::size_t dropped = 0;
    std::vector<ts::resource_pool_event> events;
    std::unique_ptr<resource_pool_machine> machine;
};

BOOST_FIXTURE_TEST_SUITE(resource_pool_machine_, fixture)

BOOST_AUTO_TEST_CASE(nothing_is_created_without_demand)
{
    make({.max_size = 3});
    BOOST_TEST(!machine->has_actions());
    BOOST_TEST(machine->take(now) == nullptr);
}

BOOST_AUTO_TEST_CASE(creations_cover_unmet_demand_and_no_more)
{
    make({.max_size = 10});
    plan(2);
    BOOST_TEST(size() == 2U);
    plan(2); // still the same two callers
    BOOST_TEST(size() == 2U);
    pool_slot* const a = begin();
    BOOST_TEST_REQUIRE(begin() != nullptr);
    BOOST_TEST(begin() == nullptr);
    machine->created(*a, now);
    BOOST_TEST(machine->take(now) == a);
    plan(1); // the other creation is for that one
    BOOST_TEST(!machine->has_creations());
}

BOOST_AUTO_TEST_CASE(the_maximum_bounds_creations)
{
    make({.max_size = 3});
    plan(10'000);
    BOOST_TEST(size() == 3U);
    BOOST_TEST(create(10'000).size() == 3U);
    plan(10'000);
    BOOST_TEST(!machine->has_creations());
}

BOOST_AUTO_TEST_CASE(the_minimum_and_the_initial_size_are_created_without_callers)
{
    make({.min_size = 2, .max_size = 5, .initial_size = 4});
    BOOST_TEST(size() == 4U);
    const auto all = create(0);
    BOOST_TEST(all.size() == 4U);
    // Only the minimum is filled up.
    for (int i = 0; i != 3; ++i)
        machine->discard(*machine->take(now), now);
    plan();
    BOOST_TEST(size() == 2U);
}

BOOST_AUTO_TEST_CASE(concurrent_creations_are_limited)
{
    make({.max_size = 10, .max_creating = 2});
    plan(10);
    BOOST_TEST(size() == 2U);
    pool_slot* const a = begin();
    machine->created(*a, now);
    plan(9);
    BOOST_TEST(size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_failed_creation_frees_its_place_and_delays_the_next)
{
    make({.max_size = 1, .create_backoff = ts::backoff::exponential(100ms)});
    plan(1);
    machine->creation_failed(*begin(), now, ts::errc::operation_failed);
    BOOST_TEST(released() == 1U);
    BOOST_TEST(size() == 0U);
    plan(1);
    BOOST_TEST(!machine->has_creations());
    BOOST_TEST((machine->wake_time() == now + 100ms));
    now += 100ms;
    plan(1);
    machine->creation_failed(*begin(), now, ts::errc::operation_failed);
    plan(1);
    BOOST_TEST((machine->wake_time() == now + 200ms));
    plan(0); // without demand there is nothing to wake for
    BOOST_TEST((machine->wake_time() == resource_pool_machine::never));
    now += 200ms;
    BOOST_TEST(create(1).size() == 1U);
    BOOST_TEST(!machine->is_down());
    BOOST_TEST((events.back().kind == ts::resource_pool_event_kind::recovered));
}

BOOST_AUTO_TEST_CASE(creations_that_fail_together_delay_once_and_one_probe_follows)
{
    make({.max_size = 3, .create_backoff = ts::backoff::exponential(100ms)});
    plan(3);
    pool_slot* const a = begin();
    pool_slot* const b = begin();
    pool_slot* const c = begin();
    for (pool_slot* const s : {a, b, c})
        machine->creation_failed(*s, now, ts::errc::operation_failed);
    plan(3);
    BOOST_TEST((machine->wake_time() == now + 100ms));
    now += 100ms;
    plan(3);
    BOOST_TEST(size() == 1U); // the probe
    machine->created(*begin(), now);
    BOOST_TEST(machine->take(now) != nullptr);
    plan(2);
    BOOST_TEST(size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_creation_that_hangs_loses_its_place_at_its_limit)
{
    make({.max_size = 1, .create_timeout = 2s});
    plan(1);
    pool_slot* const s = begin();
    BOOST_TEST((machine->wake_time() == now + 2s));
    now += 2s - 1ns;
    BOOST_TEST(machine->expire(now) == 0U);
    now += 1ns;
    BOOST_TEST(machine->expire(now) == 1U);
    BOOST_TEST((s->phase() == slot_phase::gone));
    BOOST_TEST(released() == 1U);
    BOOST_TEST(size() == 0U);
}

BOOST_AUTO_TEST_CASE(the_order_of_reuse)
{
    for (const auto order : {ts::reuse_order::newest_first, ts::reuse_order::oldest_first}) {
        make({.max_size = 2, .order = order});
        create(2);
        pool_slot* const a = machine->take(now);
        pool_slot* const b = machine->take(now);
        give_back(a);
        give_back(b);
        BOOST_TEST(machine->take(now) == (order == ts::reuse_order::newest_first ? b : a));
    }
}

BOOST_AUTO_TEST_CASE(a_slot_is_checked_after_the_bypass_window)
{
    make({.max_size = 1, .bypass_window = 500ms}, {.check = true});
    create(1);
    plan();
    now += 500ms - 1ns;
    pool_slot* const s = machine->take(now);
    BOOST_TEST_REQUIRE(s != nullptr);
    give_back(s);
    now += 500ms;
    BOOST_TEST(machine->take(now) == nullptr);
    plan(1);
    BOOST_TEST(machine->next_start() == s);
    BOOST_TEST((s->phase() == slot_phase::checking));
    machine->checked(*s, now, true);
    BOOST_TEST(machine->take(now) == s);
}

BOOST_AUTO_TEST_CASE(without_a_window_every_lease_is_checked_and_unlimited_checks_none)
{
    make({.max_size = 1, .bypass_window = 0s}, {.check = true});
    create(1);
    plan(); // no caller has taken the fresh one
    BOOST_TEST(machine->take(now) == nullptr);
    make({.max_size = 1, .bypass_window = options::unlimited}, {.check = true});
    create(1);
    now += 1000h;
    BOOST_TEST(machine->take(now) != nullptr);
}

BOOST_AUTO_TEST_CASE(after_three_failed_checks_in_a_row_the_idle_slots_are_replaced)
{
    make({.max_size = 10, .bypass_window = 0s}, {.check = true});
    create(10);
    for (int i = 0; i != 3; ++i) {
        plan(1);
        const pool_slot_ptr s = machine->next_start();
        BOOST_TEST_REQUIRE(s);
        BOOST_TEST(!machine->has_creations());
        machine->checked(*s, now, false);
    }
    BOOST_TEST(released() == 10U);
    BOOST_TEST(evicted(eviction_reason::check_failed) == 10U);
    plan(1);
    BOOST_TEST(machine->has_creations());
}

BOOST_AUTO_TEST_CASE(idle_slots_are_checked_in_the_background)
{
    make({.max_size = 1, .check_interval = 1min}, {.check = true});
    pool_slot* const s = create(1).front();
    BOOST_TEST((machine->wake_time() == now + 1min));
    now += 1min;
    machine->expire(now);
    BOOST_TEST(machine->next_start() == s);
    machine->checked(*s, now, true);
    BOOST_TEST((machine->wake_time() == now + 1min));
}

BOOST_AUTO_TEST_CASE(a_background_check_does_not_change_the_order_of_reuse)
{
    for (const auto order : {ts::reuse_order::newest_first, ts::reuse_order::oldest_first}) {
        make({.max_size = 2, .check_interval = 1min, .order = order}, {.check = true});
        create(2);
        pool_slot* const a = machine->take(now);
        pool_slot* const b = machine->take(now);
        give_back(a);
        now += 1s;
        give_back(b);
        now += 1min;
        machine->expire(now);
        const pool_slot_ptr first = machine->next_start();
        const pool_slot_ptr second = machine->next_start();
        BOOST_TEST_REQUIRE((first && second));
        for (pool_slot* const s : {b, a})
            machine->checked(*s, now, true);
        BOOST_TEST(machine->take(now) == (order == ts::reuse_order::newest_first ? b : a));
    }
}

BOOST_AUTO_TEST_CASE(idle_slots_are_closed_at_their_time_down_to_the_minimum)
{
    make({.min_size = 1, .max_size = 3, .idle_timeout = 10min});
    create(3);
    BOOST_TEST((machine->wake_time() == now + 10min));
    now += 10min - 1ns;
    machine->expire(now);
    BOOST_TEST(size() == 3U);
    now += 1ns;
    machine->expire(now);
    BOOST_TEST(size() == 1U);
    BOOST_TEST(evicted(eviction_reason::idle_timeout) == 2U);
    BOOST_TEST((machine->wake_time() == resource_pool_machine::never));
    // A second one makes the first one superfluous, which is idle for long.
    pool_slot* const used = machine->take(now);
    create(1);
    give_back(used);
    BOOST_TEST((machine->wake_time() == now + 10min));
}

BOOST_AUTO_TEST_CASE(a_lifetime_ends_while_idle_and_while_leased)
{
    make({.max_size = 2, .max_lifetime = 30min, .lifetime_jitter = 0});
    create(2);
    pool_slot* const leased = machine->take(now);
    BOOST_TEST((machine->wake_time() == now + 30min));
    now += 30min;
    machine->expire(now);
    BOOST_TEST(released() == 1U);
    BOOST_TEST(size() == 1U);
    give_back(leased);
    BOOST_TEST(released() == 1U);
    BOOST_TEST(evicted(eviction_reason::max_lifetime) == 2U);
}

BOOST_AUTO_TEST_CASE(the_jitter_shortens_lifetimes_by_different_times)
{
    make({.max_size = 100, .max_lifetime = 100min, .lifetime_jitter = 0.5});
    create(100);
    const nanoseconds start = now;
    now = start + 50min - 1ns;
    machine->expire(now);
    BOOST_TEST(size() == 100U);
    now = start + 75min;
    machine->expire(now);
    BOOST_TEST(size() > 30U);
    BOOST_TEST(size() < 70U);
    now = start + 100min;
    machine->expire(now);
    BOOST_TEST(size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_slot_is_closed_after_its_uses)
{
    make({.max_size = 1, .max_uses = 2});
    create(1);
    pool_slot* const s = machine->take(now);
    give_back(s, false); // was not used
    BOOST_TEST(machine->take(now) == s);
    give_back(s);
    BOOST_TEST(machine->take(now) == s);
    give_back(s);
    BOOST_TEST(evicted(eviction_reason::max_uses) == 1U);
    BOOST_TEST(size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_returned_slot_is_reset_and_one_that_hangs_is_discarded)
{
    make({.max_size = 1, .reset_timeout = 5s}, {.reset = true, .close = true});
    create(1);
    pool_slot* s = machine->take(now);
    give_back(s);
    BOOST_TEST(machine->next_start() == s);
    plan(1);
    BOOST_TEST(!machine->has_creations()); // it will be available
    machine->reset_ended(*s, now, true);
    BOOST_TEST(machine->take(now) == s);
    give_back(s);
    machine->next_start();
    now += 5s;
    machine->expire(now);
    BOOST_TEST(released() == 1U); // without the operation close
    BOOST_TEST(evicted(eviction_reason::reset_failed) == 1U);
    plan(1);
    BOOST_TEST(machine->has_creations());
}

BOOST_AUTO_TEST_CASE(a_slot_counts_until_it_is_closed)
{
    make({.max_size = 1, .close_timeout = 5s}, {.close = true});
    create(1);
    pool_slot* const s = machine->take(now);
    machine->discard(*s, now);
    BOOST_TEST(machine->next_start() == s);
    plan(1);
    BOOST_TEST(!machine->has_creations());
    now += 5s;
    machine->expire(now);
    plan(1);
    BOOST_TEST(machine->has_creations());
}

BOOST_AUTO_TEST_CASE(a_slot_counts_until_its_resource_is_destroyed)
{
    make({.max_size = 1});
    create(1);
    machine->discard(*machine->take(now), now);
    plan(1);
    BOOST_TEST(!machine->has_creations());
    BOOST_TEST(released() == 1U);
    plan(1);
    BOOST_TEST(machine->has_creations());
}

BOOST_AUTO_TEST_CASE(a_smaller_maximum_closes_idle_slots_and_later_those_returned)
{
    make({.min_size = 1, .max_size = 4});
    create(4);
    pool_slot* const a = machine->take(now);
    pool_slot* const b = machine->take(now);
    BOOST_TEST(machine->resize(1, now));
    BOOST_TEST(size() == 2U);
    give_back(a);
    BOOST_TEST(size() == 1U);
    give_back(b);
    BOOST_TEST(size() == 1U);
    BOOST_TEST(evicted(eviction_reason::resized) == 3U);
    BOOST_TEST(!machine->resize(0, now));
    BOOST_TEST(machine->max_size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_smaller_maximum_withdraws_creations)
{
    make({.max_size = 4});
    plan(4);
    BOOST_TEST(machine->resize(2, now));
    BOOST_TEST(size() == 2U);
    BOOST_TEST(create(4).size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_suspended_pool_leases_and_creates_nothing)
{
    make({.max_size = 2});
    create(1);
    machine->set_suspended(true);
    BOOST_TEST(machine->take(now) == nullptr);
    plan(2);
    BOOST_TEST(!machine->has_actions());
    machine->set_suspended(false);
    BOOST_TEST(machine->take(now) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_long_lease_is_reported_once)
{
    make({.max_size = 1, .leak_threshold = 30s});
    create(1);
    pool_slot* const s = machine->take(now);
    BOOST_TEST((machine->wake_time() == now + 30s));
    events.clear();
    now += 31s;
    machine->expire(now);
    machine->expire(now);
    BOOST_TEST_REQUIRE(events.size() == 1U);
    BOOST_TEST((events.front().kind == ts::resource_pool_event_kind::lease_overdue));
    BOOST_TEST((events.front().held == 31s));
    give_back(s);
    BOOST_TEST(machine->take(now) == s);
    now += 30s;
    machine->expire(now);
    BOOST_TEST(events.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_closed_machine_drains)
{
    make({.max_size = 3, .initial_size = 3}, {.close = true});
    machine->created(*begin(), now);
    machine->created(*begin(), now);
    BOOST_TEST_REQUIRE(begin() != nullptr);
    pool_slot* const leased = machine->take(now);
    machine->close(now);
    BOOST_TEST(released() == 1U); // the creation
    machine->closed(*machine->next_start());
    BOOST_TEST(size() == 1U);
    BOOST_TEST(!machine->is_drained());
    give_back(leased);
    machine->closed(*machine->next_start());
    BOOST_TEST(!machine->is_drained());
    drop_released();
    BOOST_TEST(machine->is_drained());
    BOOST_TEST(evicted(eviction_reason::closed) == 2U);
}

BOOST_AUTO_TEST_CASE(wrong_options_are_named)
{
    const auto rule = [this](const options& o) -> std::string {
        try {
            make(o);
            return "none";
        } catch (const boost::system::system_error& e) {
            BOOST_TEST((e.code() == ts::errc::invalid_argument));
            const std::string text = e.what();
            return text.substr(0, text.find(' ', text.find(' ') + 1));
        }
    };
    BOOST_TEST(rule({}) == "none");
    BOOST_TEST(rule({.max_size = 0}) == "resource_pool: max_size");
    BOOST_TEST(rule({.min_size = 11}) == "resource_pool: min_size");
    BOOST_TEST(rule({.initial_size = 11}) == "resource_pool: initial_size");
    BOOST_TEST(rule({.idle_timeout = 0s}) == "resource_pool: idle_timeout");
    BOOST_TEST(rule({.max_lifetime = -1s}) == "resource_pool: max_lifetime");
    BOOST_TEST(rule({.create_timeout = 0s}) == "resource_pool: create_timeout");
    BOOST_TEST(rule({.check_timeout = 0s}) == "resource_pool: check_timeout");
    BOOST_TEST(rule({.reset_timeout = 0s}) == "resource_pool: reset_timeout");
    BOOST_TEST(rule({.close_timeout = 0s}) == "resource_pool: close_timeout");
    BOOST_TEST(rule({.lifetime_jitter = 1}) == "resource_pool: lifetime_jitter");
    BOOST_TEST(rule({.lifetime_jitter = -0.1}) == "resource_pool: lifetime_jitter");
    BOOST_TEST(rule({.max_uses = 0}) == "resource_pool: max_uses");
    BOOST_TEST(rule({.bypass_window = -1ns}) == "resource_pool: bypass_window");
    BOOST_TEST(rule({.check_interval = 0s}) == "resource_pool: check_interval");
    BOOST_TEST(rule({.order = ts::reuse_order(7)}) == "resource_pool: order");
    BOOST_TEST(rule({.max_creating = 0}) == "resource_pool: max_creating");
    BOOST_TEST(rule({.leak_threshold = 0s}) == "resource_pool: leak_threshold");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
